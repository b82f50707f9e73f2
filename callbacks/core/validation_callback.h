#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/callback.h"

namespace rondo {

/// Your own validation besides those of the loaders, such as scoring samples or another task:
/// derive and override `validate`. It runs after the loaders, with the same checkpoint.
/// Source: the ValidationCallback of Cerebras' ModelZoo trainer.
class ValidationCallback : public Callback {
 public:
  /// \param scope         of its metrics, "" for none
  /// \param every_n_vals  runs in every n-th validation of a fit and in the last one, >= 1
  explicit ValidationCallback(std::string scope, int64_t every_n_vals = 1);

  const std::string& scope() const { return scope_; }

  /// Outside of a fit (`loop_idx` is empty) it always runs.
  void run_validation(Trainer& trainer, std::optional<int64_t> loop_idx, bool is_last) final;

 protected:
  /// Called with the scope open and no loop running; may call `Trainer::validate` with
  /// `LoadFrom::nothing()`.
  virtual void validate(Trainer& trainer) = 0;

 private:
  std::string scope_;
  int64_t every_n_vals_;
};

/// The validation callbacks that a Trainer calls; global ones last.
std::vector<ValidationCallback*> validation_callbacks(const Trainer& trainer);

}  // namespace rondo
