#include "checkpoint/internal/storage_loader.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/internal/malformed.h"

namespace rondo::detail {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are read as they lie in memory");

namespace {

/// Records from this size on are mapped.
constexpr uint64_t kMappedFrom = uint64_t{1} << 20;

/// A bool that is neither 0 nor 1 is undefined behaviour for whoever reads it.
void check_bools(const at::Tensor& bools) {
  const auto* bytes = static_cast<const unsigned char*>(bools.data_ptr());
  if (std::any_of(bytes, bytes + bools.numel(), [](unsigned char byte) { return byte > 1; })) {
    throw Malformed("a storage of truth values holds other bytes than 0 and 1");
  }
}

/// An expanded tensor shows its elements again and again: whoever copies one must not need memory
/// without measure for a small file.
uint64_t largest_view(uint64_t storage_bytes) {
  constexpr uint64_t kTimes = 1000;
  constexpr uint64_t kAlways = uint64_t{64} << 20;
  return storage_bytes * kTimes + kAlways;
}

/// a * b + c for numbers that are not negative.
int64_t multiply_add(int64_t a, int64_t b, int64_t c) {
  int64_t product = 0;
  int64_t sum = 0;
  if (__builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(product, c, &sum)) {
    throw Malformed("a tensor whose size does not fit into 64 bits");
  }
  return sum;
}

}  // namespace

at::Tensor StorageLoader::load(at::ScalarType type, const std::string& key, int64_t numel) {
  const auto found = loaded_.find(key);
  if (found == loaded_.end()) {
    return loaded_.emplace(key, read(type, key, numel)).first->second;
  }
  if (found->second.scalar_type() != type || found->second.numel() != numel) {
    throw Malformed(fmt::format("the storage {} with two types or sizes", in_quotes(key)));
  }
  return found->second;
}

at::Tensor StorageLoader::read(at::ScalarType type, const std::string& key, int64_t numel) {
  const ZipRecord* record = zip_.find("data/" + key);
  if (record == nullptr) {
    throw Malformed(fmt::format("the record {} is missing", in_quotes("data/" + key)));
  }
  const auto item_size = static_cast<int64_t>(c10::elementSize(type));
  if (numel < 0 || static_cast<uint64_t>(multiply_add(numel, item_size, 0)) != record->size) {
    throw Malformed(fmt::format("a storage of {} elements of {}, but the record {} has {} bytes",
                                numel,
                                c10::toString(type),
                                in_quotes(record->name),
                                record->size));
  }
  const bool is_aligned = record->data % static_cast<uint64_t>(item_size) == 0;
  if (record->size >= kMappedFrom && is_aligned && type != at::kBool) {
    if (at::Tensor mapped = map(type, *record, numel); mapped.defined()) {
      return mapped;
    }
  }
  at::Tensor elements = at::empty({numel}, type);
  zip_.read(*record, elements.data_ptr());
  if (type == at::kBool) {
    check_bools(elements);
  }
  return elements;
}

at::Tensor StorageLoader::map(at::ScalarType type, const ZipRecord& record, int64_t numel) {
  const std::shared_ptr<void> pages = zip_.map(record);
  if (pages == nullptr) {
    return {};
  }
  return at::from_blob(
      pages.get(), {numel}, [pages](void*) {}, at::TensorOptions(type));
}

at::Tensor view_of_storage(const at::Tensor& elements,
                           int64_t offset,
                           const std::vector<int64_t>& sizes,
                           const std::vector<int64_t>& strides) {
  if (sizes.size() != strides.size()) {
    throw Malformed(
        fmt::format("a tensor of {} sizes and {} strides", sizes.size(), strides.size()));
  }
  int64_t bytes = static_cast<int64_t>(elements.element_size());
  int64_t last = offset;
  bool is_empty = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0) {
      throw Malformed("a tensor with a negative size or stride");
    }
    is_empty = is_empty || sizes[i] == 0;
    bytes = multiply_add(bytes, std::max<int64_t>(sizes[i], 1), 0);
    last = multiply_add(std::max<int64_t>(sizes[i], 1) - 1, strides[i], last);
  }
  if (!is_empty && static_cast<uint64_t>(bytes) > largest_view(elements.nbytes())) {
    throw Malformed(fmt::format(
        "a tensor that shows {} bytes of a storage that has {}, which no checkpoint does",
        bytes,
        elements.nbytes()));
  }
  if (offset < 0 || (!is_empty && last >= elements.numel())) {
    throw Malformed(fmt::format(
        "a tensor from element {} to {} of a storage that has {}", offset, last, elements.numel()));
  }
  // An empty tensor reaches no element; its offset means nothing.
  return at::empty({0}, elements.options())
      .set_(elements.storage(), is_empty ? 0 : offset, sizes, strides);
}

}  // namespace rondo::detail
