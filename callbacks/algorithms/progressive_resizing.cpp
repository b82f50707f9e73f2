#include "callbacks/algorithms/progressive_resizing.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <algorithm>
#include <cmath>

#include "callbacks/algorithms/internal/samples.h"
#include "callbacks/algorithms/register.h"
#include "callbacks/core/run_plan.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

ProgressiveResizing::ProgressiveResizing(const Options& options) : options_(options) {
  detail::require(options.mode == "resize" || options.mode == "crop",
                  "ProgressiveResizing: mode",
                  "\"resize\" or \"crop\"",
                  options.mode);
  detail::require(options.initial_scale > 0 && options.initial_scale <= 1,
                  "ProgressiveResizing: initial_scale",
                  "in (0, 1]",
                  options.initial_scale);
  detail::require(options.delay_fraction >= 0 && options.finetune_fraction >= 0 &&
                      options.delay_fraction + options.finetune_fraction <= 1,
                  "ProgressiveResizing: delay_fraction",
                  ">= 0, and at most 1 together with finetune_fraction",
                  options.delay_fraction);
  detail::require(options.size_increment >= 1,
                  "ProgressiveResizing: size_increment",
                  ">= 1",
                  options.size_increment);
}

int64_t ProgressiveResizing::side(int64_t full, double done) const {
  const double ramp = 1.0 - options_.delay_fraction - options_.finetune_fraction;
  const double begun = done - options_.delay_fraction;
  const double grown = begun < 0 ? 0.0 : ramp > 0 ? std::min(1.0, begun / ramp) : 1.0;
  const double scale = options_.initial_scale + (1.0 - options_.initial_scale) * grown;
  if (scale >= 1.0) {
    return full;
  }
  const auto step = static_cast<double>(options_.size_increment);
  const double wanted = std::round(scale * static_cast<double>(full) / step) * step;
  return std::clamp(static_cast<int64_t>(wanted), std::min(options_.size_increment, full), full);
}

bool ProgressiveResizing::match(Event event, const State& state) const {
  return event == Event::AfterDataloader && state.plan != nullptr;
}

void ProgressiveResizing::apply(Event, Trainer& trainer) {
  Batch& batch = *trainer.state().batch;
  const at::Tensor images = batch[options_.input];
  detail::require_images(images, "ProgressiveResizing");
  const double done = trainer.state().plan->elapsed_share(trainer.state().timestamp);
  const int64_t height = side(images.size(2), done);
  const int64_t width = side(images.size(3), done);
  if (height == images.size(2) && width == images.size(3)) {
    return;
  }
  if (options_.mode == "resize") {
    batch.set(options_.input, at::upsample_nearest2d(images, {height, width}));
  } else {
    const int64_t top = at::randint(images.size(2) - height + 1, {}, at::kLong).item<int64_t>();
    const int64_t left = at::randint(images.size(3) - width + 1, {}, at::kLong).item<int64_t>();
    batch.set(options_.input, images.narrow(2, top, height).narrow(3, left, width).contiguous());
  }
}

void register_progressive_resizing(Registry<Algorithm>& registry) {
  using Options = ProgressiveResizing::Options;
  registry
      .add<ProgressiveResizing>("ProgressiveResizing",
                                "Trains on small pictures first, and on larger ones later.")
      .key("mode",
           &Options::mode,
           one_of({"resize", "crop"}),
           "take nearest pixels, or a part at random")
      .key("initial_scale",
           &Options::initial_scale,
           between(0, 1),
           "share of the sides at the beginning")
      .key("finetune_fraction",
           &Options::finetune_fraction,
           between(0, 1),
           "share of the run, at its end, with whole pictures")
      .key("delay_fraction",
           &Options::delay_fraction,
           between(0, 1),
           "share of the run, at its beginning, with the smallest pictures")
      .key("size_increment", &Options::size_increment, at_least(1), "sides are multiples of it")
      .key("input", &Options::input, "name in the batch: floating [B, channels, height, width]");
}

}  // namespace rondo
