#include "distributed/internal/pairwise_communicator.h"

#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "distributed/internal/collective_call.h"

namespace rondo {

namespace {

/// Messages up to this size take one transfer. Latency counts there: 0.3 ms over gloo.
constexpr size_t kInFrame = 4032;

/// From here on halves are faster than whole tensors (docs/distributed.md).
constexpr size_t kWholeBytes = size_t{1} << 18;

/// A list of strings as one, for ranks that pass on what they have.
std::string pack(const std::map<int, std::string>& texts) {
  std::string packed;
  for (const auto& [rank, text] : texts) {
    const uint64_t numbers[] = {static_cast<uint64_t>(rank), text.size()};
    packed.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
    packed += text;
  }
  return packed;
}

void unpack(const std::string& packed, std::map<int, std::string>& texts) {
  size_t at = 0;
  uint64_t numbers[2] = {};
  while (at + sizeof numbers <= packed.size()) {
    std::memcpy(numbers, packed.data() + at, sizeof numbers);
    at += sizeof numbers;
    texts[static_cast<int>(numbers[0])] = packed.substr(at, numbers[1]);
    at += numbers[1];
  }
}

}  // namespace

/// What each message begins with.
struct PairwiseCommunicator::Frame {
  CollectiveCall call;
  uint64_t bytes = 0;  ///< of this message
  char first[kInFrame] = {};
};

PairwiseCommunicator::PairwiseCommunicator(int rank,
                                           int world_size,
                                           const char* transport,
                                           std::unique_ptr<PeerLink> link,
                                           std::function<void(const std::string&)> give_up)
    : rank_(rank),
      world_size_(world_size),
      transport_(transport),
      link_(std::move(link)),
      give_up_(std::move(give_up)) {}

PairwiseCommunicator::Frame PairwiseCommunicator::exchange_frames(
    const CollectiveCall& call, int to, const void* out, size_t out_bytes, int from) {
  Frame sent;
  sent.call = call;
  sent.bytes = out_bytes;
  if (out_bytes > 0) {
    std::memcpy(sent.first, out, std::min(out_bytes, kInFrame));
  }
  Frame received;
  link_->transfer(to, &sent, sizeof sent, from, &received, sizeof received);
  if (from != PeerLink::kNobody) {
    require_same_call(rank_, call, from, received.call);
  }
  return received;
}

/// What did not fit into the frames.
void PairwiseCommunicator::exchange_rest(
    int to, const void* out, size_t out_bytes, int from, void* in, size_t in_bytes) {
  const bool sends = to != PeerLink::kNobody && out_bytes > kInFrame;
  const bool receives = from != PeerLink::kNobody && in_bytes > kInFrame;
  if (sends || receives) {
    link_->transfer(sends ? to : PeerLink::kNobody,
                    sends ? static_cast<const char*>(out) + kInFrame : nullptr,
                    sends ? out_bytes - kInFrame : 0,
                    receives ? from : PeerLink::kNobody,
                    receives ? static_cast<char*>(in) + kInFrame : nullptr,
                    receives ? in_bytes - kInFrame : 0);
  }
}

void PairwiseCommunicator::exchange(const CollectiveCall& call,
                                    int to,
                                    const void* out,
                                    size_t out_bytes,
                                    int from,
                                    void* in,
                                    size_t in_bytes) {
  const Frame received = exchange_frames(call, to, out, out_bytes, from);
  if (from != PeerLink::kNobody && in_bytes > 0) {
    std::memcpy(in, received.first, std::min(in_bytes, kInFrame));
  }
  exchange_rest(to, out, out_bytes, from, in, in_bytes);
}

std::string PairwiseCommunicator::exchange_text(const CollectiveCall& call,
                                                int peer,
                                                const std::string& out) {
  const Frame received = exchange_frames(call, peer, out.data(), out.size(), peer);
  std::string in(received.bytes, '\0');
  std::memcpy(in.data(), received.first, std::min(in.size(), kInFrame));
  exchange_rest(peer, out.data(), out.size(), peer, in.data(), in.size());
  return in;
}

/// values := the lower rank's part + the higher rank's.
void PairwiseCommunicator::add_from(int peer, at::Tensor& values, at::Tensor& theirs) const {
  if (rank_ < peer) {
    add_part(values, theirs);
  } else {
    add_part(theirs, values);
    values.copy_(theirs);
  }
}

void PairwiseCommunicator::reduce_whole(const CollectiveCall& call, at::Tensor& values) {
  at::Tensor theirs = at::empty_like(values);
  for (int apart = 1; apart < world_size_; apart *= 2) {
    const int peer = rank_ ^ apart;
    exchange(
        call, peer, values.data_ptr(), values.nbytes(), peer, theirs.data_ptr(), theirs.nbytes());
    add_from(peer, values, theirs);
  }
}

void PairwiseCommunicator::reduce_in_halves(const CollectiveCall& call, at::Tensor& values) {
  struct Part {
    int64_t begin = 0;
    int64_t end = 0;
  };

  const auto bytes_of = [&](const Part& part) {
    return static_cast<size_t>(part.end - part.begin) * values.element_size();
  };
  const auto data_of = [&](const Part& part) {
    return static_cast<char*>(values.data_ptr()) +
           static_cast<size_t>(part.begin) * values.element_size();
  };
  std::vector<std::pair<Part, Part>> kept_and_given;
  Part own{0, values.numel()};
  at::Tensor buffer = at::empty_like(values);
  for (int apart = 1; apart < world_size_; apart *= 2) {
    const int peer = rank_ ^ apart;
    const int64_t middle = own.begin + (own.end - own.begin) / 2;
    const Part lower{own.begin, middle};
    const Part upper{middle, own.end};
    own = rank_ < peer ? lower : upper;
    const Part given = rank_ < peer ? upper : lower;
    kept_and_given.emplace_back(own, given);
    at::Tensor theirs = buffer.narrow(0, own.begin, own.end - own.begin);
    at::Tensor mine = values.narrow(0, own.begin, own.end - own.begin);
    exchange(call, peer, data_of(given), bytes_of(given), peer, theirs.data_ptr(), bytes_of(own));
    add_from(peer, mine, theirs);
  }
  for (int apart = world_size_ / 2; apart > 0; apart /= 2) {
    const auto [kept, given] = kept_and_given.back();
    kept_and_given.pop_back();
    const int peer = rank_ ^ apart;
    exchange(call, peer, data_of(kept), bytes_of(kept), peer, data_of(given), bytes_of(given));
  }
}

void PairwiseCommunicator::all_reduce(at::Tensor& values) {
  require_plain(values, "all_reduce");
  CollectiveCall call;
  call.collective = Collective::AllReduce;
  call.detail = static_cast<int32_t>(values.scalar_type());
  call.bytes = values.nbytes();
  call.number = ++calls_;
  at::Tensor flat = values.detach().view({-1});
  if (values.nbytes() <= kWholeBytes) {
    reduce_whole(call, flat);
  } else {
    reduce_in_halves(call, flat);
  }
}

void PairwiseCommunicator::broadcast(at::Tensor& values, int root) {
  require_plain(values, "broadcast");
  CollectiveCall call;
  call.collective = Collective::Broadcast;
  call.detail = root;
  call.bytes = values.nbytes();
  call.number = ++calls_;
  const int from_root = (rank_ - root + world_size_) % world_size_;
  for (int apart = 1; apart < world_size_; apart *= 2) {
    const auto rank_at = [&](int place) { return (place + root) % world_size_; };
    if (from_root < apart && from_root + apart < world_size_) {
      exchange(call,
               rank_at(from_root + apart),
               values.data_ptr(),
               values.nbytes(),
               PeerLink::kNobody,
               nullptr,
               0);
    } else if (from_root >= apart && from_root < 2 * apart) {
      exchange(call,
               PeerLink::kNobody,
               nullptr,
               0,
               rank_at(from_root - apart),
               values.data_ptr(),
               values.nbytes());
    }
  }
}

std::vector<std::string> PairwiseCommunicator::all_gather(const std::string& bytes) {
  CollectiveCall call;
  call.collective = Collective::AllGather;
  call.number = ++calls_;
  std::map<int, std::string> texts = {{rank_, bytes}};
  for (int apart = 1; apart < world_size_; apart *= 2) {
    unpack(exchange_text(call, rank_ ^ apart, pack(texts)), texts);
  }
  std::vector<std::string> in_order;
  for (auto& [rank, text] : texts) {
    in_order.push_back(std::move(text));
  }
  return in_order;
}

void PairwiseCommunicator::barrier() {
  CollectiveCall call;
  call.number = ++calls_;
  for (int apart = 1; apart < world_size_; apart *= 2) {
    exchange_frames(call, rank_ ^ apart, nullptr, 0, rank_ ^ apart);
  }
}

void PairwiseCommunicator::give_up(const std::string& cause) noexcept {
  if (give_up_) {
    const auto tell = std::exchange(give_up_, nullptr);
    tell(cause);
  }
}

}  // namespace rondo
