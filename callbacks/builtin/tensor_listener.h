#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "core/time.h"

namespace rondo {

/// Hears tensors of a training step by name: `input/<name>` of the batch as the model sees it,
/// `output/<name>` of what it gives, and on updates `param/<name>` and `grad/<name>`, unscaled and
/// not yet clipped. Derive from it and say what becomes of them. After the first update it warns of
/// globs that fit no tensor.
/// Source: the listeners of Cerebras' ModelZoo trainer.
class TensorListener : public Callback {
 public:
  void on_before_forward(Trainer& trainer, Model&, const Batch&, Batch& input) override;
  void on_after_forward(Trainer& trainer, Model&, Outputs& outputs, const Batch&) override;
  void on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) override;
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;

 protected:
  /// \param globs  of names; at least one
  /// \throws UsageError  without any
  TensorListener(const std::string& callback, std::vector<std::string> globs);

  /// Those of one hook that fit a glob, in the step; never none.
  virtual void hear(Trainer& trainer, const NamedTensors& tensors) = 0;

  /// Runs the function with the tensors after each step that is a log step, or where `every` is
  /// given, after those in which it falls due.
  static void after_steps(Trainer& trainer,
                          const NamedTensors& tensors,
                          const std::optional<Time>& every,
                          std::function<void(const std::vector<at::Tensor>&)> function);

 private:
  struct Glob {
    std::string text;
    bool has_fit = false;
  };

  void pick(Trainer& trainer, const NamedTensors& tensors);
  bool fits(const std::string& name);

  std::string callback_;
  std::vector<Glob> globs_;
  bool has_checked_ = false;
  std::set<std::string> seen_;  // names of tensors, until the globs are checked
};

/// Logs histograms of tensors, `<name>/<tensor>`.
class SummaryTensorListener final : public TensorListener {
 public:
  struct Options {
    std::vector<std::string> tensor_names = {};  ///< globs
    std::string name = "summary";
    std::optional<Time> every = {};  ///< > 0; absent: on log steps
  };

  explicit SummaryTensorListener(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(SummaryTensorListener(options)); }

 protected:
  void hear(Trainer& trainer, const NamedTensors& tensors) override;

 private:
  Options options_;
};

/// Logs L2 norms of tensors, `<name>/<tensor>`, and `<name>/__all__` of all that a hook has.
class NormTensorListener final : public TensorListener {
 public:
  struct Options {
    std::vector<std::string> tensor_names = {};  ///< globs
    std::string name = "norm";
  };

  explicit NormTensorListener(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(NormTensorListener(options)); }

  void on_train_step_end(Trainer& trainer, Model&, const Outputs&, const Batch&) override;

 protected:
  void hear(Trainer& trainer, const NamedTensors& tensors) override;

 private:
  Options options_;
  std::vector<at::Tensor> norms_;  // of this step, while it runs or is recorded
};

/// Writes the names that listeners can ask for, with shapes and types, into
/// `<artifact_dir>/available_tensor_names.txt`.
class DumpAvailableTensorNames final : public TensorListener {
 public:
  DumpAvailableTensorNames() : TensorListener("DumpAvailableTensorNames", {"*"}) {}

  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;

 protected:
  void hear(Trainer& trainer, const NamedTensors& tensors) override;

 private:
  std::vector<std::string> lines_;
  bool is_written_ = false;
};

/// Writes tensors of steps into `<artifact_dir>/act_dumps.npz`, which numpy reads: each name with a
/// leading dimension for the steps in which it had the same shape.
class DumpActivations final : public TensorListener {
 public:
  struct Options {
    std::vector<std::string> tensor_names = {"output/*"};  ///< globs
    int64_t steps = 1;                                     ///< batches that are kept, >= 1
  };

  explicit DumpActivations(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(DumpActivations(options)); }

  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;
  void on_fit_end(Trainer& trainer, Loop&) override;

 protected:
  void hear(Trainer& trainer, const NamedTensors& tensors) override;

 private:
  void write(Trainer& trainer);

  Options options_;
  int64_t steps_ = 0;
  bool is_written_ = false;
  std::map<std::string, std::vector<at::Tensor>> kept_;
};

}  // namespace rondo
