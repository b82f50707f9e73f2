#include "callbacks/builtin/image_visualizer.h"

#include <algorithm>

#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

ImageVisualizer::ImageVisualizer(const Options& options) : options_(options) {
  detail::require(options.count >= 1, "ImageVisualizer.count", ">= 1", options.count);
  detail::require(
      options.every.value() > 0.0, "ImageVisualizer.every", "> 0", options.every.to_string());
}

void ImageVisualizer::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch& batch, int64_t) {
  const State& state = trainer.state();
  if (!state.position.is_last ||
      !state.falls_due(options_.every, state.previous, state.timestamp)) {
    return;
  }
  const at::Tensor& pictures = batch[options_.input];
  const int64_t count = pictures.dim() == 0 ? 0 : std::min(options_.count, pictures.size(0));
  for (int64_t i = 0; i < count; ++i) {
    trainer.log_media({options_.input + "/" + std::to_string(i), picture_of(pictures[i])});
  }
}

void register_image_visualizer(Registry<Callback>& registry) {
  using Options = ImageVisualizer::Options;
  registry.add<ImageVisualizer>("ImageVisualizer", "Logs pictures of training batches.")
      .key("input", &Options::input, "tensor of the batch that holds the pictures")
      .key("count", &Options::count, at_least(1), "pictures of a batch")
      .key("every", &Options::every, greater_than(0), "time between two such batches");
}

}  // namespace rondo
