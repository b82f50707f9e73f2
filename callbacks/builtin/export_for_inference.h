#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "callbacks/not_in_dry_runs.h"
#include "data/data_loader.h"

namespace rondo {

/// Writes the trained model into a file that other programs run when a fit ends, as `rondo export`
/// does. Source: ExportForInferenceCallback of Composer.
class ExportForInference final : public Callback, public NotInDryRuns {
 public:
  struct Options {
    std::filesystem::path file = "model.ts";  ///< in model_dir, or anywhere
    std::string format = "torchscript";       ///< or "safetensors", "inference-step"
    int64_t batch_size = 0;                   ///< rows of a batch; 0: as the loader's
    std::vector<std::string> outputs = {};    ///< which; none: all but losses
  };

  /// \throws UsageError  for an unknown format
  explicit ExportForInference(const Options& options);

  void on_fit_start(Trainer& trainer,
                    const DataLoader& train,
                    const Loaders& val,
                    Loop& loop) override;
  void on_fit_end(Trainer& trainer, Loop& loop) override;

 private:
  Options options_;
  std::optional<DataLoader> data_;
};

}  // namespace rondo
