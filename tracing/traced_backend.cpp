#include "tracing/traced_backend.h"

#include <ATen/ops/empty.h>
#include <algorithm>
#include <map>
#include <utility>

#include "backends/global_flags.h"
#include "backends/scoped.h"
#include "backends/staging.h"
#include "core/error.h"
#include "core/fingerprint.h"
#include "tracing/checks/step_history.h"
#include "tracing/traced_step.h"

namespace rondo {

namespace {

// Keys are few in a healthy run: loops, phases of a group, a last short batch.
constexpr size_t kMaxSteps = 64;

// Programs of one step that differ in its fingerprint: layers that are frozen by and by, and a few
// that come and go. Each keeps its memory.
constexpr int64_t kMaxFingerprints = 8;

// Invalidations in a row after none of which a step was replayed.
constexpr int kUselessGenerations = 8;

// "train", or "train/" and what such a step does besides.
bool is_training(const StepKey& key) {
  return key.step == "train" || key.step.rfind("train/", 0) == 0;
}

std::string name_of(const StepKey& key) {
  if (!is_training(key)) {
    return key.step;
  }
  std::string name = key.step + (key.position.is_last ? "/update" : "/accumulate");
  if (key.position.size != 1) {  // 0: of batches that differ, whatever their number
    const bool is_weighted = key.position.size == 0;
    name += key.position.is_first ? "_first" : "";
    name += is_weighted ? "_weighted" : "_of_" + std::to_string(key.position.size);
  }
  return name;
}

// With its memory copied storage by storage: entries that share one still do.
Batch copy_of(const Batch& batch) {
  Batch copy;
  std::map<const c10::StorageImpl*, at::Tensor> copies;
  for (const auto& [name, tensor] : batch.items()) {
    if (!tensor.defined() || !tensor.has_storage()) {
      copy.set(name, tensor);
      continue;
    }
    at::Tensor& bytes = copies[tensor.storage().unsafeGetStorageImpl()];
    if (!bytes.defined()) {
      bytes = at::empty({0}, tensor.options().dtype(at::kByte)).set_(tensor.storage()).clone();
    }
    copy.set(name,
             at::empty({0}, tensor.options())
                 .set_(bytes.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides()));
  }
  return copy;
}

void add_eager_runs(const TracedStep& step, std::vector<EagerSteps>& all) {
  if (!step.refusal()) {
    return;
  }
  const auto known = std::find_if(all.begin(), all.end(), [&](const EagerSteps& steps) {
    return steps.name == step.name() && steps.reason == step.refusal()->what;
  });
  EagerSteps& steps =
      known != all.end() ? *known : all.emplace_back(EagerSteps{step.name(), step.refusal()->what});
  steps.runs += step.eager_runs();
  steps.seconds += step.eager_s();
}

}  // namespace

struct TracedBackend::Entry {
  std::optional<uint64_t> fingerprint;  ///< nothing: any that no other entry has
  StepKey key;
  std::optional<BatchStructure> structure;  ///< nothing: any that no other entry has
  std::unique_ptr<TracedStep> step;
  int64_t last_run;

  /// Whether it is a step of this key and batch, under some fingerprint.
  bool is_of(const StepKey& other, const Batch& batch) const {
    return key == other && (!structure || structure->matches(batch));
  }
};

struct TracedBackend::StepInProgress {
  TracedStep* step;
  Batch batch;
  StepBody body;
  IsDue is_due;
  ClosureQueue* queue;
};

TracedBackend::TracedBackend(const TracedOptions& options, TextLog log)
    : options_(options), log_(std::move(log)), casts_(std::make_shared<KeptCasts>()) {
  if (options.explains) {
    history_ =
        std::make_unique<StepHistory>([this] { return state_ ? state_() : CapturedState(); });
  }
}

TracedBackend::~TracedBackend() = default;

void TracedBackend::set_state(std::function<CapturedState()> state) {
  state_ = std::move(state);
}

void TracedBackend::set_fingerprint(std::function<uint64_t()> fingerprint) {
  fingerprint_ = std::move(fingerprint);
}

uint64_t TracedBackend::fingerprint() const {
  Fingerprint all;
  add_global_flags(all);
  if (fingerprint_) {
    all.add(fingerprint_());
  }
  return all.value();
}

Batch TracedBackend::stage(Batch host) {
  return cut_loose(stage_on(std::move(host), device()));
}

void TracedBackend::synchronize() {
  synchronize_device(options_.device);
}

TracedStep& TracedBackend::begin_step(const StepKey& key, const Batch& batch) {
  if (is_in_step()) {
    throw UsageError(in_progress_ != nullptr
                         ? "Backend.run: a step is in progress; finish it before another one"
                         : "Backend.run: a step is running; its body cannot run another one");
  }
  TracedStep& step = step_for(key, batch);
  answers_ = nullptr;
  if (history_ == nullptr) {
    return step;
  }
  if (!is_training(key)) {
    history_->forget();
  } else if (step.may_write_batch()) {
    answers_ = &history_->begin_step(copy_of(batch));
  } else {
    answers_ = &history_->begin_step(batch);
  }
  return step;
}

void TracedBackend::end_step(TracedStep& step) {
  if (answers_ != nullptr) {
    history_->end_step(step.recorded());
  }
  if (step.replays() > 0 || step.refusal()) {
    heap_.reset();
  }
  if (step.refusal() && step.eager_runs() <= 1) {
    warn_of_refusal(*step.refusal());
  }
  if (step.wants_arenas()) {
    int64_t bytes = 0;
    for (const Entry& entry : steps_) {
      bytes += entry.step->arena_bytes();
    }
    step.note_arenas(bytes);
  }
}

const Outputs& TracedBackend::run(const StepKey& key,
                                  const Batch& batch,
                                  const StepBody& body,
                                  const IsDue& is_due,
                                  ClosureQueue& queue) {
  TracedStep& step = begin_step(key, batch);
  const Scoped<bool> in_step(is_in_step_, true);
  const Outputs& outputs = step.run({batch, body, is_due, queue, state_, requests_, answers_});
  end_step(step);
  return outputs;
}

const Outputs* TracedBackend::start(const StepKey& key,
                                    const Batch& batch,
                                    const StepBody& body,
                                    const IsDue& is_due,
                                    ClosureQueue& queue,
                                    const Deadline& deadline) {
  TracedStep& step = begin_step(key, batch);
  in_progress_ =
      std::make_unique<StepInProgress>(StepInProgress{&step, batch, body, is_due, &queue});
  return go_on([&](const StepCall& call) { return in_progress_->step->start(call, deadline); });
}

const Outputs* TracedBackend::resume(const Deadline& deadline) {
  if (in_progress_ == nullptr) {
    return Backend::resume(deadline);
  }
  return go_on([&](const StepCall& call) { return in_progress_->step->resume(call, deadline); });
}

template <class Work>
const Outputs* TracedBackend::go_on(const Work& work) {
  const Scoped<bool> in_step(is_in_step_, true);
  StepInProgress& step = *in_progress_;
  const Outputs* outputs = nullptr;
  try {
    outputs = work({step.batch, step.body, step.is_due, *step.queue, state_, requests_, answers_});
  } catch (...) {
    in_progress_.reset();
    throw;
  }
  if (outputs != nullptr) {
    end_step(*step.step);
    in_progress_.reset();
  }
  return outputs;
}

std::vector<RecordedStep> TracedBackend::recorded_steps() const {
  std::vector<RecordedStep> all;
  for (const Entry& entry : steps_) {
    for (StepProgram& program : entry.step->programs()) {
      all.push_back({entry.key, std::move(program)});
    }
  }
  return all;
}

std::string TracedBackend::explain_non_finite() {
  return history_ != nullptr ? history_->explain() : "";
}

void TracedBackend::check_state() {
  if (history_ != nullptr) {
    history_->check();
  }
}

void TracedBackend::defer(StepClosure closure) {
  running_body(requests_, "defer").defer(std::move(closure));
}

void TracedBackend::host_call(std::string name,
                              std::vector<at::Tensor> tensors,
                              HostFunction function) {
  running_body(requests_, "host_call")
      .host_call(std::move(name), std::move(tensors), std::move(function));
}

void TracedBackend::set_location(std::string_view callback, std::string_view hook) {
  if (requests_ != nullptr) {
    requests_->set_location(callback, hook);
  }
}

void TracedBackend::invalidate(const std::string& why) {
  if (is_in_step()) {
    throw UsageError("Backend.invalidate: a step is running (" + why +
                     "); change it between steps");
  }
  if (history_ != nullptr) {
    history_->forget();
  }
  bool was_useful = false;
  for (const Entry& entry : steps_) {
    was_useful = retire(entry) || was_useful;
  }
  useless_generations_ = was_useful || steps_.empty() ? 0 : useless_generations_ + 1;
  if (useless_generations_ == kUselessGenerations) {
    log_.warning(
        "traced steps never settle: " + std::to_string(kUselessGenerations) +
        " times in a row they were captured and then thrown away, the last time because of " + why +
        ". Change steps less often, or use backend.mode=eager");
  }
  steps_.clear();
  casts_ = std::make_shared<KeptCasts>();
}

// Keeps what there is to tell of a step that is about to be forgotten.
// \return whether it did what it was made for
bool TracedBackend::retire(const Entry& entry) {
  add_eager_runs(*entry.step, retired_eager_);
  retired_work_.add(entry.step->work_done());
  const std::vector<ComparedStep> compared = entry.step->comparisons();
  retired_comparisons_.insert(retired_comparisons_.end(), compared.begin(), compared.end());
  if (entry.step->replays() == 0 && entry.step->eager_runs() == 0) {
    return false;
  }
  const std::vector<StepReport> reports = entry.step->reports();
  retired_.insert(retired_.end(), reports.begin(), reports.end());
  if (retired_.size() > kMaxSteps) {
    retired_.erase(retired_.begin(), retired_.end() - kMaxSteps);
  }
  return true;
}

std::vector<StepReport> TracedBackend::reports() const {
  std::vector<StepReport> all = retired_;
  for (const Entry& entry : steps_) {
    const std::vector<StepReport> reports = entry.step->reports();
    all.insert(all.end(), reports.begin(), reports.end());
  }
  for (StepReport& report : all) {
    report.share_of_time = report.stats.eager_s / age_.seconds();
  }
  return all;
}

WorkDone TracedBackend::work_done() const {
  WorkDone done = retired_work_;
  for (const Entry& entry : steps_) {
    done.add(entry.step->work_done());
  }
  return done;
}

std::vector<ComparedStep> TracedBackend::comparisons() const {
  std::vector<ComparedStep> all = retired_comparisons_;
  for (const Entry& entry : steps_) {
    const std::vector<ComparedStep> compared = entry.step->comparisons();
    all.insert(all.end(), compared.begin(), compared.end());
  }
  return all;
}

std::vector<EagerSteps> TracedBackend::eager_steps() const {
  std::vector<EagerSteps> all = retired_eager_;
  for (const Entry& entry : steps_) {
    add_eager_runs(*entry.step, all);
  }
  for (EagerSteps& steps : all) {
    steps.share_of_time = steps.seconds / age_.seconds();
  }
  return all;
}

bool TracedBackend::is_settled() const {
  return std::all_of(steps_.begin(), steps_.end(), [](const Entry& entry) {
    return entry.step->replays() >= 2 || entry.step->refusal();
  });
}

TracedStep& TracedBackend::step_for(const StepKey& key, const Batch& batch) {
  const uint64_t now = fingerprint();
  ++runs_;
  for (Entry& entry : steps_) {
    if (entry.fingerprint.value_or(now) == now && entry.is_of(key, batch)) {
      entry.last_run = runs_;
      return *entry.step;
    }
  }
  if (!make_room(key, batch)) {
    TracedStep& step = add_step({std::nullopt, key, BatchStructure(batch), nullptr, runs_});
    step.refuse({"step " + step.name() +
                     " never settles: which parameters require gradients, modes "
                     "of modules, the set of them or LibTorch's global switches changed " +
                     std::to_string(kMaxFingerprints) + " times before it was replayed",
                 "Change them less often than every few steps"});
    return step;
  }
  if (steps_.size() < kMaxSteps) {
    return add_step({now, key, BatchStructure(batch), nullptr, runs_});
  }
  const auto last = std::find_if(steps_.rbegin(), steps_.rend(), [](const Entry& entry) {
    return entry.structure.has_value();
  });
  const std::string batches =
      last->structure->to_string() + " and " + BatchStructure(batch).to_string();
  TracedStep& step = add_step({std::nullopt, key, std::nullopt, nullptr, runs_});
  step.refuse({"step " + step.name() + " is not recorded for every shape of batch: there are " +
                   std::to_string(kMaxSteps) +
                   " different steps; the last ones are for batches of " + batches,
               "Pad batches to a few sizes or set drop_last"});
  return step;
}

// For one more fingerprint of this step: the one that was run the longest ago goes.
// \return false when none of them was ever replayed
bool TracedBackend::make_room(const StepKey& key, const Batch& batch) {
  int64_t variants = 0;
  bool is_any_useful = false;
  auto oldest = steps_.end();
  for (auto entry = steps_.begin(); entry != steps_.end(); ++entry) {
    if (entry->is_of(key, batch)) {
      ++variants;
      is_any_useful = is_any_useful || entry->step->replays() > 0 || entry->step->refusal();
      oldest = oldest == steps_.end() || entry->last_run < oldest->last_run ? entry : oldest;
    }
  }
  if (variants < kMaxFingerprints) {
    return true;
  }
  if (is_any_useful) {
    retire(*oldest);
    steps_.erase(oldest);
  }
  return is_any_useful;
}

TracedStep& TracedBackend::add_step(Entry entry) {
  const std::string name = name_of(entry.key);
  entry.step = std::make_unique<TracedStep>(
      name, steps_made_[name]++, entry.key.position, casts_, options_, log_);
  steps_.push_back(std::move(entry));
  return *steps_.back().step;
}

// Once for all shapes of batches.
void TracedBackend::warn_of_refusal(const Refusal& refusal) {
  if (told_.insert(refusal.what).second) {
    log_.warning(refusal.what + ". From here on such steps run as they are written. To have them " +
                 "replayed: " + refusal.advice);
  }
}

}  // namespace rondo
