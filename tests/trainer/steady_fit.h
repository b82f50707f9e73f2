#pragma once

#include <memory>
#include <string>

#include "callbacks/core/reproducibility_callback.h"
#include "configs/overrides.h"
#include "configs/toml_file.h"
#include "loops/fit_run.h"
#include "support/builtins.h"
#include "support/temp_dir.h"
#include "trainer/run_config.h"
#include "trainer/trainer.h"

namespace rondo::test {

/// A recipe's own training on one thread, without what happens between steps: validation, saving,
/// logging. Its loggers are there.
/// \param prefetch  batches that the loader makes ahead
inline RunConfig recipe_without_events(const std::string& name, const TempDir& dir, int prefetch) {
  ConfigValue root = read_toml_file(std::string(RONDO_SOURCE_DIR) + "/configs/recipes/" + name);
  apply_override(root, "trainer.fit.train_dataloader.prefetch=" + std::to_string(prefetch));
  RunConfig run = read_run_config(root, builtins());
  run.init.model_dir = dir.path();
  run.init.checkpoint.steps = 0;
  run.init.checkpoint.save_final_checkpoint = false;
  run.init.loop.eval_frequency = 0;
  run.init.logging.log_steps = 1000;
  run.init.logging.log_level = "error";
  run.init.backend.threads = 1;
  return run;
}

/// A fit after its third update: every step is a replay, and all that can be tried was.
class SteadyFit {
 public:
  /// The beginning of the fit, and three updates.
  static constexpr int kUnsteady = 1 + 3;

  explicit SteadyFit(const RunConfig& run)
      : trainer_(compared_once(run.init), TextLog(LogLevel::Error)),
        fit_(trainer_.start_fit(run.fit->train, {}, LoadFrom::nothing())),
        random_(trainer_) {
    for (int i = 0; i < kUnsteady; ++i) {
      step();
    }
  }

  void step() { fit_->advance(); }

 private:
  // Steps that are compared with eager run as written.
  static TrainerOptions compared_once(TrainerOptions options) {
    options.backend.verify = "first";
    return options;
  }

  Trainer trainer_;
  std::unique_ptr<FitRun> fit_;
  RngScope random_;
};

}  // namespace rondo::test
