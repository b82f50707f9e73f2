#include "callbacks/core/backend_callback.h"

#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/blas_advice.h"
#include "backends/numeric_environment.h"
#include "callbacks/asks_for_instruments.h"
#include "callbacks/callback_states.h"
#include "callbacks/core/device_of_run.h"
#include "callbacks/core/rank_agreement.h"
#include "core/available_cores.h"
#include "core/error.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/report_file.h"
#include "models/model_state.h"
#include "models/module_fingerprint.h"
#include "tracing/make_backend.h"
#include "trainer/thread_calibration.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

using Modules = std::vector<const torch::nn::Module*>;

void append(CapturedState& all, const std::string& prefix, const NamedTensors& tensors) {
  for (const NamedTensor& tensor : tensors) {
    all.emplace_back(prefix + tensor.first, tensor.second);
  }
}

/// What the code of a step depends on besides the memory of its state. A number such as `lr` may be
/// given another tensor, not only another value.
/// \param modules  of callbacks
uint64_t fingerprint_of(const State& state, const Modules& modules) {
  Fingerprint fingerprint;
  add_module(fingerprint, state.model->module());
  for (const torch::nn::Module* module : modules) {
    add_module(fingerprint, *module);
  }
  for (const auto& optimizer : state.optimizers) {
    for (const ParamGroup& group : optimizer->groups()) {
      for (const NamedTensor& number : group.numbers()) {
        fingerprint.add(number.second.unsafeGetTensorImpl());
      }
    }
  }
  return fingerprint.value();
}

Modules modules_of(const CallbackMap& callbacks) {
  Modules all;
  for (const CallbackMap::Entry& entry : callbacks.entries()) {
    const Modules own = entry.callback->captured_modules();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

/// Names of passes and operators hold nothing that JSON would have escaped.
std::string json_of(const std::vector<std::pair<std::string, int64_t>>& counts) {
  std::string members;
  for (const auto& [name, count] : counts) {
    members += fmt::format("{}\"{}\": {}", members.empty() ? "" : ", ", name, count);
  }
  return "{" + members + "}";
}

std::string json_of(const std::vector<StepGuard>& guards) {
  std::string members;
  for (const StepGuard& guard : guards) {
    members += fmt::format("{}{{\"read\": {}, \"answer\": {}}}",
                           members.empty() ? "" : ", ",
                           json_string(guard.read),
                           json_string(guard.answer));
  }
  return "[" + members + "]";
}

std::string json_of(const StepReport& report) {
  const StepStats& stats = report.stats;
  const std::string reason = report.reason.empty() ? "null" : json_string(report.reason);
  return fmt::format(
      "{{\"mode\": {}, \"reason\": {}, \"guards\": {}, \"variant_of\": {}, \"undone\": {}, "
      "\"eager_runs\": {}, \"eager_s\": {:.6f}, "
      "\"share_of_time\": {:.4f}, \"operators_recorded\": {}, \"operators_replayed\": {}, "
      "\"passes\": {}, "
      "\"adopted_operators\": {}, \"captured_bytes\": {}, "
      "\"arena_bytes\": {}, \"capture_s\": {:.6f}, "
      "\"build_s\": {:.6f}, \"verify_s\": {:.6f}, \"replays\": {}}}",
      json_string(report.mode),
      reason,
      json_of(report.guards),
      report.variant_of.empty() ? "null" : json_string(report.variant_of),
      stats.undone,
      stats.eager_runs,
      stats.eager_s,
      report.share_of_time,
      stats.operators_recorded,
      stats.operators_replayed,
      json_of(stats.passes),
      json_of(stats.adopted_operators),
      stats.captured_bytes,
      stats.arena_bytes,
      stats.capture_s,
      stats.build_s,
      stats.verify_s,
      stats.replays);
}

/// Writes what was recorded once the scope is left.
void write_steps_at_end(Trainer& trainer, Cleanup& cleanup) {
  cleanup.push([&trainer](const std::exception_ptr&) {
    const std::filesystem::path directory = trainer.state().artifact_dir / "steps";
    for (const StepReport& report : trainer.state().backend->reports()) {
      write_report(trainer.log(),
                   directory / (report.name + ".txt"),
                   is_eager(report) ? report.reason + "\n"
                                    : report.program + "\n" + report.plan + "\n" + report.graph);
      write_report(trainer.log(), directory / (report.name + ".json"), json_of(report) + "\n");
    }
  });
}

/// What callbacks want measured of recorded steps.
Instruments instruments_for(const CallbackMap& callbacks) {
  Instruments all;
  for (const CallbackMap::Entry& entry : callbacks.entries()) {
    if (const auto* asks = dynamic_cast<const AsksForInstruments*>(entry.callback.get())) {
      const Instruments wanted = asks->instruments();
      all.compares_operators = all.compares_operators || wanted.compares_operators;
      if (wanted.timing.active > all.timing.active) {
        all.timing = wanted.timing;
      }
    }
  }
  return all;
}

/// All processes take as many threads as the first: bits depend on them.
std::optional<int> threads_of_first(Communicator& communicator, std::optional<int> threads) {
  at::Tensor number = at::full({1}, threads.value_or(0), at::kLong);
  communicator.broadcast(number, 0);
  const auto chosen = static_cast<int>(*number.data_ptr<int64_t>());
  return chosen > 0 ? std::optional(chosen) : std::nullopt;
}

}  // namespace

CapturedState captured_state(Trainer& trainer) {
  CapturedState all;
  const torch::nn::Module& module = trainer.state().model->module();
  append(all, "model.", named_parameters(module));
  append(all, "model.", named_buffers(module));
  for (const auto& optimizer : trainer.state().optimizers) {
    const bool is_default = optimizer->name() == kDefaultOptimizer;
    append(all,
           is_default ? std::string("optimizer.") : "optimizers." + optimizer->name() + ".",
           optimizer->captured_state());
  }
  for (const CallbackMap::Entry& entry : trainer.callbacks().entries()) {
    append(all, fmt::format("callbacks/{}/", entry.name), tensors_of(entry));
  }
  return all;
}

void BackendCallback::pre_setup(Trainer& trainer) {
  BackendOptions options = trainer.options().backend;
  if (const auto device = device_of_run(trainer)) {
    options.device = device->str();
  }
  is_open_ = options.threads == 0;
  if (is_open_) {
    // Of a validation alone; a fit looks at its step first.
    options.threads =
        std::min(threads_of_run(trainer.options().model_dir).value_or(1), available_cores());
  }
  trainer.state().backend =
      make_backend(options, trainer.log(), instruments_for(trainer.callbacks()));
}

void BackendCallback::post_setup(Trainer& trainer) {
  Backend& backend = *trainer.state().backend;
  backend.set_state([this, &trainer] { return state_of_step(trainer); });
  // Callbacks have their modules when all have been set up.
  backend.set_fingerprint(
      [&trainer = std::as_const(trainer), modules = std::optional<Modules>()]() mutable {
        if (!modules) {
          modules = modules_of(trainer.callbacks());
        }
        return fingerprint_of(trainer.state(), *modules);
      });
}

// Another tensor in the place of one that was recorded would be left as it is by every replay.
CapturedState BackendCallback::state_of_step(Trainer& trainer) {
  CapturedState state = rondo::captured_state(trainer);
  for (const NamedTensor& tensor : state) {
    if (tensor.first.rfind("callbacks/", 0) == 0) {
      const at::Tensor& first = of_callbacks_.emplace(tensor).first->second;
      if (!first.is_alias_of(tensor.second)) {
        throw CaptureError(
            fmt::format("\"{}\" is another tensor than before: tensors of captured_state() must "
                        "keep their storage. Write it in place, with copy_, add_ or lerp_",
                        tensor.first));
      }
    }
  }
  return state;
}

void BackendCallback::on_enter_fit(
    Trainer& trainer, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) {
  is_fitting_ = true;
  cleanup.push([this](const std::exception_ptr&) { is_fitting_ = false; });
  write_steps_at_end(trainer, cleanup);
}

void BackendCallback::on_fit_start(Trainer& trainer,
                                   const DataLoader& train,
                                   const Loaders&,
                                   Loop&) {
  if (!is_open_) {
    return;
  }
  if (!threads_ && trainer.state().communicator->rank() == 0) {
    threads_ = recorded_threads(trainer, train);
    threads_ = threads_ ? threads_ : calibrate_threads(trainer, train);
  }
  threads_ = threads_of_first(*trainer.state().communicator, threads_);
  use_threads(threads_.value_or(1));
  if (threads_) {
    warn_of_blas(*threads_, trainer.log());
    if (trainer.state().writes()) {
      note_threads(trainer, *threads_);
    }
    is_open_ = false;
  }
}

void BackendCallback::on_enter_validate_all(
    Trainer& trainer, Cleanup& cleanup, const Loaders&, Loop&, const Paths&) {
  write_steps_at_end(trainer, cleanup);
}

// Here, before a validation forgets the steps or the run passes for done.
void BackendCallback::on_train_end(Trainer& trainer, Model&, Loop&, int64_t) {
  trainer.state().backend->check_state();
}

// A run that resumes from a bad state that was its last would be done, and well.
void BackendCallback::on_save_checkpoint(Trainer& trainer, StateDict&) {
  trainer.state().backend->check_state();
  require_same_state(trainer);
}

std::optional<NumericEnvironment> BackendCallback::environment_to_keep(
    const Trainer& trainer, const StateDict& state) const {
  const StateValue* saved = state.find("__metadata__/environment");
  if (saved == nullptr || !is_fitting_ || trainer.options().backend.environment == "new") {
    return std::nullopt;
  }
  return environment_from(saved->as_dict());
}

void BackendCallback::check_checkpoint(Trainer& trainer, const StateDict& state) {
  const auto saved = environment_to_keep(trainer, state);
  if (!saved) {
    return;
  }
  NumericEnvironment now = current_environment(trainer.state().backend->device());
  now.threads = is_open_ ? saved->threads : now.threads;
  const std::string what = difference(*saved, now);
  if (!what.empty()) {
    throw CheckpointError(fmt::format(
        "the checkpoint was trained in another numeric environment, so the run would not continue "
        "bit for bit: {}; restore that environment, or set backend.environment = \"new\"",
        what));
  }
}

void BackendCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  const auto saved = environment_to_keep(trainer, state);
  if (saved && is_open_) {
    threads_ = saved->threads;
    use_threads(*threads_);
  }
}

}  // namespace rondo
