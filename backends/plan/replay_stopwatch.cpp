#include "backends/plan/replay_stopwatch.h"

#include <set>

namespace rondo {

namespace {

// Replays before the first that is timed: every kernel has stood its trials, caches are warm.
constexpr int64_t kSkipped = 5;

double mean_seconds(std::chrono::steady_clock::duration sum, int64_t count) {
  return count == 0 ? 0.0 : std::chrono::duration<double>(sum).count() / static_cast<double>(count);
}

int64_t bytes_of(const StepProgram& program, const Instruction& instruction) {
  std::set<SlotId> slots;
  for_each_slot(instruction.arguments, [&](SlotId slot) { slots.insert(slot); });
  for_each_slot(instruction.results, [&](SlotId slot) { slots.insert(slot); });
  int64_t bytes = 0;
  for (const SlotId id : slots) {
    const Slot& slot = program.slots[static_cast<size_t>(id)];
    int64_t elements = 1;
    for (const int64_t size : slot.sizes) {
      elements *= size;
    }
    bytes += elements * static_cast<int64_t>(c10::elementSize(slot.dtype));
  }
  return bytes;
}

}  // namespace

ReplayStopwatch::ReplayStopwatch(size_t instructions, int64_t replays)
    : left_(replays > 0 ? replays + kSkipped : 0), replays_(replays), sums_(instructions) {}

void ReplayStopwatch::begin() {
  is_timing_ = left_-- <= replays_;
  begin_ = last_ = Clock::now();
}

void ReplayStopwatch::add(size_t place) {
  const Clock::time_point now = Clock::now();
  sums_[place] += now - last_;
  last_ = now;
}

void ReplayStopwatch::end() {
  whole_ += Clock::now() - begin_;
  ++timed_;
  is_timing_ = false;
}

StepTimeline ReplayStopwatch::timeline(const Plan& plan) const {
  StepTimeline timeline;
  timeline.replays = timed_;
  timeline.replay_s = mean_seconds(whole_, timed_);
  for (size_t i = 0; timed_ > 0 && i < sums_.size(); ++i) {
    const Instruction& instruction = plan.program.instructions[plan.instructions[i].index];
    timeline.instructions.push_back({operator_name(instruction.op),
                                     module_of(plan.program, instruction),
                                     source_of(plan.program, instruction),
                                     to_text(instruction),
                                     mean_seconds(sums_[i], timed_),
                                     bytes_of(plan.program, instruction)});
  }
  return timeline;
}

}  // namespace rondo
