#include "checkpoint/internal/deferred_copy.h"

#include <c10/util/Exception.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/background_save.h"
#include "core/memory_block.h"
#include "support/temp_dir.h"

using namespace rondo;
using rondo::detail::DeferredCopy;
using rondo::test::TempDir;

TEST_SUITE_BEGIN("checkpoint/deferred_copy");

namespace {

constexpr int64_t kLarge = int64_t{1} << 20;  // numbers: several pieces

bool can_defer() {
  const bool can = rondo::detail::HeldPages().is_available();
  if (!can) {
    MESSAGE("skipped: this system holds no pages");
  }
  return can;
}

/// Tensors of so many numbers, one behind the other.
std::vector<at::Tensor> in_one_block(const std::vector<int64_t>& sizes) {
  int64_t bytes = 0;
  std::vector<int64_t> offsets;
  for (const int64_t size : sizes) {
    offsets.push_back(bytes);
    bytes += (size * 4 + 63) / 64 * 64;
  }
  const MemoryBlock block(bytes);
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const at::Tensor tensor = torch::empty({sizes[i]});
    tensor.storage().set_data_ptr_noswap(block.part(offsets[i]));
    tensors.push_back(tensor);
  }
  return tensors;
}

/// Of the mapping that holds this address, what lies in large pages.
int64_t large_page_kilobytes(const void* address) {
  std::ifstream file("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(file, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    int64_t kilobytes = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
      const auto here = reinterpret_cast<uintptr_t>(address);
      is_here = begin <= here && here < end;
    } else if (is_here && std::sscanf(line.c_str(), "AnonHugePages: %" SCNd64, &kilobytes) == 1) {
      return kilobytes;
    }
  }
  return 0;
}

/// Saves `state` in the background while `disturb` runs. \return what the file holds
StateDict saved_while(const StateDict& state, const std::function<void()>& disturb) {
  const TempDir dir;
  BackgroundSave save(real_file_system());
  save.begin({[&] { return dir / "x.pt"; }, {}}, state, [](const auto&) {});
  disturb();
  CHECK_FALSE(save.wait()->error);
  return read_checkpoint(dir / "x.pt");
}

}  // namespace

TEST_CASE("a save holds the state of its moment, whoever writes, wherever and as soon as may be") {
  torch::manual_seed(7);
  for (int round = 0; round < 10; ++round) {
    std::vector<at::Tensor> tensors;
    StateDict state;
    StateDict expected;
    for (int i = 0; i < 8; ++i) {
      const at::Tensor whole = torch::rand({kLarge + 1000 * i + round});
      const at::Tensor tensor = i % 2 == 0 ? whole : whole.slice(0, 16 * i, kLarge - i);
      tensors.push_back(tensor);
      state.set("t" + std::to_string(i), tensor);
      expected.set("t" + std::to_string(i), tensor.clone());
    }
    const StateDict saved = saved_while(state, [&] {
      std::vector<std::thread> writers;
      for (size_t first = 0; first < 3; ++first) {
        writers.emplace_back([&tensors, first] {
          for (size_t i = first; i < tensors.size(); i += 3) {
            tensors[i].slice(0, kLarge / 2).neg_();
            tensors[i].slice(0, 0, kLarge / 2).neg_();
          }
        });
      }
      for (std::thread& writer : writers) {
        writer.join();
      }
    });
    CHECK(first_difference(saved, expected).empty());
    CHECK_FALSE(first_difference(StateDict(state), expected).empty());
  }
}

TEST_CASE("neighbours in one block are held together, whatever lies between them") {
  torch::manual_seed(7);
  const std::vector<int64_t> sizes = {5, kLarge, 100, kLarge + 3, 3 * kLarge, 70'000, 1, kLarge};
  const std::vector<at::Tensor> tensors = in_one_block(sizes);
  for (const size_t left_out : {size_t{0}, size_t{4}}) {  // held with its neighbours, but not saved
    StateDict state;
    StateDict expected;
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].uniform_();
      if (i != left_out) {
        state.set("t" + std::to_string(i), tensors[i]);
        expected.set("t" + std::to_string(i), tensors[i].clone());
      }
    }
    const StateDict saved = saved_while(state, [&] {
      for (const at::Tensor& tensor : tensors) {
        tensor.neg_();
      }
    });
    CHECK(first_difference(saved, expected).empty());
  }
}

TEST_CASE("a save leaves large pages as large as they were") {
  const std::vector<at::Tensor> tensors = in_one_block({100, kLarge, 3, 2 * kLarge, 300'000});
  StateDict state;
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].fill_(1);
    state.set("t" + std::to_string(i), tensors[i]);
  }
  const auto large_pages = [&] { return large_page_kilobytes(tensors[1].data_ptr()); };
  const int64_t before = large_pages();
  saved_while(state, [&] { tensors[1].fill_(2); });
  if (before == 0) {
    MESSAGE("skipped: this system gives no large pages");
  }
  CHECK(large_pages() >= before);
}

TEST_CASE("memory that was never touched is saved as the zeros that it is") {
  const at::Tensor untouched = torch::empty({64 * kLarge}, torch::kByte);  // from the system
  const StateDict saved = saved_while({{"t", untouched}}, [&] { untouched.fill_(1); });
  // Whoever gave the memory may have written to its first page.
  CHECK(saved.at("t").as_tensor().slice(0, kLarge).sum().item<int64_t>() == 0);
}

TEST_CASE("memory that LibTorch does not own is copied at once: it may go away") {
  std::vector<float> lent(static_cast<size_t>(kLarge), 3.0F);
  const StateDict state{{"t", torch::from_blob(lent.data(), {kLarge})}};
  const StateDict saved = saved_while(state, [&] { std::vector<float>().swap(lent); });
  CHECK(torch::equal(saved.at("t").as_tensor(), torch::full({kLarge}, 3.0F)));
}

TEST_CASE("a tensor that is dropped lives until it is copied, one that would move stays") {
  const TempDir dir;
  at::Tensor dropped = torch::full({kLarge}, 2.0F);
  const at::Tensor resized = torch::full({kLarge}, 5.0F);
  BackgroundSave save(real_file_system());
  save.begin({[&] { return dir / "x.pt"; }, {}},
             StateDict{{"dropped", dropped}, {"resized", resized}},
             [](const auto&) {});
  dropped.reset();
  if (can_defer()) {
    CHECK_THROWS_AS(at::Tensor(resized).resize_({64 * kLarge}), c10::Error);
  }
  CHECK_FALSE(save.wait()->error);
  const StateDict saved = read_checkpoint(dir / "x.pt");
  CHECK(torch::equal(saved.at("dropped").as_tensor(), torch::full({kLarge}, 2.0F)));
  CHECK(torch::equal(saved.at("resized").as_tensor(), torch::full({kLarge}, 5.0F)));
  CHECK(at::Tensor(resized).resize_({2 * kLarge}).numel() == 2 * kLarge);
}

TEST_CASE("two savers of one state: the second copies at once") {
  if (!can_defer()) {
    return;
  }
  const at::Tensor tensor = torch::rand({kLarge});
  const at::Tensor first = torch::empty_like(tensor);
  DeferredCopy one;
  CHECK(DeferredCopy::suits(tensor));
  one.add(tensor, static_cast<char*>(first.data_ptr()));
  one.hold();
  CHECK_FALSE(DeferredCopy::suits(tensor));
  one.finish();
  CHECK(torch::equal(first, tensor));
}

TEST_CASE("what is copied at once may be resized at once") {
  if (!can_defer()) {
    return;
  }
  const std::vector<at::Tensor> tensors = in_one_block({kLarge, kLarge / 4});
  const at::Tensor first = torch::empty_like(tensors[0]);
  const at::Tensor second = torch::empty_like(tensors[1]);
  DeferredCopy one;
  one.add(tensors[0], static_cast<char*>(first.data_ptr()));
  one.hold();  // the whole block
  DeferredCopy two;
  two.add(tensors[1], static_cast<char*>(second.data_ptr()));
  two.hold();
  CHECK(torch::equal(second, tensors[1]));
  CHECK(tensors[1].storage().unsafeGetStorageImpl()->resizable());
  CHECK_FALSE(tensors[0].storage().unsafeGetStorageImpl()->resizable());
  one.finish();
  two.finish();
}

TEST_CASE("a copy that is given up lets writers go on") {
  if (!can_defer()) {
    return;
  }
  const at::Tensor tensor = torch::zeros({kLarge});
  const at::Tensor copy = torch::empty_like(tensor);
  {
    DeferredCopy given_up;
    given_up.add(tensor, static_cast<char*>(copy.data_ptr()));
    given_up.hold();
  }
  tensor.fill_(1);
  CHECK(torch::equal(tensor, torch::ones({kLarge})));
}

TEST_CASE("once it is copied, a state may be resized again, while its file is written") {
  const TempDir dir;
  const at::Tensor tensor = torch::full({kLarge}, 5.0F);
  BackgroundSave save(real_file_system());
  std::promise<void> is_resized;
  save.begin({[&] { return dir / "x.pt"; }, {}}, StateDict{{"t", tensor}}, [&](const auto&) {
    is_resized.get_future().wait();
  });
  while (!tensor.storage().unsafeGetStorageImpl()->resizable()) {
    CHECK_FALSE(save.poll());
    std::this_thread::yield();
  }
  is_resized.set_value();
  CHECK_FALSE(save.wait()->error);
}

TEST_CASE("it is known that a writer waited") {
  if (!can_defer()) {
    return;
  }
  const at::Tensor tensor = torch::zeros({kLarge});
  const at::Tensor copy = torch::empty_like(tensor);
  bool has_waited = false;
  for (int attempt = 0; attempt < 100 && !has_waited; ++attempt) {
    DeferredCopy deferred;
    deferred.add(tensor, static_cast<char*>(copy.data_ptr()));
    deferred.hold();
    std::thread writer([&] { tensor.add_(1); });
    std::this_thread::sleep_for(
        std::chrono::milliseconds(attempt));  // it comes before the copy, then
    deferred.finish();
    writer.join();
    CHECK(torch::equal(copy + 1, tensor));
    has_waited = deferred.waited_s() > 0.0;
  }
  CHECK(has_waited);
}

TEST_SUITE_END();
