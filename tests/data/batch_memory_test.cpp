#include "data/batch_memory.h"

#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "data/data_loader.h"
#include "data/tensor_dataset.h"

TEST_SUITE_BEGIN("data/batch_memory");

using namespace rondo;

namespace {

constexpr int64_t kFloats = 256 << 10;  // 1 MiB

at::Tensor tensor_in(BatchMemory& memory, int64_t floats) {
  const BatchMemory::Scope scope(memory);
  return batch_tensor({floats}, at::kFloat);
}

bool is_mapped(const void* place) {
  unsigned char is_resident = 0;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  void* const begin = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(place) / page * page);
  return ::mincore(begin, 1, &is_resident) == 0;
}

/// Bytes of the pages that are mapped now where these tensors lie.
class Places {
 public:
  explicit Places(const std::vector<at::Tensor>& tensors) { add(tensors); }

  void add(const std::vector<at::Tensor>& tensors) {
    for (const at::Tensor& tensor : tensors) {
      const auto begin = reinterpret_cast<uintptr_t>(tensor.data_ptr()) / page_ * page_;
      for (uintptr_t at = begin; at < begin + tensor.nbytes(); at += page_) {
        pages_.insert(at);
      }
    }
  }

  int64_t mapped_bytes() const {
    return static_cast<int64_t>(page_) * std::count_if(pages_.begin(), pages_.end(), [](auto page) {
             return is_mapped(reinterpret_cast<const void*>(page));
           });
  }

 private:
  uintptr_t page_ = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  std::set<uintptr_t> pages_;
};

bool is_in_heap(const at::Tensor& tensor) {
  return tensor.storage().data_ptr().get_deleter() == c10::GetCPUAllocator()->raw_deleter();
}

}  // namespace

TEST_CASE("a tensor has the memory of one that was dropped, whatever thread dropped it") {
  BatchMemory memory;
  std::optional<at::Tensor> first = tensor_in(memory, kFloats);
  first->fill_(1);
  const void* const place = first->data_ptr();
  std::thread([&] { first.reset(); }).join();
  const at::Tensor second = tensor_in(memory, kFloats);
  CHECK(second.data_ptr() == place);
  CHECK(tensor_in(memory, kFloats).data_ptr() != place);
  CHECK(second.sizes() == at::IntArrayRef({kFloats}));
}

TEST_CASE("a smaller one has it, too, unless much of it would lie idle") {
  BatchMemory memory;
  const auto* const place = static_cast<const char*>(tensor_in(memory, kFloats).data_ptr());
  CHECK(tensor_in(memory, kFloats - 10).data_ptr() == place);
  const at::Tensor small = tensor_in(memory, kFloats / 4);
  CHECK_FALSE(is_mapped(place + 2 * kFloats));  // the new one may lie at either end
}

TEST_CASE("there is never more than was in use at once") {
  constexpr int64_t kMany = 16 * kFloats;
  constexpr int64_t kBytes = 4 * kMany;
  for (const int64_t other : {kMany / 2, 5 * kMany / 4, 2 * kMany}) {
    CAPTURE(other);
    BatchMemory memory;
    std::vector<at::Tensor> batches = {tensor_in(memory, kMany), tensor_in(memory, kMany)};
    Places places(batches);
    CHECK(places.mapped_bytes() >= 2 * kBytes);
    batches.clear();
    batches = {tensor_in(memory, other)};
    places.add(batches);
    CHECK(places.mapped_bytes() < 2 * kBytes + kBytes / 4);
  }
}

TEST_CASE("what is not in use goes with it; tensors outlive it") {
  std::optional<BatchMemory> memory(std::in_place);
  at::Tensor kept = tensor_in(*memory, kFloats).fill_(3);
  const void* const unused = tensor_in(*memory, kFloats).data_ptr();
  memory.reset();
  CHECK_FALSE(is_mapped(unused));
  CHECK(kept[kFloats - 1].item<float>() == 3.0F);
  const void* const place = kept.data_ptr();
  kept = at::Tensor();
  CHECK_FALSE(is_mapped(place));
}

TEST_CASE("a tensor may grow, as others may") {
  BatchMemory memory;
  at::Tensor tensor = tensor_in(memory, kFloats).fill_(2);
  tensor.resize_({2 * kFloats});
  CHECK(tensor[kFloats - 1].item<float>() == 2.0F);
}

TEST_CASE("small tensors, and those that no loader asked for, lie in the heap") {
  BatchMemory memory;
  CHECK(is_in_heap(tensor_in(memory, 100)));
  CHECK_FALSE(is_in_heap(tensor_in(memory, kFloats)));
  CHECK(is_in_heap(batch_tensor({kFloats}, at::kFloat)));
  CHECK(tensor_in(memory, 0).numel() == 0);
}

TEST_CASE("batches of a loader lie in few places, whatever sizes they have") {
  for (const int64_t prefetch : {0, 2}) {
    CAPTURE(prefetch);
    LoaderOptions options;
    options.batch_size = 90;
    options.prefetch = prefetch;
    const DataLoader loader(from_tensors({{"x", at::zeros({1000, 1 << 12})}}), options);
    const auto stream = loader.epochs({}, /*run_seed=*/1);
    std::set<const void*> places;
    int64_t batches = 0;
    while (batches < 120) {
      if (const std::optional<Batch> batch = stream->next()) {
        places.insert((*batch)["x"].data_ptr());
        ++batches;
      }
    }
    CHECK(places.size() <= 60);  // a short batch, of which there are ten, may move two
  }
}

TEST_SUITE_END();
