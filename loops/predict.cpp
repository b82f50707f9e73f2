#include "loops/predict.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "callbacks/global_callbacks.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "loops/prediction_table.h"
#include "loops/validate_all.h"
#include "loops/validate_stage.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Keeps the outputs of every batch of one Trainer on the host.
class Collector final : public Callback {
 public:
  explicit Collector(const Trainer& trainer) : trainer_(&trainer) {}

  void on_predict_start(Trainer& trainer, Model& model, const DataLoader&, Loop&) override {
    if (&trainer == trainer_) {  // a global callback hears every Trainer
      model.module().eval();
    }
  }

  void on_predict_batch_end(
      Trainer& trainer, Model&, const Outputs& outputs, const Batch&, int64_t) override {
    if (&trainer == trainer_) {
      keep(outputs);
    }
  }

  /// \throws ShapeError  naming the output whose batches do not fit together
  Outputs joined() const {
    Outputs all;
    for (const auto& item : batches_) {
      const bool has_rows = item.second.front().dim() > 0;
      try {
        all.set(item.first, has_rows ? at::cat(item.second) : at::stack(item.second));
      } catch (const c10::Error&) {
        std::throw_with_nested(ShapeError(fmt::format(
            "the batches of output \"{}\" differ in more than their rows", item.first)));
      }
    }
    return all;
  }

 private:
  void keep(const Outputs& outputs) {
    for (const TensorMap::Item& item : outputs.items()) {
      // A copy: the next batch is written into the same memory.
      const at::Tensor host =
          item.second.detach().to(at::kCPU, item.second.scalar_type(), false, true);
      const auto known = std::find_if(batches_.begin(), batches_.end(), [&](const auto& batch) {
        return batch.first == item.first;
      });
      if (known == batches_.end()) {
        batches_.push_back({item.first, {host}});
      } else {
        known->second.push_back(host);
      }
    }
  }

  const Trainer* trainer_;
  std::vector<std::pair<std::string, std::vector<at::Tensor>>> batches_;
};

}  // namespace

Outputs predict(Trainer& trainer, const DataLoader& loader, const LoadFrom& from) {
  Collector collector(trainer);
  ValidationLoop loop({std::nullopt, "predict"});
  bool is_whole = false;
  {
    const GlobalCallbackScope scope(collector);
    const DataLoader all = loader.in_order();
    is_whole = ValidateStage(trainer, all, loop, to_evaluate(trainer, from)).run();
  }
  if (!is_whole) {
    return {};
  }
  Outputs outputs = collector.joined();
  StateDict state;
  for (const TensorMap::Item& item : outputs.items()) {
    state.set(item.first, item.second);
  }
  const std::filesystem::path& directory = trainer.state().artifact_dir;
  write_checkpoint(*real_file_system(), directory / "predictions.pt", state);
  if (const auto table = prediction_table(outputs, loader)) {
    write_atomically(*real_file_system(), directory / "predictions.csv", *table);
  }
  return outputs;
}

}  // namespace rondo
