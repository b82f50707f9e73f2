#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rondo::pymarlin {

/// When and where a run is saved. Names and defaults: PyMarlin 0.3.5.
struct CheckpointerArguments {
  bool checkpoint = true;                                      ///< save at all
  int64_t period = 1;                                          ///< epochs between two saves, >= 1
  std::filesystem::path save_dir = "checkpoints";              ///< of the run's checkpoints
  std::filesystem::path model_state_save_dir = "checkpoints";  ///< of the model alone, at the end
  std::filesystem::path load_dir = {};       ///< where the checkpoint is that a new run begins with
  std::filesystem::path load_filename = {};  ///< its name; empty: "<prefix>_<largest number>.<ext>"
  std::string file_prefix = "model";
  std::string file_ext = "pt";
};

/// How stats are written. Names and defaults: PyMarlin 0.3.5.
struct StatInitArguments {
  int64_t log_steps = 1;           ///< optimizer steps between two lines of frequent stats, >= 1
  int64_t log_model_steps = 1000;  ///< optimizer steps between two records of norms, >= 1
  std::string exclude_list =       ///< regular expression of parameters without norms
      R"(bias|LayerNorm|layer\.[3-9]|layer\.1(?!1)|layer\.2(?!3))";
};

struct WriterInitArguments {
  std::filesystem::path tb_log_dir =
      "logs";  ///< of the TensorBoard writer; as it is here: "events" in the run's directory
};

/// Names and defaults: PyMarlin 0.3.5.
struct TrainerArguments {
  int64_t epochs = 1;                  ///< of the run in all, >= 1
  bool use_gpu = true;                 ///< where there is one
  int64_t train_batch_size = 1;        ///< samples of an optimizer step over all ranks, >= 1
  int64_t gpu_batch_size_limit = 512;  ///< samples of a micro-batch at most, >= 1
  int64_t val_batch_size = 1;          ///< samples of a batch of a validation, >= 1
  std::optional<int64_t> max_train_steps_per_epoch;  ///< optimizer steps
  std::optional<int64_t> max_val_steps_per_epoch;    ///< batches of each loader
  bool clip_grads = true;
  double max_grad_norm = 1.0;  ///< > 0
  /// "stdout" and "tensorboard"; "aml" is passed over, as PyMarlin does outside of Azure.
  std::vector<std::string> writers = {"stdout", "aml", "tensorboard"};
  CheckpointerArguments checkpointer_args = {};
  StatInitArguments stats_args = {};
  WriterInitArguments writer_args = {};
  bool disable_tqdm = false;       ///< no progress line
  std::string log_level = "INFO";  ///< DEBUG, INFO, WARNING or ERROR
  /// "sp"; "ddp" for the ranks of a launcher; "sp-amp" and "ddp-amp" with autocast and a scaled
  /// loss.
  std::string backend = "sp";
};

/// \throws UsageError  naming the argument that is out of range
void check(const TrainerArguments& arguments);

/// Samples of a micro-batch: the limit where it divides the batch, else the batch halved until it
/// is no more than the limit. \throws UsageError  when there are more ranks than samples
int64_t train_step_batch_size(const TrainerArguments& arguments, int64_t world_size = 1);

/// Micro-batches of an optimizer step.
int64_t gradient_accumulation(const TrainerArguments& arguments, int64_t world_size = 1);

}  // namespace rondo::pymarlin
