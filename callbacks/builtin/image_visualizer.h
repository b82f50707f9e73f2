#pragma once

#include <cstdint>
#include <string>

#include "callbacks/callback.h"
#include "callbacks/not_in_dry_runs.h"
#include "core/time.h"

namespace rondo {

/// Logs the first pictures of a training batch, `<input>/0` and so on, at intervals.
/// Source: Composer's ImageVisualizer.
class ImageVisualizer final : public Callback, public NotInDryRuns {
 public:
  struct Options {
    std::string input = "image";  ///< of the batch: [N, height, width] or [N, channels, height,
                                  ///< width] with 1 or 3 channels
    int64_t count = 4;            ///< >= 1
    Time every = 100;             ///< between two batches whose pictures are logged
  };

  /// \throws UsageError  for options out of range
  explicit ImageVisualizer(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(ImageVisualizer(options)); }

  /// \throws DataError   when the batch has no such tensor
  /// \throws ShapeError  when it holds no pictures
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch& batch, int64_t) override;

 private:
  Options options_;
};

}  // namespace rondo
