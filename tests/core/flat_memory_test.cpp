#include "core/flat_memory.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <vector>

#include "core/memory_block.h"

using namespace rondo;

namespace {

const char* block_of(const at::Tensor& tensor) {
  return MemoryBlock::extent_around(tensor.storage().data_ptr()).begin;
}

std::vector<at::Tensor> flat_like(const std::vector<at::Tensor>& values) {
  FlatMemory memory;
  for (const at::Tensor& value : values) {
    memory.add_like(value);
  }
  return memory.allocate();
}

}  // namespace

TEST_SUITE_BEGIN("core/flat_memory");

TEST_CASE("tensors share one allocation, in order, without overlap, on cache lines") {
  const std::vector<at::Tensor> values = {at::rand({3, 5}),
                                          at::rand({7}, at::kDouble),
                                          at::rand({}),
                                          at::rand({0, 2}),
                                          at::rand({2, 2}).to(at::kBFloat16)};
  const std::vector<at::Tensor> made = flat_like(values);
  REQUIRE(made.size() == values.size());
  const char* end = block_of(made[0]);
  REQUIRE(end != nullptr);
  for (size_t i = 0; i < made.size(); ++i) {
    CAPTURE(i);
    CHECK(made[i].sizes() == values[i].sizes());
    CHECK(made[i].dtype() == values[i].dtype());
    CHECK(block_of(made[i]) == block_of(made[0]));
    CHECK(made[i].storage().nbytes() == values[i].nbytes());
    CHECK_FALSE(made[i].requires_grad());
    if (made[i].numel() == 0) {
      continue;
    }
    const char* begin = static_cast<const char*>(made[i].data_ptr());
    CHECK(begin >= end);
    CHECK(reinterpret_cast<uintptr_t>(begin) % 64 == 0);
    end = begin + made[i].nbytes();
  }
  for (size_t i = 0; i < made.size(); ++i) {
    made[i].copy_(values[i]);
  }
  for (size_t i = 0; i < made.size(); ++i) {
    CHECK(at::equal(made[i], values[i]));
  }
}

TEST_CASE("dense strides are taken over, others become contiguous") {
  const at::Tensor channels_last =
      at::rand({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor every_second = at::rand({6, 4}).slice(0, 0, 6, 2);
  const auto made = flat_like({channels_last, every_second});
  CHECK(made[0].strides() == channels_last.strides());
  CHECK(made[1].is_contiguous());
  CHECK(flat_like({}).empty());
}

TEST_CASE("memory that moves is seen to move by all that share it, and lies before what is added") {
  const at::Tensor weight = at::rand({4, 6});
  const at::Tensor values = weight.clone();
  const at::Tensor alias = weight.detach();
  const at::Tensor row = weight.select(0, 2);
  const at::Tensor other = at::rand({5});
  const void* const before = weight.data_ptr();
  FlatMemory memory;
  memory.move(weight);
  memory.move(row);  // the same memory
  memory.move(other);
  memory.add_like(weight);
  const at::Tensor made = memory.allocate()[0];
  CHECK(weight.data_ptr() != before);
  CHECK(at::equal(weight, values));
  CHECK(block_of(weight) == block_of(made));
  CHECK(static_cast<const char*>(weight.data_ptr()) == block_of(made));
  CHECK(static_cast<const char*>(other.data_ptr()) == block_of(made) + 128);
  CHECK(static_cast<const char*>(made.data_ptr()) == block_of(made) + 192);
  weight.fill_(3);
  CHECK(at::equal(alias, weight));
  CHECK(at::equal(row, weight.select(0, 2)));
}

TEST_CASE("what may move is LibTorch's own memory, once") {
  const at::Tensor weight = at::rand({4, 6});
  CHECK(FlatMemory::may_move(weight));
  FlatMemory memory;
  memory.move(weight);
  memory.allocate();
  CHECK_FALSE(FlatMemory::may_move(weight));
  std::vector<float> lent(12, 2.0F);
  CHECK_FALSE(FlatMemory::may_move(at::from_blob(lent.data(), {12})));
}

TEST_CASE("lent memory moves where it is told to") {
  std::vector<float> lent(12, 2.0F);
  const at::Tensor tensor = at::from_blob(lent.data(), {12});
  FlatMemory memory;
  memory.move(tensor);
  CHECK(memory.allocate().empty());
  lent.assign(12, 3.0F);
  CHECK(tensor.sum().item<float>() == 24);
}

TEST_CASE("no memory stays none") {
  const at::Tensor empty = at::rand({0, 3});
  FlatMemory memory;
  memory.move(empty);
  memory.allocate();
  CHECK(block_of(empty) == nullptr);
}

TEST_CASE("a moved tensor may grow") {
  const at::Tensor weight = at::arange(6.0F);
  FlatMemory memory;
  memory.move(weight);
  memory.allocate();
  at::Tensor(weight).resize_({1000});
  CHECK(weight[5].item<float>() == 5);
  CHECK(block_of(weight) == nullptr);
}

TEST_SUITE_END();
