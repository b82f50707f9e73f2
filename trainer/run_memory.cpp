#include "trainer/run_memory.h"

#include <algorithm>

namespace rondo {

namespace {

bool begins_with(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

const char* kind_of(const std::string& captured) {
  if (begins_with(captured, "model.") || begins_with(captured, "optimizer.param/")) {
    return "model";
  }
  if (begins_with(captured, "optimizer.grad/")) {
    return "kept gradients";
  }
  if (begins_with(captured, "cast.")) {
    return "kept casts";
  }
  return begins_with(captured, "optimizer.") ? "optimizer state" : "other state";
}

/// "model.layers.0.weight" belongs to "layers.0"
std::string module_of(const std::string& captured) {
  const size_t begin = captured.find('.') + 1;
  const size_t end = captured.rfind('.');
  return end > begin ? captured.substr(begin, end - begin) : "the model itself";
}

}  // namespace

int64_t RunMemory::of_state() const {
  int64_t sum = 0;
  for (const auto& [kind, bytes] : state) {
    sum += bytes;
  }
  return sum;
}

int64_t RunMemory::of_replays() const {
  return of_state() + inputs + constants + arenas + adopted;
}

int64_t RunMemory::peak() const {
  const int64_t captures = of_state() + inputs + constants + capture;
  const int64_t trials = of_replays() + trial;
  if (!is_verified) {
    return std::max(captures, trials);
  }
  // Beside a copy of the state the step runs as written, and then as a replay.
  const int64_t copy = of_state() + inputs;
  const int64_t as_written = of_replays() - adopted + capture;
  return std::max(captures, copy + std::max(as_written, trials));
}

RunMemory memory_of(const std::vector<StepReport>& steps, bool is_verified) {
  RunMemory all;
  all.is_verified = is_verified;
  std::map<std::string, int64_t> captured;
  for (const StepReport& step : steps) {
    for (const NamedBytes& one : step.memory.captured) {
      captured[one.name] = one.bytes;
    }
    all.inputs = std::max(all.inputs, step.memory.inputs);
    all.constants += step.memory.constants;
    all.arenas += step.memory.arena;
    all.adopted = std::max(all.adopted, step.memory.adopted);
    all.capture = std::max(all.capture, step.memory.capture);
    all.trial = std::max(all.trial, step.memory.trial);
  }
  for (const auto& [name, bytes] : captured) {
    const std::string kind = kind_of(name);
    all.state[kind] += bytes;
    if (kind == "model") {
      all.modules[module_of(name)] += bytes;
    }
  }
  return all;
}

}  // namespace rondo
