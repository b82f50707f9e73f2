#include "callbacks/algorithms/seq_length_warmup.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "callbacks/algorithms/internal/samples.h"
#include "callbacks/algorithms/register.h"
#include "callbacks/core/run_plan.h"
#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Sequences of `length`: the beginnings, or all whole pieces.
at::Tensor shortened(const at::Tensor& sequences, int64_t length, bool truncate) {
  if (truncate) {
    return sequences.narrow(1, 0, length).contiguous();
  }
  const int64_t pieces = sequences.size(1) / length;
  std::vector<int64_t> shape = sequences.sizes().vec();
  shape[0] *= pieces;
  shape[1] = length;
  return sequences.narrow(1, 0, pieces * length).reshape(shape).contiguous();
}

}  // namespace

SeqLengthWarmup::SeqLengthWarmup(const Options& options) : options_(options) {
  detail::require(options.duration > 0 && options.duration <= 1,
                  "SeqLengthWarmup: duration",
                  "in (0, 1]",
                  options.duration);
  detail::require(options.min_seq_length >= 1 && options.min_seq_length <= options.max_seq_length,
                  "SeqLengthWarmup: min_seq_length",
                  "in [1, max_seq_length]",
                  options.min_seq_length);
  detail::require(options.step_size >= 1, "SeqLengthWarmup: step_size", ">= 1", options.step_size);
}

int64_t SeqLengthWarmup::length(double done) const {
  const int64_t growth = options_.max_seq_length - options_.min_seq_length;
  const int64_t steps = growth / options_.step_size;
  const auto made =
      static_cast<int64_t>(std::floor(static_cast<double>(steps) * done / options_.duration));
  return done >= options_.duration ? options_.max_seq_length
                                   : std::min(options_.max_seq_length,
                                              options_.min_seq_length + made * options_.step_size);
}

bool SeqLengthWarmup::match(Event event, const State& state) const {
  return event == Event::AfterDataloader && state.plan != nullptr;
}

void SeqLengthWarmup::apply(Event, Trainer& trainer) {
  Batch& batch = *trainer.state().batch;
  const at::Tensor tokens = batch[options_.input];
  if (tokens.dim() < 2) {
    throw ShapeError("SeqLengthWarmup: the input must be [B, length]");
  }
  const int64_t full = tokens.size(1);
  const double done = trainer.state().plan->elapsed_share(trainer.state().timestamp);
  const int64_t wanted = std::min(full, length(done));
  if (wanted == full) {
    return;
  }
  Batch cut = batch;
  for (const TensorMap::Item& item : std::as_const(batch).items()) {
    if (item.second.dim() >= 2 && item.second.size(1) == full) {
      cut.set(item.first, shortened(item.second, wanted, options_.truncate));
    }
  }
  batch = cut;
}

void register_seq_length_warmup(Registry<Algorithm>& registry) {
  using Options = SeqLengthWarmup::Options;
  registry
      .add<SeqLengthWarmup>(
          "SeqLengthWarmup",
          "Trains on the beginnings of sequences first, and on longer ones later.")
      .key("duration", &Options::duration, between(0, 1), "share of the run in which lengths grow")
      .key("min_seq_length", &Options::min_seq_length, at_least(1), "length at the beginning")
      .key("max_seq_length",
           &Options::max_seq_length,
           at_least(1),
           "length when the warm-up is over")
      .key("step_size", &Options::step_size, at_least(1), "by how much lengths grow")
      .key("truncate",
           &Options::truncate,
           "cut sequences off; false: make more and shorter ones of them")
      .key("input", &Options::input, "name in the batch: [B, length]");
}

}  // namespace rondo
