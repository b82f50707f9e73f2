#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "distributed/communicator.h"
#include "distributed/internal/collective_call.h"
#include "distributed/internal/shared_memory.h"

namespace rondo {

/// What a rank of one host says of itself in the memory that they share.
struct SharedRank;

struct SharedPlace {
  int rank = 0;
  int world_size = 1;
  size_t block_bytes = 0;  ///< of one rank's piece of a tensor
  std::chrono::milliseconds timeout = {};
};

/// Collectives of the ranks of one host, by memory that they share. Tensors go through it in
/// pieces: each rank writes its own, adds a slice of all, and reads the sum. Every rank writes the
/// same layout, so all of them must have been built from one source.
class SharedMemoryCommunicator final : public Communicator {
 public:
  /// How much memory the ranks need.
  static size_t bytes_for(int world_size, size_t block_bytes);

  /// All ranks have the memory open. Collective: returns when all have come.
  SharedMemoryCommunicator(SharedPlace place, SharedMemory memory);
  ~SharedMemoryCommunicator() override;

  int rank() const override { return place_.rank; }

  int world_size() const override { return place_.world_size; }

  const char* transport() const override { return "shm"; }

  void all_reduce(at::Tensor& values) override;
  void broadcast(at::Tensor& values, int root) override;
  std::vector<std::string> all_gather(const std::string& bytes) override;
  void barrier() override;
  void give_up(const std::string& cause) noexcept override;

 private:
  SharedRank& shared(int rank) const;
  char* block(int rank) const;
  void begin(const CollectiveCall& call);
  void meet();
  void wait_for(int rank, uint32_t meeting);
  void require_alive(int waited_for, std::chrono::steady_clock::time_point deadline);
  [[noreturn]] void lose(int rank, const std::string& cause);
  void sum_whole(char* values, int64_t count, at::ScalarType dtype);
  void sum_slices(char* values, int64_t count, at::ScalarType dtype);
  std::vector<at::Tensor> parts_of(int64_t begin, int64_t end, at::ScalarType dtype) const;

  SharedPlace place_;
  SharedMemory memory_;
  std::vector<detail::FileDescriptor> processes_;  // of each rank, to see that it has ended
  CollectiveCall call_;
  uint64_t calls_ = 0;
  uint32_t meetings_ = 0;
  bool is_second_ = false;  // the set of blocks in use
  bool is_call_new_ = false;
};

}  // namespace rondo
