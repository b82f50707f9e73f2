#include "callbacks/core/artifact_dir_callback.h"

#include <ATen/Parallel.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

#include "callbacks/core/run_plan.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/report_file.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// `<parent>/<stamp>`, or with `_2`, `_3` … when several Trainers begin in one second.
fs::path new_stamped_directory(const fs::path& parent) {
  const std::string stamp = fmt::format("{:%Y%m%d_%H%M%S}", fmt::localtime(std::time(nullptr)));
  for (int attempt = 1;; ++attempt) {
    const fs::path path = parent / (attempt == 1 ? stamp : fmt::format("{}_{}", stamp, attempt));
    std::error_code error;
    if (fs::create_directory(path, error)) {
      return path;
    }
    if (error) {
      throw IoError(fmt::format("cannot create the directory {}", path.string()), error.value());
    }
  }
}

/// A directory that no other process has.
fs::path new_temporary_directory() {
  std::string path = (fs::temp_directory_path() / "rondo_rank_XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) {
    throw IoError("cannot create the directory " + path, errno);
  }
  return path;
}

constexpr const char* kConfigFile = "trainer_params.toml";

/// `config` with a seed in its [trainer.init], which has none; as it is when it has no such table.
std::string with_seed(std::string config, uint64_t seed) {
  const std::string table = "[trainer.init]\n";
  const size_t at = config.rfind(table, 0) == 0 ? 0 : config.find("\n" + table) + 1;
  if (config.compare(at, table.size(), table) == 0) {
    config.insert(at + table.size(), fmt::format("seed = {}\n", seed));
  }
  return config;
}

}  // namespace

void link_relative(const fs::path& link, const fs::path& target) {
  const fs::path temporary = temporary_name(link);
  std::error_code error;
  fs::create_symlink(fs::relative(target, link.parent_path()), temporary, error);
  if (!error) {
    fs::rename(temporary, link, error);
  }
  if (error) {
    throw IoError(fmt::format("cannot link {} to {}", link.string(), target.string()),
                  error.value());
  }
}

ArtifactDirCallback::~ArtifactDirCallback() {
  if (!temporary_.empty()) {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  }
}

void ArtifactDirCallback::pre_setup(Trainer& trainer) {
  if (!trainer.state().writes()) {
    temporary_ = new_temporary_directory();
    trainer.state().artifact_dir = temporary_;
    return;
  }
  const fs::path logs = trainer.options().model_dir / "logs";
  real_file_system()->create_directories(logs);
  trainer.state().artifact_dir = new_stamped_directory(logs);
  link_relative(logs / "latest", trainer.state().artifact_dir);
  if (!trainer.options().config_text.empty()) {
    write_report(
        trainer.log(), trainer.state().artifact_dir / kConfigFile, trainer.options().config_text);
  }
}

void ArtifactDirCallback::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  // Not sooner: a run that resumes goes on with the seed of its checkpoint, not the one it drew.
  if (!trainer.options().config_text.empty() && !trainer.options().seed) {
    write_report(trainer.log(),
                 trainer.state().artifact_dir / kConfigFile,
                 with_seed(trainer.options().config_text, trainer.state().seed));
  }
}

void ArtifactDirCallback::on_train_start(Trainer&, Model&, const DataLoader&, Loop&, int64_t) {
  ++executors_;
}

void ArtifactDirCallback::on_validate_start(Trainer&, Model&, const DataLoader&, Loop&) {
  ++executors_;
}

void ArtifactDirCallback::on_train_batch_start(Trainer& trainer,
                                               Model&,
                                               const Batch&,
                                               int64_t batch_idx) {
  if (batch_idx == 0) {
    write_metadata(trainer, "train");
  }
}

void ArtifactDirCallback::on_validate_batch_start(Trainer& trainer,
                                                  Model&,
                                                  const Batch&,
                                                  int64_t batch_idx) {
  if (batch_idx == 0) {
    write_metadata(trainer, "val");
  }
}

void ArtifactDirCallback::write_metadata(Trainer& trainer, const char* stage) {
  const State& state = trainer.state();
  const fs::path directory = state.artifact_dir / fmt::format("{:03}_{}", executors_ - 1, stage);
  std::optional<int64_t> steps = state.executor->num_batches();
  std::string text = fmt::format("{{\"stage\": \"{}\", \"threads\": {}",
                                 state.is_training ? "train" : "validate",
                                 at::get_num_threads());
  if (state.is_training && state.plan != nullptr) {
    steps = state.plan->updates_of_stage(state.previous);
  }
  text += fmt::format(", \"num_steps\": {}", steps ? std::to_string(*steps) : std::string("null"));
  if (state.is_training) {
    text += fmt::format(", \"checkpoint_steps\": \"{}\"",
                        trainer.options().checkpoint.steps.to_string());
  }
  write_report(trainer.log(), directory / "metadata.json", text + "}\n");
}

}  // namespace rondo
