#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/factory.h"
#include "core/registry.h"
#include "loops/train_step.h"
#include "models/model.h"

namespace rondo {

struct DistillationOptions {
  Factory<Model> teacher = {};         ///< required; it is not trained
  std::filesystem::path weights = {};  ///< a checkpoint with the teacher's; empty: as it is made
  std::string output = "logits";       ///< what student and teacher have in common
  double temperature = 2.0;            ///< > 0
  double weight = 0.5;                 ///< of the teacher's part of the loss, in [0, 1]
};

/// Trains a student on its own loss and on what a frozen teacher says of the same batch:
/// `(1 - weight) * loss + weight * temperature^2 * KL(teacher || student)`, both softened by the
/// temperature; logged as `loss/student` and `loss/teacher`. The teacher runs in eval mode.
/// Source: Hinton et al. 2015, arXiv:1503.02531, section 2
class Distillation final : public TrainStep {
 public:
  using Options = DistillationOptions;

  /// \throws UsageError  without a teacher
  explicit Distillation(const Options& options);
  ~Distillation() override;

  /// \throws CheckpointError  when the weights do not fit the teacher
  void setup(Trainer& trainer) override;

  Outputs run(StepContext& step, const Batch& batch) override;

  /// The teacher's parameters and buffers.
  NamedTensors constants() const override;

  /// The teacher.
  std::vector<const torch::nn::Module*> captured_modules() const override;

 private:
  at::Tensor taught(const Outputs& student, const Batch& batch) const;

  Options options_;
  std::unique_ptr<Model> teacher_;
};

void register_distillation(Registry<TrainStep>& registry, const Registry<Model>& models);

}  // namespace rondo
