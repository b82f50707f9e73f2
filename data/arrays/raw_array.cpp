#include "data/arrays/raw_array.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/require.h"
#include "data/mapped_file.h"

namespace rondo {

namespace {

const std::vector<std::pair<std::string, c10::ScalarType>>& types() {
  static const std::vector<std::pair<std::string, c10::ScalarType>> known = {
      {"uint8", at::kByte},
      {"int8", at::kChar},
      {"int16", at::kShort},
      {"int32", at::kInt},
      {"int64", at::kLong},
      {"float16", at::kHalf},
      {"float32", at::kFloat},
      {"float64", at::kDouble}};
  return known;
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const auto& type : types()) {
    names.push_back(type.first);
  }
  return names;
}

c10::ScalarType type_of(const std::string& name) {
  const auto found = std::find_if(
      types().begin(), types().end(), [&](const auto& type) { return type.first == name; });
  if (found == types().end()) {
    throw UsageError(fmt::format("raw: unknown dtype \"{}\"", name));
  }
  return found->second;
}

void swap_bytes(at::Tensor& numbers) {
  const size_t size = numbers.element_size();
  auto* const begin = static_cast<char*>(numbers.data_ptr());
  for (char* one = begin; one < begin + numbers.nbytes(); one += size) {
    std::reverse(one, one + size);
  }
}

}  // namespace

at::Tensor read_raw(const std::filesystem::path& path, const RawArray& array) {
  constexpr int64_t kLargestRow = int64_t{1} << 40;  // bytes
  const c10::ScalarType type = type_of(array.dtype);
  detail::require(array.skip_bytes >= 0, "raw: skip_bytes", ">= 0", array.skip_bytes);
  auto row = static_cast<int64_t>(c10::elementSize(type));
  for (const int64_t size : array.shape) {
    detail::require(size >= 1 && size <= kLargestRow / row, "raw: shape", "sizes >= 1", size);
    row *= size;
  }
  const auto file = std::make_shared<const MappedFile>(path);
  const auto bytes = static_cast<int64_t>(file->size());
  const int64_t held = bytes - array.skip_bytes;
  if (held < row || held % row != 0) {
    throw DataError(fmt::format("{}: offset {}: expected whole rows of {} bytes, got {} bytes",
                                path.string(),
                                held < row ? std::min(array.skip_bytes, bytes) : bytes - held % row,
                                row,
                                held < row ? std::max<int64_t>(held, 0) : held % row));
  }
  std::vector<int64_t> shape = array.shape;
  shape.insert(shape.begin(), held / row);
  const char* const begin = static_cast<const char*>(file->data()) + array.skip_bytes;
  const bool is_aligned =
      reinterpret_cast<uintptr_t>(begin) % static_cast<uintptr_t>(c10::elementSize(type)) == 0;
  if (is_aligned && (!array.big_endian || c10::elementSize(type) == 1)) {
    const auto keep = [file](void*) {};
    return at::from_blob(const_cast<char*>(begin), shape, keep, type);
  }
  at::Tensor rows = at::empty(shape, type);
  std::memcpy(rows.data_ptr(), begin, rows.nbytes());
  if (array.big_endian) {
    swap_bytes(rows);
  }
  return rows;
}

KeyTable<RawArray> raw_array_keys() {
  KeyTable<RawArray> keys;
  keys.key("dtype", &RawArray::dtype, one_of(type_names()), "type of a number")
      .required()
      .key("shape", &RawArray::shape, each(0, at_least(1)), "of one row; [] of single numbers")
      .key("skip_bytes", &RawArray::skip_bytes, at_least(0), "bytes before the first row")
      .key(
          "big_endian", &RawArray::big_endian, "whether the first byte of a number is its highest");
  return keys;
}

}  // namespace rondo
