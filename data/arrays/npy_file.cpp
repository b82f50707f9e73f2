#include "data/arrays/npy_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/arrays/npy_header.h"
#include "data/arrays/zip_entries.h"
#include "data/mapped_file.h"

namespace rondo {

namespace {

using detail::NpyField;
using detail::NpyHeader;
using detail::NpyType;

/// Bytes that are swapped as one: half of a complex number.
size_t swapped_bytes(const NpyType& type) {
  return c10::isComplexType(type.tensor) ? type.bytes / 2 : type.bytes;
}

/// One field of all records, one after the other and in this machine's byte order.
std::vector<char> packed(const NpyHeader& header, const NpyField& field, const char* records) {
  const size_t size = static_cast<size_t>(field.elements) * field.type.bytes;
  std::vector<char> bytes(static_cast<size_t>(header.records) * size);
  for (size_t i = 0; i < static_cast<size_t>(header.records) && size > 0; ++i) {
    std::memcpy(bytes.data() + i * size, records + i * header.record + field.offset, size);
  }
  if (field.type.is_swapped) {
    const size_t step = swapped_bytes(field.type);
    for (size_t i = 0; i + step <= bytes.size(); i += step) {
      std::reverse(bytes.begin() + static_cast<int64_t>(i),
                   bytes.begin() + static_cast<int64_t>(i + step));
    }
  }
  return bytes;
}

template <class From, class To>
void widen(const std::vector<char>& bytes, at::Tensor& to) {
  To* out = to.data_ptr<To>();
  for (size_t i = 0; i < bytes.size() / sizeof(From); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    out[i] = static_cast<To>(value);
  }
}

void require_no_sign(const std::filesystem::path& path,
                     const NpyHeader& header,
                     const NpyField& field,
                     const at::Tensor& values) {
  const int64_t* value = values.data_ptr<int64_t>();
  const int64_t* const end = value + values.numel();
  if (const int64_t* found = std::find_if(value, end, [](int64_t v) { return v < 0; });
      found != end) {
    const auto record = static_cast<size_t>((found - value) / std::max<int64_t>(1, field.elements));
    throw DataError(
        fmt::format("{}: offset {}: the uint64 {} does not fit into the int64 of a tensor",
                    path.string(),
                    header.data + record * header.record + field.offset,
                    static_cast<uint64_t>(*found)));
  }
}

at::Tensor copied(const std::filesystem::path& path,
                  const NpyHeader& header,
                  const NpyField& field,
                  const std::vector<int64_t>& shape,
                  const char* records) {
  const std::vector<char> bytes = packed(header, field, records);
  at::Tensor tensor = at::empty(shape, field.type.tensor);
  if (!field.type.is_unsigned || field.type.bytes == 8) {
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(tensor.data_ptr()));
  } else if (field.type.bytes == 2) {
    widen<uint16_t, int32_t>(bytes, tensor);
  } else {
    widen<uint32_t, int64_t>(bytes, tensor);
  }
  if (field.type.is_unsigned && field.type.bytes == 8) {
    require_no_sign(path, header, field, tensor);
  }
  return tensor;
}

/// True when the file's bytes are those of a tensor.
bool can_stay(const NpyHeader& header, const char* records) {
  const NpyType& type = header.fields.front().type;
  const bool is_aligned = reinterpret_cast<uintptr_t>(records) % type.bytes == 0;
  return header.fields.front().name.empty() && !type.is_unsigned && !type.is_swapped &&
         is_aligned && header.records > 0;
}

/// \param name   of the file, for messages
/// \param bytes  that live as long as `keep`
TensorMap read_bytes(const std::filesystem::path& name,
                     std::string_view bytes,
                     const std::shared_ptr<const void>& keep) {
  const char* const begin = bytes.data();
  const NpyHeader header = detail::read_npy_header(name, bytes);
  const char* const records = begin + header.data;
  TensorMap tensors;
  for (const NpyField& field : header.fields) {
    std::vector<int64_t> shape = header.shape;
    if (header.is_fortran) {
      std::reverse(shape.begin(), shape.end());
    }
    const int64_t dimensions = static_cast<int64_t>(shape.size());
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    at::Tensor tensor;
    if (can_stay(header, records)) {
      const auto let_go = [keep](void*) {};
      tensor = at::from_blob(const_cast<char*>(records), shape, let_go, field.type.tensor);
    } else {
      tensor = copied(name, header, field, shape, records);
    }
    if (header.is_fortran && dimensions > 1) {
      std::vector<int64_t> order(shape.size());
      for (int64_t i = 0; i < static_cast<int64_t>(order.size()); ++i) {
        order[static_cast<size_t>(i)] = i < dimensions ? dimensions - 1 - i : i;
      }
      tensor = tensor.permute(order).contiguous();
    }
    tensors.set(field.name, tensor);
  }
  return tensors;
}

}  // namespace

TensorMap read_npy(const std::filesystem::path& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  return read_bytes(path, {static_cast<const char*>(file->data()), file->size()}, file);
}

TensorMap read_npz(const std::filesystem::path& path) {
  const MappedFile file(path);
  return read_npz_bytes(path, {static_cast<const char*>(file.data()), file.size()});
}

TensorMap read_npy_bytes(const std::filesystem::path& name, std::string_view bytes) {
  const auto content = std::make_shared<const std::string>(bytes);
  return read_bytes(name, *content, content);
}

TensorMap read_npz_bytes(const std::filesystem::path& path, std::string_view archive) {
  TensorMap tensors;
  for (const detail::ZipEntry& entry : detail::read_zip_entries(path, archive)) {
    const std::filesystem::path name = entry.name;
    if (name.extension() != ".npy") {
      throw DataError(fmt::format("{}: offset {}: the entry \"{}\" is not a .npy file",
                                  path.string(),
                                  entry.data,
                                  entry.name));
    }
    const auto content =
        std::make_shared<const std::string>(detail::unpack_zip_entry(path, archive, entry));
    const std::string base = entry.name.substr(0, entry.name.size() - 4);
    for (const auto& [field, tensor] : read_bytes(path / name, *content, content).items()) {
      tensors.set(field.empty() ? base : base + "/" + field, tensor);
    }
  }
  return tensors;
}

}  // namespace rondo
