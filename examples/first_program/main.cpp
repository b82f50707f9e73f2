// docs/first_program.md: a network and data of one's own, trained, resumed and used.

#include <ATen/Functions.h>
#include <rondo/module.h>
#include <rondo/rondo.h>
#include <torch/nn/modules/linear.h>

#include <iostream>

/// Any torch module with a forward from tensor to tensor.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    hidden = register_module("hidden", torch::nn::Linear(2, 64));
    out = register_module("out", torch::nn::Linear(64, 2));
  }

  at::Tensor forward(const at::Tensor& x) { return out(at::relu(hidden(x))); }

  torch::nn::Linear hidden{nullptr};
  torch::nn::Linear out{nullptr};
};

TORCH_MODULE(Net);

/// Points, and whether they are within a circle.
rondo::DataLoader points(const char* label, int64_t count, bool shuffle) {
  const at::Tensor x = at::rand({count, 2}) * 2 - 1;
  const at::Tensor inside = (x.square().sum(1) < 0.5).to(at::kLong);
  rondo::LoaderOptions batches;
  batches.batch_size = 64;
  batches.shuffle = shuffle;
  return {label, rondo::from_tensors({{"x", x}, {"label", inside}}), batches};
}

int main() {
  using namespace rondo;
  const DataLoader train = points("train", 4000, true);
  const DataLoader val = points("val", 1000, false);

  TrainerOptions run;
  run.model_dir = "runs/circle";
  run.seed = 1;
  run.model = from_module([] { return Net(); }, "x", cross_entropy("label"));
  run.optimizer = use<AdamW>({5e-3});
  run.loop.max_steps = 500;
  run.loop.eval_frequency = 100;
  run.checkpoint.steps = 100;
  run.loggers = {use<JsonlLogger>(), use<RecordLogger>()};

  Trainer trainer(run);
  const FitResult result = trainer.fit(train, {val});
  std::cout << result.steps << " updates, accuracy " << *result.metrics.number("val/accuracy")
            << '\n';

  const at::Tensor point = at::full({1, 2}, 0.1);
  const DataLoader asked("asked", from_tensors({{"x", point}}));
  const Outputs outputs = trainer.predict(asked);
  std::cout << "(0.1, 0.1) is in class " << outputs["logits"].argmax(1).item<int64_t>() << '\n';
}
