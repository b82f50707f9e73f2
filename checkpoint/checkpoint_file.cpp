#include "checkpoint/checkpoint_file.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <exception>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "checkpoint/internal/compressed_file.h"
#include "checkpoint/internal/malformed.h"
#include "checkpoint/internal/manifest.h"
#include "checkpoint/internal/pickle_format.h"
#include "checkpoint/internal/pickle_reader.h"
#include "checkpoint/internal/snapshot_memory.h"
#include "checkpoint/internal/state_writer.h"
#include "checkpoint/internal/storage_loader.h"
#include "checkpoint/internal/zip_reader.h"
#include "checkpoint/internal/zip_writer.h"
#include "checkpoint/safetensors_file.h"
#include "core/error.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// The version of PyTorch's archives that has been current since 1.6; readers check it.
constexpr const char kArchiveVersion[] = "3\n";

/// More than the small records of a checkpoint ever hold.
constexpr uint64_t kLargestNote = uint64_t{1} << 20;

void write_archive(WritableFile& file, const detail::PickledState& state) {
  detail::ZipWriter zip(file);
  zip.add("data.pkl", state.pickle);
  zip.add("version", kArchiveVersion);
  zip.add("byteorder", "little");
  zip.add(detail::kManifestRecord, detail::make_manifest(state.step));
  for (size_t i = 0; i < state.records.size(); ++i) {
    const at::Tensor bytes = state.records[i].cpu().contiguous();
    zip.add("data/" + std::to_string(i), bytes.data_ptr(), bytes.nbytes());
  }
  zip.finish();
}

/// The state whose records are bytes, as they lie there.
StateDict state_in(const detail::PickledState& pickled, const fs::path& path) {
  const auto load = [&pickled](at::ScalarType type, const std::string& key, int64_t) {
    return pickled.records.at(std::stoul(key)).view(type);
  };
  return detail::read_pickle(pickled.pickle, {path.string(), "data.pkl", 0}, load);
}

/// What fills the file of this name.
std::function<void(WritableFile&)> writer_of(const fs::path& path,
                                             const detail::PickledState& state) {
  const detail::Compression compression = detail::compression_of_name(path);
  return [&state, compression](WritableFile& file) {
    if (compression == detail::Compression::None) {
      write_archive(file, state);
      return;
    }
    detail::CompressedFile packed(file, compression);
    write_archive(packed, state);
    packed.close();
  };
}

/// \throws CheckpointError  when a newer rondo wrote the file, or a machine of another byte order
void check_origin(detail::ZipReader& zip) {
  if (const detail::ZipRecord* order = zip.find("byteorder")) {
    if (zip.read_text(*order, kLargestNote) != "little") {
      fail_at(zip.place(*order), "the tensors are not in little-endian byte order");
    }
  }
  const detail::ZipRecord* manifest = zip.find(detail::kManifestRecord);
  if (manifest == nullptr) {
    return;  // PyTorch wrote it
  }
  try {
    detail::check_manifest(zip.read_text(*manifest, kLargestNote));
  } catch (const detail::Malformed& error) {
    fail_at(zip.place(*manifest), error.what());
  }
  if (!zip.is_sealed()) {
    fail_at(zip.place(*manifest), "rondo wrote the file, but its seal at the end is missing");
  }
}

bool is_own(const detail::ZipReader& zip) {
  return zip.find(detail::kManifestRecord) != nullptr;
}

StateDict read_archive(const fs::path& path) {
  detail::ZipReader zip(path);
  check_origin(zip);
  const detail::ZipRecord& pickle = zip.at("data.pkl");
  const std::string bytes = zip.read_text(pickle, detail::kLargestPickle);
  detail::StorageLoader storages(zip);
  StateDict state = detail::read_pickle(
      bytes,
      zip.place(pickle),
      [&storages](at::ScalarType type, const std::string& key, int64_t numel) {
        return storages.load(type, key, numel);
      },
      is_own(zip) ? detail::OtherClasses::Refused : detail::OtherClasses::Inert);
  zip.verify_rest();
  return state;
}

/// By its name, or because the header's JSON begins where no zip archive has such a byte.
bool is_safetensors(const fs::path& path) {
  constexpr size_t kLengthBytes = 8;
  char start[kLengthBytes + 1] = {};
  std::ifstream file(path, std::ios::binary);
  return path.extension() == ".safetensors" ||
         (file.read(start, sizeof start) && start[kLengthBytes] == '{' &&
          detail::compression_of_content({start, sizeof start}) == detail::Compression::None);
}

/// Nests whatever is no CheckpointError in one: LibTorch throws c10::Error, the system IoError.
template <class Work>
auto as_checkpoint_error(const char* doing, const fs::path& path, const Work& work) {
  try {
    return work();
  } catch (const CheckpointError&) {
    throw;
  } catch (const detail::Malformed& error) {
    throw CheckpointError(fmt::format("cannot {} {}: {}", doing, path.string(), error.what()));
  } catch (const Error&) {
    std::throw_with_nested(CheckpointError(fmt::format("cannot {} {}", doing, path.string())));
  } catch (const c10::Error&) {
    std::throw_with_nested(CheckpointError(fmt::format("cannot {} {}", doing, path.string())));
  } catch (const std::bad_alloc&) {
    std::throw_with_nested(CheckpointError(fmt::format("cannot {} {}", doing, path.string())));
  }
}

}  // namespace

void write_checkpoint(FileSystem& files, const fs::path& path, const StateDict& state) {
  as_checkpoint_error("save", path, [&] {
    const detail::PickledState pickled = detail::pickle_state(state);
    write_atomically(files, path, writer_of(path, pickled));
  });
}

fs::path write_new_checkpoint(FileSystem& files, const NewName& name, const StateDict& state) {
  const fs::path path = name.free_path();
  return as_checkpoint_error("save", path, [&] {
    const detail::PickledState pickled = detail::pickle_state(state);
    return write_new(files, path, name, writer_of(path, pickled));
  });
}

CheckpointSnapshot::CheckpointSnapshot() : memory_(std::make_unique<detail::SnapshotMemory>()) {}

CheckpointSnapshot::~CheckpointSnapshot() = default;

void CheckpointSnapshot::take(NewName name, const StateDict& state) {
  fs::path path = name.free_path();
  as_checkpoint_error("save", path, [&] {
    auto pickled = std::make_unique<detail::PickledState>(detail::pickle_state(state));
    pickled_.reset();  // its tensors keep the memory that may have to grow
    is_copied_ = false;
    memory_->begin(pickled->records);
    pickled_ = std::move(pickled);  // nothing may throw from here on: writers wait
  });
  name_ = std::move(name);
  path_ = std::move(path);
}

fs::path CheckpointSnapshot::write(FileSystem& files, const StateCheck& check) {
  waited_s_ = memory_->finish();
  is_copied_ = true;
  if (check) {
    check(state_in(*pickled_, path_));
  }
  return as_checkpoint_error(
      "save", path_, [&] { return write_new(files, path_, name_, writer_of(path_, *pickled_)); });
}

void CheckpointSnapshot::release() {
  memory_->release();
}

StateDict read_checkpoint(const fs::path& path) {
  if (is_safetensors(path)) {
    return {{"model", read_safetensors(path)}};
  }
  return as_checkpoint_error("load", path, [&path] { return read_archive(path); });
}

std::string read_manifest(const fs::path& path) {
  return as_checkpoint_error("read", path, [&path]() -> std::string {
    detail::ZipReader zip(path);
    const detail::ZipRecord* manifest = zip.find(detail::kManifestRecord);
    return manifest != nullptr ? zip.read_text(*manifest, kLargestNote) : "";
  });
}

}  // namespace rondo
