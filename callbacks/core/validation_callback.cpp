#include "callbacks/core/validation_callback.h"

#include <utility>

#include "callbacks/core/evaluator.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

ValidationCallback::ValidationCallback(std::string scope, int64_t every_n_vals)
    : scope_(std::move(scope)), every_n_vals_(every_n_vals) {
  detail::require(every_n_vals >= 1, "ValidationCallback: every_n_vals", ">= 1", every_n_vals);
}

void ValidationCallback::run_validation(Trainer& trainer,
                                        std::optional<int64_t> loop_idx,
                                        bool is_last) {
  if (!is_nth_validation(loop_idx, is_last, every_n_vals_)) {
    return;
  }
  std::optional<NameScope> scope;
  if (!scope_.empty()) {
    scope.emplace(trainer.metric_log().scopes(), scope_);
  }
  validate(trainer);
}

std::vector<ValidationCallback*> validation_callbacks(const Trainer& trainer) {
  std::vector<ValidationCallback*> found;
  for (Callback* callback : trainer.heard_callbacks()) {
    if (auto* validation = dynamic_cast<ValidationCallback*>(callback)) {
      found.push_back(validation);
    }
  }
  return found;
}

}  // namespace rondo
