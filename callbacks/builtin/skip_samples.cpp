#include "callbacks/builtin/skip_samples.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

SkipSamples::SkipSamples(const Options& options) : options_(options) {
  detail::require(options.samples >= 1, "SkipSamples.samples", ">= 1", options.samples);
  detail::require(options.after >= 0, "SkipSamples.after", ">= 0", options.after);
}

void SkipSamples::preprocess_checkpoint(Trainer& trainer, StateDict& state) {
  const StateValue* const update = state.find("global_step");
  const StateValue* const data = state.find("dataloader");
  const StateValue* const time = state.find("timestamp");
  if (update == nullptr || data == nullptr || time == nullptr ||
      update->as_int() != options_.after) {
    return;
  }
  StateDict position = data->as_dict();
  const int64_t next = position.at("sample").as_int() + options_.samples;
  const StateValue* const samples = position.find("samples");
  if (samples != nullptr && next >= samples->as_int()) {
    throw DataError(
        fmt::format("SkipSamples: the epoch has {} samples, of which {} are used: cannot skip {}",
                    samples->as_int(),
                    position.at("sample").as_int(),
                    options_.samples));
  }
  position.set("sample", next);
  state.set("dataloader", position);
  StateDict counts = time->as_dict();
  counts.set("sample_in_epoch", next);
  state.set("timestamp", counts);
  trainer.log().info(fmt::format(
      "SkipSamples skips {} samples after update {}", options_.samples, options_.after));
}

void register_skip_samples(Registry<Callback>& registry) {
  using Options = SkipSamples::Options;
  registry.add<SkipSamples>("SkipSamples", "Passes over training data after a checkpoint.")
      .key("samples", &Options::samples, at_least(1), "how many")
      .required()
      .key("after", &Options::after, at_least(0), "the update of the checkpoint that it continues")
      .required();
}

}  // namespace rondo
