#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace rondo {

enum class Collective : uint32_t { AllReduce, Broadcast, AllGather, Barrier };

/// What a rank is about to do with the others. All of them have to say the same.
struct CollectiveCall {
  Collective collective = Collective::Barrier;
  int32_t detail = 0;  ///< the dtype, or the root of a broadcast
  uint64_t bytes = 0;
  uint64_t number = 0;  ///< of this rank's calls so far

  bool operator==(const CollectiveCall& other) const {
    return collective == other.collective && detail == other.detail && bytes == other.bytes &&
           number == other.number;
  }
};

/// "all_reduce of 400 bytes (Float), its call 7".
std::string to_string(const CollectiveCall& call);

/// \throws RankMismatchError  naming both ranks and what each is at
void require_same_call(int rank, const CollectiveCall& own, int peer, const CollectiveCall& theirs);

/// \throws UsageError  when a collective cannot take the tensor
void require_plain(const at::Tensor& values, const char* collective);

}  // namespace rondo
