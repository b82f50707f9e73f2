#include "distributed/internal/gloo_link.h"

#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <exception>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "distributed/communicator.h"
#include "distributed/internal/c10d_store.h"
#include "distributed/internal/gave_up.h"

namespace rondo {

namespace {

constexpr int kTag = 0;  // one message at a time between two ranks

/// Bytes as a tensor that somebody else owns.
std::vector<at::Tensor> as_tensors(void* data, size_t bytes) {
  return {at::from_blob(data, {static_cast<int64_t>(bytes)}, at::kByte)};
}

class GlooLink final : public PeerLink {
 public:
  GlooLink(GlooPlace place, KeyStore store) : place_(std::move(place)), store_(std::move(store)) {
    const auto options = c10d::ProcessGroupGloo::Options::create(place_.timeout);
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(place_.address));
    options->threads = 1;
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
        store_.below("gloo/").c10d().store, place_.rank, place_.world_size, options);
  }

  void transfer(
      int to, const void* out, size_t out_bytes, int from, void* in, size_t in_bytes) override {
    c10::intrusive_ptr<c10d::Work> sent;
    c10::intrusive_ptr<c10d::Work> received;
    int peer = to;
    try {
      if (to != kNobody) {
        std::vector<at::Tensor> tensors = as_tensors(const_cast<void*>(out), out_bytes);
        sent = group_->send(tensors, to, kTag);
      }
      peer = from != kNobody ? from : to;
      if (from != kNobody) {
        std::vector<at::Tensor> tensors = as_tensors(in, in_bytes);
        received = group_->recv(tensors, from, kTag);
        received->wait(place_.timeout);
      }
      peer = to;
      if (sent) {
        sent->wait(place_.timeout);
      }
    } catch (const std::exception& error) {
      throw_peer_lost(store_, place_.rank, peer, error.what());
    }
  }

 private:
  GlooPlace place_;
  KeyStore store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

}  // namespace

bool has_gloo() {
  return true;
}

std::unique_ptr<PeerLink> make_gloo_link(const GlooPlace& place, const KeyStore& store) {
  try {
    return std::make_unique<GlooLink>(place, store);
  } catch (const std::exception& error) {
    throw PeerLostError(fmt::format("rank {} cannot connect with the other ranks from {}: {}",
                                    place.rank,
                                    place.address,
                                    first_line_of(error.what())));
  }
}

}  // namespace rondo
