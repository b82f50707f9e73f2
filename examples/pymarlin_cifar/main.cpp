// The CIFAR tutorial of PyMarlin on rondo's trainer. Pictures have CIFAR's shape, and are glyphs
// that rondo draws, in colours: nothing is downloaded.

#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <rondo/pymarlin/trainer.h>
#include <rondo/rondo.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace {

/// Glyphs of 28 x 28 as pictures of 3 x 32 x 32, each of another colour.
class ColouredGlyphs final : public rondo::Dataset {
 public:
  using Options = rondo::Glyphs::Options;

  explicit ColouredGlyphs(const Options& options) : glyphs_(options) {}

  int64_t size() const override { return glyphs_.size(); }

  rondo::Sample get(int64_t index) const override {
    rondo::Sample sample = glyphs_.get(index);
    const at::Tensor grey = at::constant_pad_nd(sample["image"], {2, 2, 2, 2});
    sample.set("image",
               at::cat({grey * (0.2 * static_cast<double>(index % 6)),
                        grey * (0.25 * static_cast<double>(index % 5)),
                        grey}));
    return sample;
  }

 private:
  rondo::Glyphs glyphs_;
};

class CifarModule final : public rondo::pymarlin::ModuleInterface {
 public:
  CifarModule() {
    register_module("conv1", conv1_);
    register_module("conv2", conv2_);
    register_module("fc1", fc1_);
    register_module("fc2", fc2_);
    register_module("fc3", fc3_);
  }

  rondo::pymarlin::OptimizersSchedulers get_optimizers_schedulers(int64_t, int64_t) override {
    rondo::Sgd::Options options;
    options.lr = 0.05;
    options.momentum = 0.9;
    return {rondo::use<rondo::Sgd>(options), {}};
  }

  rondo::DataLoader get_train_dataloader(int64_t batch_size) override {
    ColouredGlyphs::Options data;
    data.size = 2000;
    rondo::LoaderOptions options;
    options.batch_size = batch_size;
    options.shuffle = true;
    return {"train", rondo::use<ColouredGlyphs>(data), options};
  }

  rondo::Loaders get_val_dataloaders(int64_t batch_size) override {
    ColouredGlyphs::Options data;
    data.size = 500;
    data.split = "val";
    rondo::LoaderOptions options;
    options.batch_size = batch_size;
    return {{"val", rondo::use<ColouredGlyphs>(data), options}};
  }

  rondo::pymarlin::StepOutputs train_step(const at::Tensor&,
                                          const rondo::Batch& batch,
                                          c10::Device) override {
    const at::Tensor logits = net(batch["image"]);
    return {at::cross_entropy_loss(logits, batch["label"])};
  }

  rondo::pymarlin::StepOutputs val_step(const at::Tensor&,
                                        const rondo::Batch& batch,
                                        c10::Device) override {
    const at::Tensor logits = net(batch["image"]);
    return {at::cross_entropy_loss(logits, batch["label"]), logits, batch["label"].clone()};
  }

  void on_end_val_epoch(int64_t global_step,
                        const rondo::pymarlin::CollatedOutputs& outputs,
                        const std::string& key) override {
    const at::Tensor right = outputs[1].argmax(1) == outputs[2];
    std::printf("%s after %ld steps: %.1f %% right\n",
                key.c_str(),
                static_cast<long>(global_step),
                100.0 * right.to(at::kDouble).mean().item<double>());
  }

 private:
  at::Tensor net(const at::Tensor& image) {
    const at::Tensor first = at::max_pool2d(at::relu(conv1_->forward(image)), 2);
    const at::Tensor second = at::max_pool2d(at::relu(conv2_->forward(first)), 2);
    const at::Tensor hidden = at::relu(fc1_->forward(at::flatten(second, 1)));
    return fc3_->forward(at::relu(fc2_->forward(hidden)));
  }

  torch::nn::Conv2d conv1_{torch::nn::Conv2dOptions(3, 6, 5)};
  torch::nn::Conv2d conv2_{torch::nn::Conv2dOptions(6, 16, 5)};
  torch::nn::Linear fc1_{16 * 5 * 5, 120};
  torch::nn::Linear fc2_{120, 84};
  torch::nn::Linear fc3_{84, 10};
};

}  // namespace

int main() {
  rondo::pymarlin::TrainerArguments arguments;
  arguments.epochs = 3;
  arguments.train_batch_size = 32;
  arguments.gpu_batch_size_limit = 16;
  arguments.val_batch_size = 100;
  arguments.writers = {"tensorboard"};
  arguments.checkpointer_args.save_dir = "runs/cifar";
  arguments.checkpointer_args.model_state_save_dir = "runs/cifar";
  rondo::pymarlin::Trainer(std::make_shared<CifarModule>(), arguments).train();
}
