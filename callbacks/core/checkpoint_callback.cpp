#include "callbacks/core/checkpoint_callback.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/numeric_environment.h"
#include "callbacks/callback_states.h"
#include "callbacks/cleanup.h"
#include "callbacks/core/checkpoint_uploads.h"
#include "callbacks/core/download_progress.h"
#include "callbacks/core/run_plan.h"
#include "callbacks/core/virtual_ranks.h"
#include "callbacks/hooks.h"
#include "checkpoint/background_save.h"
#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_index.h"
#include "checkpoint/checkpoint_name.h"
#include "checkpoint/latest_link.h"
#include "checkpoint/partial_state.h"
#include "checkpoint/temporary_files.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "core/version.h"
#include "distributed/launch_environment.h"
#include "remote/remote_address.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// True for an error that a run survives with checkpoint.on_error = "warn": weights that are not
/// finite do not get better by training on.
bool can_go_on_after(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const NonFiniteLossError&) {
    return false;
  } catch (const Error&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// Throws the error on; one about weights that are not finite with what the backend knows of how
/// they became so.
[[noreturn]] void throw_explained(const std::exception_ptr& error, Trainer& trainer) {
  try {
    std::rethrow_exception(error);
  } catch (const NonFiniteLossError& plain) {
    const std::string why = trainer.state().backend->explain_non_finite();
    throw NonFiniteLossError(why.empty() ? plain.what() : fmt::format("{}\n{}", plain.what(), why));
  }
}

/// True when a file could not be read or written, in whatever hook that was.
bool is_about_files(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(root_cause(error));
  } catch (const IoError&) {
    return true;
  } catch (const CheckpointError&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// A file for a moment.
struct RemovedAtEnd {
  fs::path path;

  ~RemovedAtEnd() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};

/// What rank 0 says: it writes, and its saves can fail. Collective.
bool is_agreed(const Trainer& trainer, bool own) {
  return !trainer.state().communicator->all_gather(own ? "1" : "").front().empty();
}

/// The first process alone knows what it wrote; a further fit of all begins with it.
void agree_on_newest(Trainer& trainer) {
  State& state = trainer.state();
  const std::string own = state.last_checkpoint.value_or("").string();
  if (const std::string newest = state.communicator->all_gather(own).front(); !newest.empty()) {
    state.last_checkpoint = newest;
  }
}

}  // namespace

void CheckpointCallback::check(const CheckpointOptions& options) {
  const bool is_fraction = options.steps.unit() == TimeUnit::Fraction;
  if (options.steps.value() < 0.0 || (is_fraction && options.steps.value() > 1.0)) {
    throw UsageError(fmt::format(
        "checkpoint.steps: expected an integer >= 0, a fraction in [0, 1] or a Time like \"1ep\", "
        "got {}",
        options.steps.to_string()));
  }
  if (options.on_error != "fail" && options.on_error != "warn") {
    throw UsageError(fmt::format("checkpoint.on_error: expected \"fail\" or \"warn\", got \"{}\"",
                                 options.on_error));
  }
  if (options.remote_keep != "same" && options.remote_keep != "all") {
    throw UsageError(fmt::format("checkpoint.remote_keep: expected \"same\" or \"all\", got \"{}\"",
                                 options.remote_keep));
  }
  if (options.upload_retries < 0 || options.upload_timeout < 0) {
    throw UsageError(fmt::format(
        "checkpoint: expected upload_retries >= 0 and upload_timeout >= 0, got {} and {}",
        options.upload_retries,
        options.upload_timeout));
  }
  if (!options.remote.empty()) {
    const std::string scheme = parse_remote_address(options.remote).scheme;
    if (scheme == "http" || scheme == "https") {
      throw UsageError(
          "checkpoint.remote: rondo only reads from web servers; a server that speaks S3's "
          "protocol "
          "is s3://bucket/prefix with AWS_ENDPOINT_URL");
    }
  }
  for (const auto& pair : options.load.rename) {
    if (pair.size() != 2) {
      throw UsageError(
          fmt::format("checkpoint.load.rename: expected pairs, got {} globs", pair.size()));
    }
  }
}

CheckpointCallback::CheckpointCallback() : CheckpointCallback(Options{}) {}

CheckpointCallback::CheckpointCallback(const Options& options)
    : files_(options.files ? options.files : real_file_system()),
      open_remote_(options.open_remote ? options.open_remote : open_remote_store) {}

CheckpointCallback::~CheckpointCallback() = default;

void CheckpointCallback::pre_setup(Trainer& trainer) {
  options_ = trainer.options().checkpoint;
  check(options_);
  name_ = std::make_unique<CheckpointName>(options_.checkpoint_name);
  if (name_->is_compressed()) {
    trainer.log().info(
        "checkpoints are compressed: torch.load reads them after gunzip or unzstd, and `rondo "
        "checkpoint convert` writes them plain");
  }
  if (options_.checkpoint_root.empty()) {
    options_.checkpoint_root = trainer.options().model_dir;
  }
  index_ = std::make_unique<CheckpointIndex>(
      files_, trainer.options().model_dir, *name_, options_.checkpoint_root);
  background_ = std::make_unique<BackgroundSave>(files_);
  writes_ = trainer.state().writes();
  if (!writes_) {
    return;
  }
  files_->create_directories(options_.checkpoint_root);
  for (const fs::path& directory :
       {options_.checkpoint_root, options_.checkpoint_root / "best", trainer.options().model_dir}) {
    for (const fs::path& stale : remove_stale_temporaries(*files_, directory)) {
      trainer.log().info(fmt::format("removed {}, left by an interrupted save", stale.string()));
    }
  }
  remove_stale_latest_links(*files_, options_.checkpoint_root);
  if (!options_.remote.empty()) {
    CheckpointUploads::Options uploads;
    uploads.address = options_.remote;
    uploads.name = *name_;
    uploads.settings.retry.retries = options_.upload_retries;
    uploads.keeps_all = options_.remote_keep == "all";
    uploads.root = options_.checkpoint_root;
    uploads.delete_here = [this](const fs::path& path) { delete_here(path); };
    uploads_ = std::make_unique<CheckpointUploads>(with_progress(trainer, open_remote_),
                                                   std::move(uploads));
  }
}

void CheckpointCallback::post_setup(Trainer& trainer) {
  sound_.note_buffers(trainer.state().model->module());
}

void CheckpointCallback::on_enter_fit(
    Trainer& trainer, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) {
  is_in_fit_ = true;
  cleanup.push([this](const std::exception_ptr&) { is_in_fit_ = false; });
  if (writes_) {
    for (const fs::path& vanished : index_->drop_vanished()) {
      trainer.log().warning(
          fmt::format("{} is in the index but no longer exists", vanished.string()));
    }
  }
  if (uploads_) {
    uploads_->begin(indexed());
    cleanup.push([this, &trainer](const std::exception_ptr&) { finish_uploads(trainer); });
  }
  cleanup.push([this, &trainer](const std::exception_ptr& error) {
    try {
      settle(trainer, /*waits=*/true);
    } catch (const NonFiniteLossError& unsound) {
      if (error == nullptr) {
        throw;
      }
      trainer.log().error(unsound.what());  // the run ends with what came first, such as the loss
    }
  });
}

void CheckpointCallback::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  sound_.note_buffers(trainer.state().model->module());
}

void CheckpointCallback::on_train_start(
    Trainer& trainer, Model&, const DataLoader&, Loop&, int64_t) {
  // A restart must not save it again: callbacks count saves.
  if (options_.save_initial_checkpoint && trainer.state().timestamp.update == 0 &&
      !is_agreed(trainer, has_initial())) {
    save_in_run(trainer);
  }
}

void CheckpointCallback::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  const State& state = trainer.state();
  if (!state.position.is_last) {
    return;
  }
  settle(trainer, /*waits=*/false);
  log_uploads(trainer);
  const bool falls_due =
      saves_in_between() &&
      crosses(options_.steps, state.previous, state.timestamp, state.plan->length());
  const bool is_final = options_.save_final_checkpoint && state.plan->is_over(state.timestamp);
  const bool is_stopped = saves_when_stopped() && trainer.stops_now();
  const VirtualRanks* const ranks = ranks_of(trainer);
  const bool has_peers = ranks != nullptr && ranks->has_peers();
  const bool is_asked = has_peers ? ranks->is_save_agreed() : trainer.take_save_request();
  if (is_asked || falls_due || is_final || is_stopped) {
    trainer.defer({}, [this, &trainer](const std::vector<at::Tensor>&) { save_in_run(trainer); });
  }
}

void CheckpointCallback::on_fit_end(Trainer& trainer, Loop&) {
  settle(trainer, /*waits=*/true);
  save_at_end(trainer);
  agree_on_newest(trainer);
}

void CheckpointCallback::save_at_end(Trainer& trainer) {
  const int64_t update = trainer.state().timestamp.update;
  const bool is_stopped = trainer.stops_now();
  if (is_agreed(trainer, saved_update_.value_or(0) == update)) {
    return;
  }
  if (is_stopped ? saves_when_stopped() : options_.save_final_checkpoint) {
    save_in_run(trainer);
    settle(trainer, /*waits=*/true);
  } else if (is_stopped) {
    trainer.log().warning(fmt::format(
        "stopped after {} updates; nothing since {} was saved: checkpoint.steps is 0 and "
        "checkpoint.save_final_checkpoint is false",
        update,
        saved_update_ ? fmt::format("update {}", *saved_update_) : "the beginning"));
  }
}

fs::path CheckpointCallback::save(Trainer& trainer) {
  settle(trainer, /*waits=*/true);
  const Stopwatch pause(trainer.state().saves.pause_s);
  const StateDict state = gather(trainer);
  saving_update_ = trainer.state().timestamp.update;
  fs::path path;
  if (writes_) {
    check_of_state(trainer)(state);
    path = write_new_checkpoint(*files_, new_name(trainer), state);
    publish(path);
    finish_save(trainer, path, pause.seconds());
  } else {
    saved_update_ = saving_update_;
  }
  return trainer.state().communicator->all_gather(path.string()).front();
}

void CheckpointCallback::save_in_run(Trainer& trainer) {
  settle(trainer, /*waits=*/true);
  const Stopwatch pause(trainer.state().saves.pause_s);
  const StateDict state = gather(trainer);
  saving_update_ = trainer.state().timestamp.update;
  if (!writes_) {
    saved_update_ = saving_update_;  // what rank 0 does with it ends this rank, or does not
    return;
  }
  fs::path path;
  try {
    if (options_.async) {
      background_->begin(
          new_name(trainer),
          state,
          [this](const fs::path& written) { publish(written); },
          check_of_state(trainer));
      return;
    }
    check_of_state(trainer)(state);
    path = write_new_checkpoint(*files_, new_name(trainer), state);
    publish(path);
  } catch (const Error&) {
    fail_save(trainer, std::current_exception());
    return;
  }
  attempt(trainer, [&] { finish_save(trainer, path, pause.seconds()); });
}

void CheckpointCallback::attempt(Trainer& trainer, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error&) {
    if (!is_about_files(std::current_exception())) {
      throw;
    }
    fail_save(trainer, std::current_exception());
  }
}

void CheckpointCallback::settle(Trainer& trainer, bool waits) {
  if (!background_->is_in_flight()) {
    return;
  }
  const Stopwatch pause(trainer.state().saves.pause_s);
  const auto done = waits ? background_->wait() : background_->poll();
  if (!done) {
    return;
  }
  trainer.state().saves.pause_s += done->waited_s;
  if (done->error) {
    fail_save(trainer, done->error);
  } else {
    attempt(trainer, [&] { finish_save(trainer, done->path, done->seconds); });
  }
}

void CheckpointCallback::finish_save(Trainer& trainer, const fs::path& path, double seconds) {
  trainer.state().last_checkpoint = path;
  saved_update_ = saving_update_;
  trainer.log().info(fmt::format("saved {} in {:.2f} s", path.string(), seconds));
  trainer.call(hooks::on_after_save_checkpoint, path);
  ++trainer.state().saves.written;
}

void CheckpointCallback::fail_save(Trainer& trainer, const std::exception_ptr& error) {
  if (options_.on_error == "fail" || !can_go_on_after(error)) {
    throw_explained(error, trainer);
  }
  ++trainer.state().saves.failed;
  const auto& last = trainer.state().last_checkpoint;
  trainer.log().error(fmt::format("{}; the run continues; its last checkpoint is {}",
                                  describe(error),
                                  last ? last->string() : "none"));
}

void CheckpointCallback::publish(const fs::path& path) {
  index_->append(path);
  update_latest_link(*files_, path);
  if (uploads_ && uploads_->is_running()) {
    uploads_->upload(path);
  }
}

void CheckpointCallback::log_uploads(Trainer& trainer) {
  if (!uploads_) {
    return;
  }
  for (const CheckpointUploads::Event& event : uploads_->take_events()) {
    event.is_warning ? trainer.log().warning(event.text) : trainer.log().info(event.text);
  }
}

void CheckpointCallback::finish_uploads(Trainer& trainer) {
  trainer.state().saves.not_uploaded +=
      uploads_->finish(std::chrono::seconds(options_.upload_timeout));
  log_uploads(trainer);
}

NewName CheckpointCallback::new_name(const Trainer& trainer) const {
  CheckpointNameValues values;
  values.time = trainer.state().timestamp;
  values.run_name = trainer.state().run_name;
  values.rank = trainer.state().communicator->rank();
  values.world_size = trainer.state().communicator->world_size();
  if (const auto launched = read_launch_environment()) {
    values.local_rank = launched->local_rank;
    values.node_rank = launched->node_rank;
  }
  return {[files = files_, root = options_.checkpoint_root, name = *name_, values] {
            return free_checkpoint_path(*files, root, name, values);
          },
          [this](const fs::path& path) { index_->announce(path); }};
}

StateCheck CheckpointCallback::check_of_state(const Trainer& trainer) const {
  const State& state = trainer.state();
  return options_.require_finite ? sound_.check_of(state.model->module(), state.timestamp.update)
                                 : [](const StateDict&) {};
}

bool CheckpointCallback::has_initial() const {
  const Paths all = index_->all();
  return std::any_of(all.begin(), all.end(), [this](const fs::path& path) {
    return name_->match(path.filename().string())->step == 0;
  });
}

StateDict CheckpointCallback::gather(Trainer& trainer) {
  StateDict state;
  trainer.call(hooks::on_save_checkpoint, state);
  StateDict callbacks = callback_states(trainer);
  if (!callbacks.empty()) {
    state.set("callbacks", std::move(callbacks));
  }
  state.set(
      "__metadata__",
      StateDict{{"version", kVersion},
                {"run_name", trainer.state().run_name},
                {"environment", to_state(current_environment(trainer.state().backend->device()))},
                {"config", trainer.options().config_text}});
  trainer.call(hooks::postprocess_checkpoint, state);
  return without_ignored(std::move(state));
}

StateDict CheckpointCallback::without_ignored(StateDict state) const {
  if (!options_.save_weights_only && options_.save_ignore_keys.empty()) {
    return state;
  }
  const std::vector<std::string> kept = options_.save_weights_only
                                            ? std::vector<std::string>{"model", "__metadata__"}
                                            : std::vector<std::string>{};
  return take_entries(state, {}, EntryFilter(kept, options_.save_ignore_keys));
}

fs::path CheckpointCallback::save_as(Trainer& trainer, const fs::path& file) {
  settle(trainer, /*waits=*/true);
  const StateDict state = gather(trainer);
  const fs::path path = options_.checkpoint_root / file;
  if (!writes_) {
    return is_remote(file.string()) ? file : path;
  }
  check_of_state(trainer)(state);
  if (!is_remote(file.string())) {
    files_->create_directories(fs::absolute(path).parent_path());
    write_checkpoint(*files_, path, state);
    return path;
  }
  const AddressAndName parts = split_address(file.string());
  const fs::path local = temporary_name(options_.checkpoint_root / "upload");
  const RemovedAtEnd removed{local};
  write_checkpoint(*files_, local, state);
  open_remote_(parts.folder, {})->upload(local, parts.name);
  return file;
}

void CheckpointCallback::remove(const fs::path& path) {
  if (!writes_) {
    return;
  }
  if (uploads_ && uploads_->is_running()) {
    uploads_->remove(path);
  } else {
    delete_here(path);
  }
}

void CheckpointCallback::delete_here(const fs::path& path) {
  files_->remove(path);  // first: a file that no index lists would stay for ever
  index_->remove(path);
}

Paths CheckpointCallback::indexed() const {
  Paths paths = index_->all();
  const auto is_gone = [this](const fs::path& path) { return !files_->exists(path); };
  paths.erase(std::remove_if(paths.begin(), paths.end(), is_gone), paths.end());
  return paths;
}

std::optional<fs::path> CheckpointCallback::resumed_from(const Trainer& trainer) const {
  const std::optional<fs::path>& loaded = trainer.state().last_checkpoint;
  return loaded && is_listed(*loaded) ? loaded : std::nullopt;
}

bool CheckpointCallback::is_listed(const fs::path& path) const {
  return index_->lists(path);
}

}  // namespace rondo
