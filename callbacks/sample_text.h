#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "callbacks/callback.h"

namespace rondo {

/// Prints text that a Gpt writes when a fit ends, and keeps it in `<artifact_dir>/sample.txt`. The
/// training data must be a TextTokens, whose vocabulary it uses.
class SampleText final : public Callback {
 public:
  struct Options {
    int64_t length = 200;       ///< characters, >= 1
    double temperature = 0.8;   ///< > 0; lower is more cautious
    std::string prompt = "\n";  ///< what the text begins with
  };

  explicit SampleText(const Options& options);

  void on_fit_start(Trainer& trainer, const DataLoader& train, const Loaders&, Loop&) override;
  void on_fit_end(Trainer& trainer, Loop&) override;

 private:
  Options options_;
  std::optional<DataLoader> train_;
};

}  // namespace rondo
