#include "launched_ranks.h"

#include <fmt/format.h>

#include <fstream>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_tools.h"
#include "core/state_dict.h"

namespace rondo::test {

namespace fs = std::filesystem;

fs::path ranks_config(const TempDir& dir) {
  std::ofstream(dir / "run.toml") << fmt::format(R"([trainer.init]
model_dir  = "{0}/run"
seed       = 1
model      = {{ name = "Mlp", sizes = [784, 16, 10], dropout = 0.2 }}
backend    = {{ threads = 1 }}
loop       = {{ max_steps = 60, eval_frequency = 30, grad_accum_steps = 2 }}
checkpoint = {{ steps = 5 }}

[trainer.init.optimizer.AdamW]
lr = 1e-3

[trainer.fit]
train_dataloader = {{ label = "train", dataset = "Glyphs", size = 100, batch_size = 8, shuffle = true }}
val_dataloader   = [{{ label = "val", dataset = "Glyphs", size = 39, split = "val", batch_size = 20 }}]

[trainer.predict]
dataloader = "val"
)",
                                                 dir.path().string());
  return dir / "run.toml";
}

std::vector<std::string> fit(const fs::path& config, const std::string& model_dir) {
  return {"fit", config.string(), "-o", model_dir};
}

std::vector<std::string> after(std::vector<std::string> first,
                               const std::vector<std::string>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

std::vector<std::string> different_bits(const fs::path& a, const fs::path& b) {
  const StateDict first = read_checkpoint(a);
  const StateDict second = read_checkpoint(b);
  std::vector<std::string> all;
  for (const char* section : {"model", "optimizer", "rng"}) {
    const std::vector<std::string> found =
        state_differences(first.at(section).as_dict(), second.at(section).as_dict());
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

}  // namespace rondo::test
