#include "tracing/traced_step.h"

#include <algorithm>
#include <utility>

#include "backends/run_as_written.h"
#include "core/error.h"
#include "core/heap_without_holes.h"
#include "core/stopwatch.h"
#include "tracing/program/guards.h"
#include "tracing/recording/capture.h"
#include "tracing/step_variant.h"

namespace rondo {

namespace {

// Of one step; what has more answers than this has ever new ones.
constexpr size_t kMostVariants = 8;

}  // namespace

TracedStep::TracedStep(std::string name,
                       int number,
                       const GroupPosition& position,
                       std::shared_ptr<KeptCasts> casts,
                       const TracedOptions& options,
                       TextLog log)
    : name_(std::move(name)),
      number_(number),
      position_(position),
      casts_(std::move(casts)),
      options_(options),
      log_(std::move(log)) {}

TracedStep::~TracedStep() = default;

const Outputs& TracedStep::run(const StepCall& call) {
  const Outputs* const outputs = refusal_ ? nullptr : replay(call);
  if (outputs != nullptr) {
    return *outputs;
  }
  return refusal_ ? run_eagerly(call) : capture(call);
}

const Outputs& TracedStep::run_eagerly(const StepCall& call) {
  const Stopwatch watch(eager_.eager_s);
  ++eager_.eager_runs;
  samples_ = call.batch.size();
  outputs_ = run_as_written(call);
  casts_->forget();
  return outputs_;
}

const Outputs* TracedStep::start(const StepCall& call, const Deadline& deadline) {
  if (newest_ != nullptr && newest_->start(call)) {
    return resume(call, deadline);
  }
  return &run(call);
}

const Outputs* TracedStep::resume(const StepCall& call, const Deadline& deadline) {
  if (const Outputs* const outputs = newest_->advance(call, deadline)) {
    recorded_ = newest_->recorded();
    return outputs;
  }
  return newest_->missed_guard() == nullptr ? nullptr : &run(call);
}

// Null: what there is must be captured, or the step was refused and has not run.
const Outputs* TracedStep::replay(const StepCall& call) {
  StepVariant* variant = newest_;
  for (size_t tries = 0; variant != nullptr && tries < variants_.size(); ++tries) {
    const Outputs* const outputs = variant->run(call);
    if (variant->refusal()) {
      const bool has_run = outputs != nullptr;
      outputs_ = has_run ? *outputs : outputs_;
      refuse(*variant->refusal());
      return has_run ? &outputs_ : nullptr;
    }
    if (outputs != nullptr) {
      newest_ = variant;
      recorded_ = variant->recorded();
      return outputs;
    }
    const MissedGuard* const missed = variant->missed_guard();
    if (missed == nullptr) {
      return nullptr;
    }
    std::vector<std::string> answers = variant->answers();
    answers.resize(missed->guard);
    answers.push_back(missed->answer);
    variant = ready_variant(answers);
  }
  return nullptr;
}

/// \param first_answers  of its guards, as far as they are known
StepVariant* TracedStep::ready_variant(const std::vector<std::string>& first_answers) const {
  const auto fits = [&](const std::unique_ptr<StepVariant>& variant) {
    const std::vector<std::string>& answers = variant->answers();
    return variant->is_ready() && answers.size() >= first_answers.size() &&
           std::equal(first_answers.begin(), first_answers.end(), answers.begin());
  };
  const auto found = std::find_if(variants_.begin(), variants_.end(), fits);
  return found == variants_.end() ? nullptr : found->get();
}

const Outputs& TracedStep::capture(const StepCall& call) {
  const HeapWithoutHoles heap;
  CapturedStep captured;
  double seconds = 0.0;
  {
    const Stopwatch watch(seconds);
    captured = capture_step(name_, call, /*may_guard=*/!options_.interprets);
  }
  casts_->forget();
  samples_ = call.batch.size();
  outputs_ = captured.outputs;
  recorded_ = options_.explains && !captured.refusal
                  ? std::make_shared<StepProgram>(captured.program)
                  : nullptr;
  if (captured.refusal) {
    refuse(std::move(*captured.refusal));
  } else {
    keep(std::move(captured), call, seconds);
  }
  return outputs_;
}

void TracedStep::keep(CapturedStep captured, const StepCall& call, double seconds) {
  StepVariant* const variant = variant_for(captured.program);
  if (variant == nullptr) {
    refuse(too_many_variants(captured.program));
    return;
  }
  if (!variant->is_ready()) {
    variant->take(std::move(captured), call, seconds);
  }
  if (variant->refusal()) {
    refuse(*variant->refusal());
  } else if (variant->is_ready()) {
    newest_ = variant;
  }
}

// That with the same answers, or a new one; null when there are too many.
StepVariant* TracedStep::variant_for(const StepProgram& captured) {
  std::vector<std::string> answers = answers_of(captured);
  const auto found = std::find_if(variants_.begin(), variants_.end(), [&](const auto& variant) {
    return variant->answers() == answers;
  });
  if (found != variants_.end()) {
    return found->get();
  }
  if (variants_.size() == kMostVariants) {
    return nullptr;
  }
  if (!variants_.empty()) {
    log_.debug("step " + name_ + ": captured for other answers to what the host reads");
  }
  variants_.push_back(
      std::make_unique<StepVariant>(name_, position_, casts_, options_, log_, std::move(answers)));
  return variants_.back().get();
}

Refusal TracedStep::too_many_variants(const StepProgram& captured) const {
  const std::vector<StepGuard> guards = guards_of(captured);
  const std::vector<std::string>& before = variants_.back()->answers();
  size_t other = 0;
  while (other + 1 < guards.size() && other < before.size() &&
         guards[other].answer == before[other]) {
    ++other;
  }
  std::string what = "step " + name_ + " was captured with more than " +
                     std::to_string(kMostVariants) +
                     " different answers to what it reads on the host";
  if (other < guards.size() && other < before.size()) {
    what += ": " + guards[other].read + " gave " + before[other] + ", then " + guards[other].answer;
  }
  return {what,
          "Make what changes a tensor (torch::where, a mask that is multiplied), or log it with "
          "log_metrics"};
}

void TracedStep::refuse(Refusal refusal) {
  if (options_.throws_on_refusal) {
    throw CaptureError(error_text(refusal));
  }
  refusal_ = std::move(refusal);
  newest_ = nullptr;
  variants_.clear();
  recorded_.reset();
}

bool TracedStep::may_write_batch() const {
  // Other answers are captured.
  return newest_ == nullptr || newest_->writes_batch() || !newest_->answers().empty();
}

int64_t TracedStep::replays() const {
  int64_t sum = 0;
  for (const auto& variant : variants_) {
    sum += variant->replays();
  }
  return sum;
}

int64_t TracedStep::arena_bytes() const {
  int64_t sum = 0;
  for (const auto& variant : variants_) {
    sum += variant->arena_bytes();
  }
  return sum;
}

bool TracedStep::wants_arenas() const {
  return newest_ != nullptr && newest_->wants_arenas();
}

void TracedStep::note_arenas(int64_t bytes) {
  newest_->note_arenas(bytes);
}

std::vector<StepProgram> TracedStep::programs() const {
  std::vector<StepProgram> programs;
  for (const auto& variant : variants_) {
    if (variant->is_ready()) {
      programs.push_back(variant->program());
    }
  }
  return programs;
}

std::vector<StepReport> TracedStep::reports() const {
  std::vector<StepReport> reports;
  if (refusal_) {
    StepReport& report = reports.emplace_back();
    report.name = report_name(0);
    report.position = position_;
    report.samples = samples_;
    report.mode = "eager";
    report.reason = refusal_->what;
    report.stats = eager_;
    return reports;
  }
  for (size_t i = 0; i < variants_.size(); ++i) {
    if (variants_[i]->is_ready()) {
      StepReport& report = reports.emplace_back(variants_[i]->report());
      report.name = report_name(i);
      report.variant_of = i == 0 ? "" : report_name(0);
    }
  }
  return reports;
}

WorkDone TracedStep::work_done() const {
  WorkDone done;
  for (const auto& variant : variants_) {
    done.add(variant->work(), variant->replays());
  }
  return done;
}

std::vector<ComparedStep> TracedStep::comparisons() const {
  std::vector<ComparedStep> all;
  for (size_t i = 0; i < variants_.size(); ++i) {
    if (variants_[i]->comparison()) {
      all.push_back({report_name(i), *variants_[i]->comparison()});
    }
  }
  return all;
}

std::string TracedStep::report_name(size_t variant) const {
  std::string name = name_;
  std::replace(name.begin(), name.end(), '/', '_');
  name += "." + std::to_string(number_);
  return variant == 0 ? name : name + "-" + std::to_string(variant + 1);
}

}  // namespace rondo
