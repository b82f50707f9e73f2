#include "tracing/step_variant.h"

#include <malloc.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <utility>

#include "backends/staging.h"
#include "core/error.h"
#include "core/heap_without_holes.h"
#include "core/stopwatch.h"
#include "tracing/checks/operator_comparison.h"
#include "tracing/checks/state_snapshot.h"
#include "tracing/checks/verification.h"
#include "tracing/graphs/graph_executor.h"
#include "tracing/interpreter/jit_executor.h"
#include "tracing/passes/passes.h"
#include "tracing/plan/planned_executor.h"
#include "tracing/program/guards.h"
#include "tracing/program/program_diff.h"
#include "tracing/recording/capture.h"

namespace rondo {

namespace {

// Captures in a row that were useless because the state had moved, before that is an error.
constexpr int kMaxMovesInARow = 3;

// Of the first element: a plan's kernels keep it.
const void* address_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->data();
}

// A plan runs operators that no graph can name.
std::string graph_text(const StepProgram& program) {
  try {
    return to_text(to_jit_graph(program));
  } catch (const CaptureError& error) {
    return std::string(error.what()) + '\n';
  }
}

std::unique_ptr<Executor> make_executor(const StepProgram& program,
                                        const TracedOptions& options,
                                        const TextLog& log) {
  if (!options.device.is_cpu()) {
    return std::make_unique<GraphExecutor>(program, options.graphs, options.device);
  }
  if (options.interprets) {
    return std::make_unique<JitExecutor>(program);
  }
  const PlanOptions plan = plan_options(options.exact, options.without_passes);
  return std::make_unique<PlannedExecutor>(program, log, plan, options.instruments.timing);
}

}  // namespace

StepVariant::StepVariant(std::string name,
                         const GroupPosition& position,
                         std::shared_ptr<KeptCasts> casts,
                         const TracedOptions& options,
                         TextLog log,
                         std::vector<std::string> answers)
    : name_(std::move(name)),
      position_(position),
      casts_(std::move(casts)),
      options_(options),
      log_(std::move(log)),
      answers_(std::move(answers)) {}

StepVariant::~StepVariant() = default;

// Runs a part of a replay; what a host call throws comes out as it was thrown.
template <class Work>
auto StepVariant::replaying(const StepCall& call, const Work& work) {
  const HostCallScope scope(host_calls_);
  host_calls_.append_answers_to(call.answers);
  try {
    return work();
  } catch (const std::exception&) {
    if (const std::exception_ptr thrown = host_calls_.take_exception()) {
      std::rethrow_exception(thrown);
    }
    std::throw_with_nested(CaptureError("step " + name_ + ": its replay failed"));
  }
}

const Outputs* StepVariant::run(const StepCall& call) {
  look_at_state();
  if (!is_ready()) {
    return nullptr;
  }
  has_tried_kernels_ = executor_->has_trials();
  due_ = due_closures(call);
  if (is_to_be_compared()) {
    return run_compared(call);
  }
  if (options_.verify.covers(replays_since_capture_)) {
    return run_verified(call);
  }
  std::optional<HeapWithoutHoles> heap;
  if (has_tried_kernels_) {
    heap.emplace();
  }
  return finish(call, replay(call, due_));
}

bool StepVariant::start(const StepCall& call) {
  look_at_state();
  if (!is_ready() || is_to_be_compared() || options_.verify.covers(replays_since_capture_)) {
    return false;
  }
  due_ = due_closures(call);  // asked once: by the end of the step another answer may be true
  if (!executor_->start(call.batch, due_)) {
    return false;
  }
  has_tried_kernels_ = executor_->has_trials();
  casts_->prepare(use_of_casts_);
  return true;
}

const Outputs* StepVariant::advance(const StepCall& call, const Deadline& deadline) {
  const std::vector<at::Tensor>* const results =
      replaying(call, [&] { return executor_->advance(deadline); });
  return results != nullptr || missed_guard() != nullptr ? finish(call, results) : nullptr;
}

const MissedGuard* StepVariant::missed_guard() const {
  return is_ready() ? executor_->missed_guard() : nullptr;
}

// What there is to do after a replay. Null: a guard failed.
const Outputs* StepVariant::finish(const StepCall& call, const std::vector<at::Tensor>* results) {
  if (results == nullptr) {
    ++stats_.undone;
    return nullptr;
  }
  casts_->finish(use_of_casts_);
  ++stats_.replays;
  ++replays_since_capture_;
  moves_in_a_row_ = 0;
  auto next = results->begin();
  for (const auto& output : program_.outputs) {
    outputs_.set(output.first, *next++);
  }
  for (const ClosureOutput& closure : program_.closures) {
    const auto end = next + static_cast<std::ptrdiff_t>(closure.tensors.size());
    const bool has_bit = closure.index < kDueClosures;
    if (has_bit ? (due_ >> closure.index & 1) != 0 : call.asks_for(closure.cadence)) {
      call.queue.push_back(next, end, closures_[closure.index], closure.cadence);
    }
    next = end;
  }
  return &outputs_;
}

void StepVariant::take(CapturedStep captured, const StepCall& call, double seconds) {
  stats_.capture_s += seconds;
  samples_ = call.batch.size();
  has_tried_kernels_ = false;
  if (options_.explains || options_.instruments.compares_operators) {
    recorded_ = std::make_shared<StepProgram>(captured.program);
  }
  if (state_ == State::Empty) {
    captured_ = std::make_unique<StepProgram>(std::move(captured.program));
    state_ = State::Captured;
  } else {
    settle(std::move(captured), call);
  }
}

// Two captures are there: compares, and builds what is replayed. State that was made in the first
// step gives it other operators than the second has; a third capture then shows whether that was
// all. The step as written beside a first replay that is verified will do for that.
void StepVariant::settle(CapturedStep second, const StepCall& call) {
  const std::unique_ptr<StepProgram> first = std::move(captured_);
  const ProgramDifference difference = first_difference(*first, second.program);
  if (difference.text.empty()) {
    build(std::move(second), State::Ready, call);
    return;
  }
  if (difference.is_value || state_ == State::Differed) {
    refuse(differing_captures(difference.text));
    return;
  }
  log_.debug("step " + name_ + ": captured once more, because " + difference.text);
  state_ = State::Differed;
  captured_ = std::make_unique<StepProgram>(second.program);
  if (options_.verify.covers(0)) {
    build(std::move(second), State::Unconfirmed, call);
  }
}

std::optional<Refusal> StepVariant::objection_to(const CapturedStep& third) {
  const std::unique_ptr<StepProgram> second = std::move(captured_);
  state_ = State::Ready;
  if (third.refusal) {
    return third.refusal;
  }
  const ProgramDifference difference = first_difference(*second, third.program);
  return difference.text.empty() ? std::nullopt
                                 : std::optional(differing_captures(difference.text));
}

void StepVariant::refuse(Refusal refusal) {
  state_ = State::Refused;
  captured_.reset();
  refusal_ = std::move(refusal);
}

/// \param built  the state that it has then
void StepVariant::build(CapturedStep captured, State built, const StepCall& call) {
  try {
    plan(std::move(captured), call);
    state_ = built;
  } catch (const std::exception&) {
    refuse({"step " + name_ +
                " was recorded, but cannot be replayed: " + describe(std::current_exception()),
            options_.device.is_cpu()
                ? "backend.without_passes or backend.executor = \"interpreter\" may avoid it"
                : "backend.without_passes, or a smaller batch where memory ran out, may avoid it"});
  }
}

void StepVariant::plan(CapturedStep captured, const StepCall& call) {
  const Stopwatch watch(stats_.build_s);
  capture_bytes_ = peak_of_results(captured.program);
  writes_batch_ = written_input(captured.program) != kNoTensor;
  stats_.operators_recorded = static_cast<int64_t>(captured.program.instructions.size());
  work_.flops = flops_of(captured.program);
  CleanedUp cleaned_up = clean_up(
      std::move(captured.program), options_.without_passes, options_.exact, options_.device.type());
  program_ = std::move(cleaned_up.program);
  stats_.passes = std::move(cleaned_up.applied);
  if (!options_.is_without(KeptCasts::kPass) && options_.device.is_cpu()) {
    use_of_casts_ = casts_->keep(program_, position_, call.state());
  }
  stats_.passes.emplace_back(
      KeptCasts::kPass,
      static_cast<int64_t>(use_of_casts_.made.size() + use_of_casts_.read.size()));
  stats_.operators_replayed = static_cast<int64_t>(program_.instructions.size());
  stats_.captured_bytes = captured_bytes(program_);
  work_.bytes = bytes_moved(program_);
  closures_ = std::move(captured.closures);
  host_calls_ = std::move(captured.host_calls);
  const std::vector<bool> used = used_slots(program_);
  addresses_.clear();
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i] && program_.slots[i].kind == SlotKind::Captured) {
      addresses_.push_back({static_cast<SlotId>(i), address_of(program_.slots[i].value)});
    }
  }
  keep_numbers(captured.numbers);
  ::malloc_trim(0);  // what the captures left free is not what replays need
  executor_ = make_executor(program_, options_, log_);
  executor_->try_kernels(call.batch);
  has_tried_kernels_ = true;
  const PassCounts applied = executor_->applied();
  stats_.passes.insert(stats_.passes.end(), applied.begin(), applied.end());
  stats_.adopted_operators = executor_->adopted_operators();
  stats_.arena_bytes = executor_->memory().arena;
  replays_since_capture_ = 0;
}

Refusal StepVariant::differing_captures(const std::string& difference) const {
  return {
      "step " + name_ + " cannot be replayed, because two captures of it differ: " + difference,
      "Whatever changes from step to step must be a tensor of the batch or of the state, a host "
      "call, or part of the step's key"};
}

const Slot* StepVariant::moved_state() const {
  for (const Address& address : addresses_) {
    const Slot& slot = program_.slots[static_cast<size_t>(address.slot)];
    if (address_of(slot.value) != address.data) {
      return &slot;
    }
  }
  return nullptr;
}

void StepVariant::keep_numbers(const std::vector<OutsideNumber>& numbers) {
  numbers_.clear();
  std::copy_if(
      numbers.begin(), numbers.end(), std::back_inserter(numbers_), [](const auto& number) {
        return !number.is_gone();
      });
}

const OutsideNumber* StepVariant::changed_number() const {
  const auto changed = std::find_if(
      numbers_.begin(), numbers_.end(), [](const auto& number) { return number.has_changed(); });
  return changed == numbers_.end() ? nullptr : &*changed;
}

void StepVariant::look_at_state() {
  if (!is_ready()) {
    return;
  }
  if (const Slot* const moved = moved_state()) {
    start_anew('"' + moved->name + "\" is in other memory than before",
               "Copy into state in place (copy_) instead of replacing it");
  } else if (const OutsideNumber* const changed = changed_number()) {
    start_anew("a number that it took from outside is no longer " + changed->to_string(),
               "Make it a buffer of the model, or state of a callback");
  }
}

void StepVariant::start_anew(const std::string& why, const std::string& advice) {
  log_.debug("step " + name_ + ": " + why + "; captured again");
  state_ = State::Empty;
  captured_.reset();
  if (++moves_in_a_row_ >= kMaxMovesInARow) {
    refuse({"step " + name_ + " never settles: after each capture " + why, advice});
  }
}

DueSet StepVariant::due_closures(const StepCall& call) const {
  DueSet due = DueSet{1} << kDueClosures;
  for (const ClosureOutput& closure : program_.closures) {
    if (closure.index < kDueClosures && call.asks_for(closure.cadence)) {
      due |= DueSet{1} << closure.index;
    }
  }
  return due;
}

// Null: a guard failed.
const std::vector<at::Tensor>* StepVariant::replay(const StepCall& call, DueSet due) {
  casts_->prepare(use_of_casts_);
  return replaying(call, [&]() -> const std::vector<at::Tensor>* {
    const std::vector<at::Tensor>& results = executor_->run(call.batch, due);
    return executor_->missed_guard() == nullptr ? &results : nullptr;
  });
}

const Outputs* StepVariant::run_verified(const StepCall& call) {
  const HeapWithoutHoles heap;
  const bool is_first = replays_since_capture_ == 0;
  Verified verified;
  {
    const Stopwatch watch(stats_.verify_s);
    Verification verification{program_, call, host_calls_, log_};
    if (state_ == State::Unconfirmed) {
      verification.confirm = [this](const CapturedStep& third) { return objection_to(third); };
    }
    verified = verification.run([&] { return replay(call, kAlwaysDue); });
  }
  if (verified.refusal) {
    if (!is_first) {  // updates since the last good one may be wrong
      throw CaptureError(later_error_text(*verified.refusal));
    }
    keep_as_written(call, std::move(verified));
    return &outputs_;
  }
  if (verified.replayed == nullptr && missed_guard() == nullptr) {
    state_ = State::Differed;  // memory does not allow the third capture here
    return nullptr;
  }
  return finish(call, verified.replayed);
}

// Not the first replay, which is verified.
bool StepVariant::is_to_be_compared() const {
  return options_.instruments.compares_operators && !comparison_ && state_ == State::Ready &&
         replays_since_capture_ == 1 && recorded_ != nullptr && planned() != nullptr;
}

// Null: it is run by the interpreter.
PlannedExecutor* StepVariant::planned() const {
  return dynamic_cast<PlannedExecutor*>(executor_.get());
}

const Outputs* StepVariant::run_compared(const StepCall& call) {
  StateSnapshot state(call.state(), call.batch);
  std::vector<char> answers;
  StepCall keeps_answers = call;
  keeps_answers.answers = &answers;
  OperatorComparison comparison(*recorded_);
  casts_->prepare(use_of_casts_);
  const std::vector<at::Tensor>* const results =
      replaying(keeps_answers, [&] { return comparison.replay(*planned(), call.batch); });
  if (call.answers != nullptr) {
    call.answers->insert(call.answers->end(), answers.begin(), answers.end());
  }
  if (results != nullptr) {
    state.swap();  // as before the step
    comparison_.emplace();
    try {
      *comparison_ = comparison.run_recorded(call.batch, answers);
    } catch (const std::exception&) {  // the run goes on with the replay
      log_.warning("step " + name_ +
                   ": its operators are not compared: " + describe(std::current_exception()));
    }
    state.swap();
  }
  return finish(call, results);
}

void StepVariant::keep_as_written(const StepCall& call, Verified verified) {
  casts_->forget();
  refuse(std::move(*verified.refusal));
  outputs_ = std::move(verified.outputs);
  for (StepClosure& closure : verified.closures) {
    if (call.asks_for(closure.cadence)) {
      call.queue.push_back(detached(std::move(closure)));
    }
  }
}

void StepVariant::note_arenas(int64_t bytes) {
  if (replays_since_capture_ == 0) {
    arenas_at_capture_ = bytes - stats_.arena_bytes;
    return;
  }
  if (replays_since_capture_ == 1) {
    arenas_at_first_ = bytes;
  }
  if (has_tried_kernels_) {
    arenas_at_trial_ = bytes;
  }
}

StepReport StepVariant::report() const {
  StepReport report;
  report.position = position_;
  report.samples = samples_;
  report.stats = stats_;
  report.mode = answers_.empty() ? "traced" : "guarded";
  report.guards = guards_of(program_);
  report.program = to_text(program_);
  report.plan = executor_ == nullptr ? "" : executor_->to_text();
  report.graph = graph_text(program_);
  if (executor_ != nullptr) {
    report.memory = executor_->memory();
    report.memory.capture = capture_bytes_;
    report.memory.arenas_at_capture = arenas_at_capture_;
    report.memory.arenas_at_first = arenas_at_first_;
    report.memory.arenas_at_trial = arenas_at_trial_;
  }
  report.timeline = executor_ == nullptr ? StepTimeline() : executor_->timeline();
  return report;
}

}  // namespace rondo
