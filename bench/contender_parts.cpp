#include "contender_parts.h"

#include <fmt/format.h>
#include <torch/utils.h>
#include <unistd.h>

#include <cmath>
#include <map>
#include <optional>

#include "callbacks/core/precision_callback.h"
#include "core/error.h"
#include "tracing/make_backend.h"

namespace bench {

using namespace rondo;

Batch make_batch(const Workload& w) {
  torch::manual_seed(kSeed + 1);
  return w.make_batch();
}

Place place_of(const Settings& settings) {
  const std::map<std::string, std::optional<c10::ScalarType>> formats = {
      {"fp32", std::nullopt}, {"bf16", at::kBFloat16}, {"fp16", at::kHalf}};
  const auto device = find_device(settings.device);
  if (!device) {
    throw NotSupportedError("this LibTorch has no device \"" + settings.device + '"');
  }
  return {*device, formats.at(settings.precision)};
}

RepeatedBatch::RepeatedBatch(const Workload& w, int64_t copies, c10::Device device) {
  const Batch batch = make_batch(w);
  for (int64_t i = 0; i < copies; ++i) {
    Batch& copy = copies_.emplace_back();
    for (const auto& [name, tensor] : batch.items()) {
      copy.set(name, tensor.to(device, /*non_blocking=*/false, /*copy=*/true));
    }
  }
}

const Batch& RepeatedBatch::next() {
  next_ = (next_ + 1) % copies_.size();
  return copies_[next_];
}

Scratch::Scratch(const std::string& of)
    : path_(std::filesystem::temp_directory_path() /
            fmt::format("step_bench_{}_{}", of, ::getpid())) {
  std::filesystem::create_directories(path_);
}

Scratch::~Scratch() {
  std::filesystem::remove_all(path_);
}

double cosine(double lr, int64_t update) {
  const double share = static_cast<double>(update) / static_cast<double>(kScheduleLength);
  return lr * 0.5 * (1.0 + std::cos(M_PI * share));
}

bool is_save_due(const Workload& w, int64_t update) {
  return w.is_saved && (update + 1) % kSaveEvery == 0;
}

std::shared_ptr<Network> seeded_network(const Workload& w, c10::Device device) {
  torch::manual_seed(kSeed);
  std::shared_ptr<Network> network = w.make_network();
  network->to(device);
  return network;
}

at::Tensor loss_of(Network& network, const Batch& batch, const Place& place) {
  const OperatorPrecision as_others;
  const PrecisionScope scope(place.autocast, place.device.type(), as_others);
  return network.loss(batch);
}

}  // namespace bench
