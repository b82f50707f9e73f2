#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "models/from_module.h"
#include "models/module_model.h"

namespace rondo {

/// A model of a TorchScript file, such as one that Python's `torch.jit.save` wrote. Its parameters
/// and buffers are those of the script, under the same names; one that the script has under several
/// names appears once. Its forward takes the inputs in order and returns one tensor.
///
/// The first one of a process turns LibTorch's profiling executor off, for the whole process: it
/// would run another graph in the first calls than later, and a step is recorded early.
class ScriptModel final : public ModuleModel {
 public:
  struct Options {
    std::filesystem::path path = {};              ///< of the TorchScript file
    std::vector<std::string> inputs = {"image"};  ///< in the batch, at least one
    std::string loss = "cross_entropy";           ///< "cross_entropy", "mse" or "none"
    std::string target = "label";                 ///< in the batch, what the loss compares with
  };

  /// \throws IoError    when the file cannot be opened
  /// \throws DataError  when it is no TorchScript file; nests the cause
  explicit ScriptModel(const Options& options);
  ~ScriptModel() override;

  /// "loss", when there is one and the batch has its target, and "logits", what the script returns.
  /// \throws UsageError  when the script returns something else than one tensor
  /// \capture safe when the script is: its control flow is baked
  Outputs forward(const Batch& batch) override;

  std::vector<Factory<Metric>> metrics() const override { return loss_.metrics; }

  /// Reaches the script's own modules.
  void train(bool on = true) override;

 private:
  struct Script;  // keeps the wide TorchScript headers out of this one

  Options options_;
  Loss loss_;
  std::unique_ptr<Script> script_;
};

}  // namespace rondo
