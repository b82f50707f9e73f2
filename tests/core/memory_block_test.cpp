#include "core/memory_block.h"

#include <c10/core/CPUAllocator.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <cstring>
#include <optional>

using namespace rondo;

TEST_SUITE_BEGIN("core/memory_block");

TEST_CASE("a block has all its bytes, on a cache line, whatever its size") {
  for (const int64_t bytes : {1, 100, 1 << 20, (1 << 20) + 1, (2 << 20) - 1, 5'000'000}) {
    CAPTURE(bytes);
    const MemoryBlock block(bytes);
    CHECK(block.bytes() == bytes);
    CHECK(reinterpret_cast<uintptr_t>(block.data()) % 64 == 0);
    CHECK(block.extent().begin == block.data());
    CHECK(block.extent().end - block.data() >= bytes);
    const auto whole = static_cast<size_t>(block.extent().end - block.data());
    std::memset(block.data(), 7, whole);
    CHECK(block.data()[whole - 1] == 7);
  }
  CHECK(MemoryBlock(0).bytes() == 0);
}

TEST_CASE("what a block takes behind its end is less than half a large page") {
  for (int64_t bytes = 1; bytes < 9'000'000; bytes += 123'457) {
    const MemoryBlock block(bytes);
    CHECK(block.extent().end - (block.data() + bytes) <= 1 << 20);
  }
}

TEST_CASE("the memory lives as long as a part of it") {
  std::optional<MemoryBlock> block(std::in_place, 3 << 20);
  const char* const begin = block->data();
  const at::Tensor tensor = torch::empty({100});
  tensor.storage().set_data_ptr_noswap(block->part(4096));
  CHECK(static_cast<const char*>(tensor.data_ptr()) == begin + 4096);
  block.reset();
  tensor.fill_(3);
  CHECK(tensor.sum().item<float>() == 300);
}

TEST_CASE("a part knows its block, other memory none") {
  const MemoryBlock block(3 << 20);
  const c10::DataPtr part = block.part(64);
  CHECK(MemoryBlock::extent_around(part).begin == block.data());
  CHECK(MemoryBlock::extent_around(part).end == block.extent().end);
  CHECK(MemoryBlock::extent_around(c10::GetCPUAllocator()->allocate(64)).begin == nullptr);
  CHECK(MemoryBlock::extent_around(c10::DataPtr()).begin == nullptr);
}

TEST_SUITE_END();
