#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "callbacks/callback.h"
#include "loops/validate_stage.h"

namespace rondo {

/// Every loader with the model as it is, one batch at a time: the validation between two stages
/// of training, and of each checkpoint of a `validate_all`.
class ValidationRun {
 public:
  /// \param loop_idx  number of the stage that it follows; nothing outside of a fit
  ValidationRun(Trainer& trainer,
                const Loaders& loaders,
                Loop& loop,
                std::optional<int64_t> loop_idx,
                bool is_last);

  /// Evaluates one batch.
  /// \return false when every loader and the callbacks' own validations are done
  bool advance();

  /// Leaves the running stage because of `error`.
  /// \return the exception to go on with
  std::exception_ptr fail(std::exception_ptr error);

 private:
  bool start_next();

  Trainer& trainer_;
  const Loaders& loaders_;
  Loop& loop_;
  std::optional<int64_t> loop_idx_;
  bool is_last_;
  size_t next_ = 0;
  std::unique_ptr<ValidateStage> stage_;
};

}  // namespace rondo
