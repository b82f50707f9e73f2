#include "loops/predict.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "callbacks/core/reproducibility_callback.h"
#include "callbacks/global_callbacks.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/require.h"
#include "loops/gathered_outputs.h"
#include "loops/prediction_table.h"
#include "loops/validate_all.h"
#include "loops/validate_stage.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// On the host, as a copy: the next batch is written into the same memory.
Outputs on_host(const Outputs& outputs) {
  Outputs copies;
  for (const TensorMap::Item& item : outputs.items()) {
    copies.set(item.first,
               item.second.detach().to(at::kCPU, item.second.scalar_type(), false, true));
  }
  return copies;
}

StateDict state_of(const Outputs& outputs) {
  StateDict state;
  for (const TensorMap::Item& item : outputs.items()) {
    state.set(item.first, item.second);
  }
  return state;
}

/// Gives on the outputs of every batch of one Trainer, and keeps them where they are returned.
class Collector final : public Callback {
 public:
  /// \param loader  one in the order of its data
  Collector(Trainer& trainer, const DataLoader& loader, const PredictOptions& options)
      : trainer_(&trainer),
        loader_(loader),
        options_(options),
        all_(*trainer.state().communicator,
             [this](const Outputs& outputs, int64_t batch_idx) { take(outputs, batch_idx); }) {}

  void on_predict_start(Trainer& trainer, Model& model, const DataLoader&, Loop&) override {
    if (&trainer == trainer_) {  // a global callback hears every Trainer
      model.module().eval();
    }
  }

  void on_predict_batch_end(
      Trainer& trainer, Model&, const Outputs& outputs, const Batch&, int64_t batch_idx) override {
    if (&trainer == trainer_) {
      all_.add(on_host(outputs), batch_idx);
    }
  }

  /// After the last batch of this process.
  void finish() { all_.finish(); }

  /// Gives the table its name, or says why there is none. After a whole pass.
  void finish_table() {
    const std::string missing = table_ ? table_->finish() : "";
    if (!missing.empty()) {
      trainer_->log().info("predictions.csv is not written: " + missing);
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
  void take(const Outputs& outputs, int64_t batch_idx) {
    if (options_.return_outputs) {
      keep(outputs);
    }
    const bool is_written = options_.return_outputs || !options_.write;
    if (is_written && trainer_->state().writes()) {
      add_to_table(outputs);
    }
    if (options_.write) {
      options_.write(outputs, batch_idx);
    } else if (!options_.return_outputs && trainer_->state().writes()) {
      const auto files = real_file_system();
      const std::filesystem::path directory = trainer_->state().artifact_dir / "predictions";
      files->create_directories(directory);
      write_checkpoint(
          *files, directory / fmt::format("batch_{:06}.pt", batch_idx), state_of(outputs));
    }
  }

  void add_to_table(const Outputs& outputs) {
    if (!table_) {  // the first batch comes after the run has its directory
      table_.emplace(loader_, trainer_->state().artifact_dir / "predictions.csv");
    }
    table_->add(outputs);
  }

  void keep(const Outputs& outputs) {
    for (const TensorMap::Item& item : outputs.items()) {
      const auto known = std::find_if(batches_.begin(), batches_.end(), [&](const auto& batch) {
        return batch.first == item.first;
      });
      if (known == batches_.end()) {
        batches_.push_back({item.first, {item.second}});
      } else {
        known->second.push_back(item.second);
      }
    }
  }

  const Trainer* trainer_;
  const DataLoader& loader_;
  const PredictOptions& options_;
  GatheredOutputs all_;
  std::vector<std::pair<std::string, std::vector<at::Tensor>>> batches_;
  std::optional<PredictionTable> table_;
};

}  // namespace

Outputs predict(Trainer& trainer, const DataLoader& loader, const LoadFrom& from) {
  return predict(trainer, loader, PredictOptions(), from);
}

Outputs predict(Trainer& trainer,
                const DataLoader& loader,
                const PredictOptions& options,
                const LoadFrom& from) {
  const auto& most = options.subset_num_batches;
  detail::require(
      !most || *most >= 1, "predict: subset_num_batches", "at least 1", most.value_or(0));
  const RngScope rng(trainer);
  const DataLoader all = loader.in_order();
  Collector collector(trainer, all, options);
  ValidationLoop loop({most ? std::optional<Time>(*most) : std::nullopt, "predict"});
  bool is_whole = false;
  {
    const GlobalCallbackScope scope(collector);
    ValidateStage stage(trainer, all, loop, to_evaluate(trainer, from));
    stage.share([&] { collector.finish(); });
    is_whole = stage.run();
  }
  if (!is_whole) {
    return {};
  }
  collector.finish_table();
  if (!options.return_outputs) {
    return {};
  }
  Outputs outputs = collector.joined();
  if (!trainer.state().writes()) {
    return outputs;
  }
  write_checkpoint(
      *real_file_system(), trainer.state().artifact_dir / "predictions.pt", state_of(outputs));
  return outputs;
}

}  // namespace rondo
