#include "models/builtin/u_net.h"

#include <array>
#include <memory>
#include <vector>

#include "core/require.h"
#include "metrics/class_scores.h"
#include "models/blocks/auto_sizes.h"
#include "models/blocks/judge.h"
#include "models/blocks/u_net_body.h"
#include "models/losses/loss_option.h"
#include "models/module_model.h"
#include "models/register.h"

namespace rondo {

namespace {

constexpr std::array<detail::AutoSize<UNet::Options>, 2> kSizesOfUNet{
    {{"channels", &UNet::Options::channels}, {"classes", &UNet::Options::classes}}};

detail::UNetBody::Options u_net_body(const UNet::Options& options) {
  UNet::check(options);
  return {options.dims,
          *options.channels,
          *options.classes,
          options.width,
          options.depth,
          options.norm,
          /*time_width=*/0};
}

bool is_of_shares(const Factory<Criterion>& loss) {
  return loss && loss.make()->targets() == Criterion::Targets::Shares;
}

class UNetNetwork final : public ModuleModel {
 public:
  explicit UNetNetwork(const UNet::Options& options)
      : options_(options),
        judge_(options.loss, options.label),
        body_(register_module("body", std::make_shared<detail::UNetBody>(u_net_body(options)))) {}

  Outputs forward(const Batch& batch) override {
    const at::Tensor& image = batch["image"];
    detail::require_halvable("UNet", image, u_net_body(options_));
    const at::Tensor output = body_->forward(image, {}).movedim(1, -1);
    const bool is_of_classes = judge_.loss().targets() == Criterion::Targets::Classes;
    return judge_(*options_.classes == 1 && !is_of_classes ? output.squeeze(-1) : output, batch);
  }

  const Criterion* criterion() const override { return &judge_.loss(); }

  std::vector<Factory<Metric>> metrics() const override {
    std::vector<Factory<Metric>> metrics = judge_.metrics();
    if (judge_.loss().targets() == Criterion::Targets::Classes && *options_.classes > 1) {
      IoU::Options iou;
      iou.label = options_.label;
      iou.classes = *options_.classes;
      metrics.push_back(use<IoU>(iou));
    }
    return metrics;
  }

 private:
  UNet::Options options_;
  detail::Judge judge_;
  std::shared_ptr<detail::UNetBody> body_;
};

}  // namespace

void UNet::check(const Options& options) {
  detail::check_sizes("UNet", kSizesOfUNet, options);
  detail::require(options.dims >= 1 && options.dims <= 3, "UNet: dims", "1, 2 or 3", options.dims);
  detail::require(
      options.depth >= 1 && options.depth <= 8, "UNet: depth", "in [1, 8]", options.depth);
  detail::require(options.norm == "batch" || options.norm == "group" || options.norm == "none",
                  "UNet: norm",
                  "\"batch\", \"group\" or \"none\"",
                  options.norm);
  detail::require(options.width >= 1 && (options.norm != "group" || options.width % 8 == 0),
                  "UNet: width",
                  "a positive number, and a multiple of 8 for group norm",
                  options.width);
}

UNet::UNet(const Options& options)
    : WrappedModel(std::make_unique<UNetNetwork>(detail::resolved("UNet", kSizesOfUNet, options))) {
}

void UNet::resolve(Options& options, const DatasetFacts& facts) {
  const bool is_open = options.classes.is_auto();
  detail::resolve_sizes("UNet", kSizesOfUNet, options, facts);
  if (is_open && *options.classes == 2 && is_of_shares(options.loss)) {
    options.classes = 1;  // one logit says which of the two it is
  }
}

void register_u_net(Registry<Model>& registry, const Registry<Criterion>& losses) {
  using Options = UNet::Options;
  registry.add<UNet>("UNet", "Gives each place of a signal, image or volume a class or values.")
      .key("dims", &Options::dims, between(1, 3), "dimensions of an image")
      .key("channels", &Options::channels, at_least(1), "of the input")
      .key("classes", &Options::classes, at_least(1), "or values, of each place")
      .key("width", &Options::width, at_least(1), "channels of the first level")
      .key("depth", &Options::depth, between(1, 8), "times that the size is halved")
      .key("norm",
           &Options::norm,
           one_of({"batch", "group", "none"}),
           "what normalises after each convolution")
      .key("label", &Options::label, "name of the target in the batch")
      .key_of("loss", &Options::loss, LossOption(losses), "what the model is trained for");
}

}  // namespace rondo
