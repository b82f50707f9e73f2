// What the checkpoint slot does when a checkpoint is loaded.

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "callbacks/callback_states.h"
#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/core/checkpoint_uploads.h"
#include "callbacks/core/download_progress.h"
#include "callbacks/core/fetched_checkpoint.h"
#include "callbacks/core/loaded_state.h"
#include "callbacks/hooks.h"
#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_index.h"
#include "checkpoint/checkpoint_name.h"
#include "checkpoint/latest_link.h"
#include "core/directory_name.h"
#include "core/error.h"
#include "core/version.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

struct Version {
  int64_t major_number = 0;
  int64_t minor_number = 0;
};

Version version_of(const std::string& text) {
  Version version;
  if (std::sscanf(text.c_str(), "%ld.%ld", &version.major_number, &version.minor_number) != 2) {
    throw CheckpointError(fmt::format("\"{}\" is not a version", text));
  }
  return version;
}

void check_version(const Trainer& trainer, const StateDict& state) {
  const StateValue* saved = state.find("__metadata__/version");
  if (saved == nullptr || saved->as_string().find('+') != std::string::npos) {
    return;  // not written by rondo, or a local build: nothing to compare with
  }
  const Version then = version_of(saved->as_string());
  const Version now = version_of(kVersion);
  if (then.major_number == now.major_number && then.minor_number == now.minor_number) {
    return;
  }
  const std::string what = fmt::format(
      "the checkpoint was written by rondo {}, this is rondo {}", saved->as_string(), kVersion);
  if (trainer.options().checkpoint.strict_version) {
    throw CheckpointError(what + "; checkpoint.strict_version = false loads it anyway");
  }
  trainer.log().warning(what);
}

/// A name that follows from the directory says nothing: runs can be moved.
void warn_of_other_run(const Trainer& trainer, const StateDict& state) {
  const StateValue* const saved = state.find("__metadata__/run_name");
  const std::string& name = trainer.state().run_name;
  if (saved != nullptr && saved->as_string() != name &&
      name != directory_name(trainer.options().model_dir)) {
    trainer.log().warning(fmt::format(
        "the checkpoint is of run \"{}\", this run is \"{}\"", saved->as_string(), name));
  }
}

}  // namespace

void CheckpointCallback::load(Trainer& trainer, const LoadFrom& from) {
  settle(trainer, /*waits=*/true);
  const bool takes_newest = !from.path() && !from.is_nothing() && options_.autoload_last_checkpoint;
  if (takes_newest && writes_ && index_->resumable().empty()) {
    fetch_newest(trainer);
  }
  trainer.state().communicator->barrier();  // rank 0 has written what is read
  if (from.path()) {
    load_file(trainer, *from.path(), nullptr);
    return;
  }
  const Paths own = takes_newest ? index_->resumable() : Paths{};
  if (!own.empty()) {
    warn_of_branch(trainer, own.back());
    load_newest(trainer, own);
  } else if (!from.is_nothing() && !options_.load.path.empty()) {
    load_file(trainer, options_.load.path, &options_.load);
  } else {
    trainer.call(hooks::on_before_load_checkpoint, static_cast<const fs::path*>(nullptr));
  }
}

void CheckpointCallback::load(Trainer& trainer, const fs::path& path, StateDict state) {
  settle(trainer, /*waits=*/true);
  trainer.call(hooks::on_before_load_checkpoint, &path);
  distribute(trainer, path, state);
}

void CheckpointCallback::load_file(Trainer& trainer,
                                   const fs::path& path,
                                   const LoadOptions* options) {
  trainer.call(hooks::on_before_load_checkpoint, &path);
  StateDict state =
      read_named_checkpoint(path, options_.checkpoint_root, with_progress(trainer, open_remote_));
  distribute(trainer, path, state, options);
}

void CheckpointCallback::fetch_newest(Trainer& trainer) {
  if (!uploads_) {
    return;
  }
  const auto fetched = uploads_->fetch_newest();
  log_uploads(trainer);
  if (fetched) {
    trainer.log().info(fmt::format("downloaded {} from {}", fetched->string(), options_.remote));
    index_->append(*fetched);
    update_latest_link(*files_, *fetched);
  }
}

void CheckpointCallback::warn_of_branch(const Trainer& trainer, const fs::path& newest) const {
  const fs::path last_saved = index_->listed().back();
  if (last_saved != newest) {
    trainer.log().warning(
        fmt::format("loading {}, the newest by update, but the run's last save was {}, after it "
                    "went back to an earlier update: --checkpoint {} continues from that one",
                    newest.string(),
                    last_saved.string(),
                    last_saved.string()));
  }
}

void CheckpointCallback::load_newest(Trainer& trainer, const Paths& best_last) {
  std::exception_ptr newest_error;
  for (auto path = best_last.rbegin(); path != best_last.rend(); ++path) {
    trainer.call(hooks::on_before_load_checkpoint, &*path);
    StateDict state;
    try {
      state = read_checkpoint(*path);
    } catch (const CheckpointError&) {
      trainer.log().warning(
          fmt::format("{}; trying the previous checkpoint", describe(std::current_exception())));
      newest_error = newest_error ? newest_error : std::current_exception();
      continue;
    }
    if (is_in_fit_ && !state.contains("global_step")) {
      throw CheckpointError(
          fmt::format("{} has no counters to resume from (checkpoint.save_weights_only, or "
                      "save_ignore_keys): start from scratch with --checkpoint none, or start with "
                      "its weights by checkpoint.load.path and autoload_last_checkpoint = false",
                      path->string()));
    }
    distribute(trainer, *path, state);
    return;
  }
  try {
    std::rethrow_exception(newest_error);
  } catch (const CheckpointError&) {
    std::throw_with_nested(
        CheckpointError(fmt::format("none of the {} checkpoints in {} can be read; to start from "
                                    "scratch anyway, use --checkpoint none",
                                    best_last.size(),
                                    index_->file().string())));
  }
}

void CheckpointCallback::distribute(Trainer& trainer,
                                    const fs::path& path,
                                    StateDict& state,
                                    const LoadOptions* options) {
  const bool gives_model = prepare_loaded_state(trainer, path, options, state);
  trainer.call(hooks::preprocess_checkpoint, state);
  const StateDict& checked = state;
  check_version(trainer, checked);
  warn_of_other_run(trainer, checked);
  trainer.call(hooks::check_checkpoint, checked);
  if (const StateValue* callbacks = checked.find("callbacks")) {
    load_callback_states(trainer, callbacks->as_dict());
  }
  trainer.call(hooks::on_load_checkpoint, checked);
  trainer.state().has_weights |= gives_model && checked.contains("model");
  sound_.note_buffers(trainer.state().model->module());
  trainer.state().last_checkpoint = path;
  saved_update_ = trainer.state().timestamp.update;
  trainer.log().info(fmt::format("loaded {}", path.string()));
}

}  // namespace rondo
