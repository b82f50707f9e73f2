#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "models/from_module.h"
#include "models/module_model.h"

namespace c10 {
struct IValue;
}

namespace rondo {

/// A model of a TorchScript file, such as one that Python's `torch.jit.save` wrote. Its parameters
/// and buffers are those of the script, under the same names; one that the script has under several
/// names appears once. Its forward takes the inputs in order and returns a tensor, a tuple or list
/// of tensors, or a dictionary of tensors by name.
///
/// The first one of a process turns LibTorch's profiling executor off, for the whole process: it
/// would run another graph in the first calls than later, and a step is recorded early.
class ScriptModel final : public ModuleModel {
 public:
  struct Options {
    std::filesystem::path path = {};              ///< of the TorchScript file
    std::vector<std::string> inputs = {"image"};  ///< in the batch, at least one
    /// What the script returns, in order; a dictionary names its tensors itself.
    std::vector<std::string> outputs = {"logits"};
    std::string loss = "cross_entropy";  ///< of "logits": "cross_entropy", "mse", or "none" for a
                                         ///< script that returns its own "loss", or has none
    std::string target = "label";        ///< in the batch, what the loss compares with
  };

  /// \throws IoError    when the file cannot be opened
  /// \throws DataError  when it is no TorchScript file; nests the cause
  explicit ScriptModel(const Options& options);
  ~ScriptModel() override;

  /// "loss", when one was asked for and the batch has its target, and what the script returns.
  /// \throws UsageError  when the script returns something else than `outputs` says, or a loss was
  ///                     asked for and there is no "logits"
  /// \capture safe when the script is: its control flow is baked
  Outputs forward(const Batch& batch) override;

  std::vector<Factory<Metric>> metrics() const override { return loss_.metrics; }

  /// Reaches the script's own modules.
  void train(bool on = true) override;

 private:
  Outputs named(const c10::IValue& result) const;
  [[noreturn]] void refuse(const c10::IValue& result) const;

  struct Script;  // keeps the wide TorchScript headers out of this one

  Options options_;
  Loss loss_;
  std::unique_ptr<Script> script_;
};

}  // namespace rondo
