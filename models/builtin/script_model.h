#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/wrapped_model.h"

namespace rondo {

/// A model of a TorchScript file, such as one that Python's `torch.jit.save` wrote. Its parameters
/// and buffers are those of the script, under the same names; one that the script has under several
/// names appears once. Its forward takes the inputs in order and returns a tensor, a tuple or list
/// of tensors, or a dictionary of tensors by name; the model returns these and "loss", when one was
/// asked for and the batch has its target. Throws UsageError when the script returns something else
/// than `outputs` says, or a loss was asked for and there is no "logits".
///
/// The first one of a process turns LibTorch's profiling executor off, for the whole process: it
/// would run another graph in the first calls than later, and a step is recorded early.
/// \capture safe when the script is: its control flow is baked
class ScriptModel final : public WrappedModel {
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

  /// \throws UsageError  for options out of range, whatever the file
  static void check(const Options& options);

  /// \throws IoError    when the file cannot be opened
  /// \throws DataError  when it is no TorchScript file; nests the cause
  explicit ScriptModel(const Options& options);

  bool is_from_file() const override { return true; }

  /// Writes the script with its tensors as they are now, durably: the old file or the new one.
  /// \throws IoError  when it cannot be written
  void save(const std::filesystem::path& path);
};

}  // namespace rondo
