#include "callbacks/builtin/augment_images.h"

#include <torch/nn/module.h>

#include "core/registry.h"
#include "core/require.h"
#include "data/images/image_operations.h"
#include "models/model.h"

namespace rondo {

AugmentImages::AugmentImages(const Options& options) : options_(options) {
  const auto require_share = [](const char* name, double value) {
    detail::require(value >= 0 && value <= 1, name, "in [0, 1]", value);
  };
  require_share("AugmentImages: flip", options_.flip);
  require_share("AugmentImages: brightness", options_.brightness);
  require_share("AugmentImages: contrast", options_.contrast);
  require_share("AugmentImages: erase", options_.erase);
  detail::require(options_.shift >= 0, "AugmentImages: shift", ">= 0", options_.shift);
}

void AugmentImages::on_before_forward(Trainer&, Model& model, const Batch&, Batch& input) {
  const bool changes_nothing = options_.flip == 0 && options_.shift == 0 &&
                               options_.brightness == 0 && options_.contrast == 0 &&
                               options_.erase == 0;
  if (changes_nothing || !model.module().is_training()) {
    return;
  }
  at::Tensor images = input[options_.input];
  if (options_.flip > 0) {
    images = random_flip(images, options_.flip);
  }
  if (options_.shift > 0) {
    images = random_shift(images, options_.shift);
  }
  if (options_.brightness > 0 || options_.contrast > 0) {
    images = random_light(images, options_.brightness, options_.contrast);
  }
  if (options_.erase > 0) {
    images = random_erase(images, options_.erase);
  }
  input.set(options_.input, images);
}

void register_augment_images(Registry<Callback>& registry) {
  using Options = AugmentImages::Options;
  registry
      .add<AugmentImages>("AugmentImages",
                          "Changes the pictures of training batches by chance, in the step.")
      .key("input", &Options::input, "name in the batch: floating [B, channels, height, width]")
      .key("flip", &Options::flip, between(0, 1), "chance that left and right are exchanged")
      .key("shift", &Options::shift, at_least(0), "most pixels that a picture moves each way")
      .key("brightness",
           &Options::brightness,
           between(0, 1),
           "values are multiplied by 1 plus or minus up to this")
      .key("contrast",
           &Options::contrast,
           between(0, 1),
           "differences from the mean are multiplied by 1 plus or minus up to this")
      .key("erase", &Options::erase, between(0, 1), "chance that a rectangle is set to zero");
}

}  // namespace rondo
