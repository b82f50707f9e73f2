#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "callbacks/changes_forward.h"
#include "models/low_rank_adapters.h"

namespace rondo {

/// Trains low-rank adapters of the model's layers and freezes everything else: see LowRankAdapters
/// for which layers can be adapted. A checkpoint of a model without adapters can be loaded: they
/// begin where they are.
class Lora final : public Callback, public ChangesForward {
 public:
  struct Options {
    std::vector<std::string> modules = {};     ///< globs of names of layers, at least one
    int64_t rank = 8;                          ///< >= 1
    double alpha = 16.0;                       ///< > 0; an adapter's factor is alpha / rank
    double dropout = 0.0;                      ///< in [0, 1), of the inputs of adapters
    std::vector<std::string> also_train = {};  ///< globs of parameters that are trained whole
    std::filesystem::path base =
        {};  ///< file with the weights to begin with; empty: the model's own
    /// What checkpoints hold of the model: "all", or "adapters", with which the frozen weights come
    /// from `base`.
    std::string save = "all";
  };

  /// \throws UsageError  when "adapters" are saved and there is no base
  explicit Lora(const Options& options);
  ~Lora() override;

  static void check(const Options& options);

  void pre_setup(Trainer& trainer) override;
  void begin_forward() override;
  void end_forward() noexcept override;

  /// The adapted weights of a forward belong to its graph of gradients.
  bool can_run_parts_again() const override { return false; }

  void on_fit_end(Trainer&, Loop&) override;
  void postprocess_checkpoint(Trainer& trainer, StateDict& state) override;
  void preprocess_checkpoint(Trainer& trainer, StateDict& state) override;

  /// There once the Trainer is.
  LowRankAdapters& adapters() { return *adapters_; }

 private:
  void load_base(Model& model) const;

  Options options_;
  std::unique_ptr<LowRankAdapters> adapters_;
};

}  // namespace rondo
