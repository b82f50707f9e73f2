#include "distributed/internal/collective_call.h"

#include <fmt/format.h>

#include "core/error.h"
#include "distributed/communicator.h"

namespace rondo {

std::string to_string(const CollectiveCall& call) {
  switch (call.collective) {
    case Collective::AllReduce:
      return fmt::format("all_reduce of {} bytes ({}), its call {}",
                         call.bytes,
                         c10::toString(static_cast<at::ScalarType>(call.detail)),
                         call.number);
    case Collective::Broadcast:
      return fmt::format(
          "broadcast of {} bytes from rank {}, its call {}", call.bytes, call.detail, call.number);
    case Collective::AllGather:
      return fmt::format("all_gather, its call {}", call.number);
    case Collective::Barrier:
      break;
  }
  return fmt::format("barrier, its call {}", call.number);
}

void require_same_call(int rank,
                       const CollectiveCall& own,
                       int peer,
                       const CollectiveCall& theirs) {
  if (!(own == theirs)) {
    throw RankMismatchError(
        fmt::format("ranks do different things: rank {} is in {}; rank {} is in {}. Every rank "
                    "must run the same program with the same configuration",
                    rank,
                    to_string(own),
                    peer,
                    to_string(theirs)));
  }
}

void require_plain(const at::Tensor& values, const char* collective) {
  if (!values.is_contiguous() || !values.device().is_cpu()) {
    throw UsageError(fmt::format("{} takes contiguous tensors on the CPU", collective));
  }
}

}  // namespace rondo
