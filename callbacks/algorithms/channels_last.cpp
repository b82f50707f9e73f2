#include "callbacks/algorithms/channels_last.h"

#include "callbacks/algorithms/internal/samples.h"
#include "callbacks/algorithms/register.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

ChannelsLast::ChannelsLast(const Options& options) : options_(options) {}

bool ChannelsLast::match(Event event, const State&) const {
  return event == Event::BeforeForward;
}

void ChannelsLast::apply(Event, Trainer& trainer) {
  Batch& batch = *trainer.state().batch;
  batch.set(options_.input, batch[options_.input].contiguous(at::MemoryFormat::ChannelsLast));
}

void register_channels_last(Registry<Algorithm>& registry) {
  using Options = ChannelsLast::Options;
  registry
      .add<ChannelsLast>("ChannelsLast",
                         "Hands pictures to the model with their channels last in memory.")
      .key("input", &Options::input, "name in the batch: floating [B, channels, height, width]");
}

}  // namespace rondo
