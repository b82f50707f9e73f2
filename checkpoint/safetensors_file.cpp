#include "checkpoint/safetensors_file.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <exception>
#include <new>
#include <string>
#include <vector>

#include "checkpoint/internal/bytes.h"
#include "checkpoint/internal/malformed.h"
#include "checkpoint/internal/random_access_file.h"
#include "checkpoint/internal/safetensors_header.h"
#include "core/error.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// What the format's own reader allows.
constexpr uint64_t kLargestHeader = 100'000'000;

std::vector<detail::SafetensorsEntry> layout_of(const StateDict& tensors) {
  std::vector<detail::SafetensorsEntry> entries;
  uint64_t end = 0;
  for (const StateDict::Item& item : tensors.items()) {
    if (!item.second.is_tensor() || !item.second.as_tensor().defined()) {
      throw detail::Malformed(fmt::format(
          "\"{}\" is {}, and safetensors holds tensors only", item.first, item.second.kind()));
    }
    const at::Tensor& tensor = item.second.as_tensor();
    detail::SafetensorsEntry entry;
    entry.name = item.first;
    entry.type = tensor.scalar_type();
    entry.shape = tensor.sizes().vec();
    entry.begin = end;
    end += static_cast<uint64_t>(tensor.numel()) * tensor.element_size();
    entry.end = end;
    entries.push_back(std::move(entry));
  }
  return entries;
}

StateDict read_all(const fs::path& path) {
  const detail::RandomAccessFile file(path);
  constexpr uint64_t kLengthBytes = 8;
  if (file.size() < kLengthBytes) {
    throw detail::Malformed("is too short");
  }
  const std::string length_bytes = file.read(0, kLengthBytes);
  const auto length = detail::ByteReader(length_bytes).number<uint64_t>();
  if (length > kLargestHeader || length > file.size() - kLengthBytes) {
    throw detail::Malformed(fmt::format("has a header of {} bytes, which is too long", length));
  }
  const uint64_t data = kLengthBytes + length;
  const std::string header = file.read(kLengthBytes, length);
  StateDict tensors;
  for (const auto& entry : detail::read_safetensors_header(header, file.size() - data)) {
    const at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(entry.type));
    file.read(data + entry.begin, tensor.data_ptr(), entry.end - entry.begin);
    if (entry.type == at::kBool && tensor.view(at::kByte).gt(1).any().item<bool>()) {
      throw detail::Malformed(
          fmt::format("has a bool in \"{}\" that is neither 0 nor 1", entry.name));
    }
    tensors.set(entry.name, tensor);
  }
  return tensors;
}

/// Nests whatever is no CheckpointError in one.
template <class Work>
auto as_checkpoint_error(const char* doing, const fs::path& path, const Work& work) {
  const std::string what = fmt::format("cannot {} {}", doing, path.string());
  try {
    return work();
  } catch (const detail::Malformed& error) {
    throw CheckpointError(fmt::format("{}: {}", what, error.what()));
  } catch (const Error&) {
    std::throw_with_nested(CheckpointError(what));
  } catch (const c10::Error&) {
    std::throw_with_nested(CheckpointError(what));
  } catch (const std::bad_alloc&) {
    std::throw_with_nested(CheckpointError(what));
  }
}

}  // namespace

void write_safetensors(FileSystem& files, const fs::path& path, const StateDict& tensors) {
  as_checkpoint_error("save", path, [&] {
    const std::string json = detail::make_safetensors_header(layout_of(tensors));
    std::string length;
    detail::put(length, static_cast<uint64_t>(json.size()));
    write_atomically(files, path, [&](WritableFile& file) {
      file.append(length.data(), length.size());
      file.append(json.data(), json.size());
      for (const StateDict::Item& item : tensors.items()) {
        const at::Tensor bytes = item.second.as_tensor().detach().cpu().contiguous();
        file.append(bytes.data_ptr(), bytes.nbytes());
      }
    });
  });
}

StateDict read_safetensors(const fs::path& path) {
  return as_checkpoint_error("load", path, [&path] { return read_all(path); });
}

}  // namespace rondo
