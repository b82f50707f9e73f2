#include "backends/checks/verification.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include "backends/checks/state_snapshot.h"
#include "backends/recording/capture.h"
#include "backends/scoped.h"
#include "core/error.h"
#include "core/state_dict.h"

namespace rondo {

namespace {

class MutedBody final : public BodyRequests {
 public:
  MutedBody(const StepCall& call, const HostCalls& host_calls)
      : call_(call), host_calls_(host_calls) {}

  Outputs run(const Batch& batch) {
    recorder_ = call_.requests;
    const Scoped<BodyRequests*> requests(call_.requests, this);
    return call_.body(batch);
  }

  CapturedStep run_recorded(const std::string& name) {
    const StepBody body = [this](const Batch& batch) { return run(batch); };
    const IsDue is_due = [](const Cadence&) { return false; };
    ClosureQueue queue;
    return capture_step(name,
                        {call_.batch, body, is_due, queue, call_.provide_state, call_.requests});
  }

  void defer(StepClosure closure) override {
    closures_.push_back(closure.tensors);
    if (recorder_ != nullptr) {
      recorder_->defer(std::move(closure));
    }
  }

  void host_call(std::string name, std::vector<at::Tensor> tensors, HostFunction) override {
    const HostFunction answer = [this, id = host_calls_made_++](std::vector<at::Tensor> of_call) {
      host_calls_.answer(id, of_call);
    };
    if (recorder_ != nullptr) {
      recorder_->host_call(std::move(name), std::move(tensors), answer);
    } else {
      answer(tensors);
    }
  }

  void set_location(std::string_view callback, std::string_view hook) override {
    if (recorder_ != nullptr) {
      recorder_->set_location(callback, hook);
    }
  }

  const std::vector<std::vector<at::Tensor>>& closures() const { return closures_; }

 private:
  const StepCall& call_;
  const HostCalls& host_calls_;
  BodyRequests* recorder_ = nullptr;  // null: nobody records
  std::vector<std::vector<at::Tensor>> closures_;
  size_t host_calls_made_ = 0;
};

// Forgets the answers when the verification is over, however it ends.
class KeepAnswers {
 public:
  explicit KeepAnswers(HostCalls& calls) : calls_(calls) { calls_.keep_answers(true); }

  KeepAnswers(const KeepAnswers&) = delete;
  KeepAnswers& operator=(const KeepAnswers&) = delete;

  ~KeepAnswers() { calls_.keep_answers(false); }

 private:
  HostCalls& calls_;
};

// Null, with a warning, when memory does not allow it.
std::unique_ptr<StateSnapshot> snapshot(const Verification& verification) {
  try {
    return std::make_unique<StateSnapshot>(verification.call.state(), verification.call.batch);
  } catch (const std::bad_alloc&) {
  } catch (const c10::Error&) {
  }
  verification.log.warning(
      "step " + verification.program.name +
      ": the replay is not compared with eager, because memory does not hold a "
      "second copy of the state (backend.verify = \"off\" silences this)");
  return nullptr;
}

// ", last written by aten::add_ in AdamW.update", or "" when nothing writes the tensor.
std::string last_writer(const StepProgram& program, int32_t storage) {
  const auto is_of = [&](SlotId slot) {
    return slot != kNoTensor && program.slots[static_cast<size_t>(slot)].storage == storage;
  };
  for (size_t i = program.instructions.size(); i-- > 0;) {
    const Instruction& instruction = program.instructions[i];
    bool writes = std::any_of(instruction.writes.begin(), instruction.writes.end(), is_of);
    for_each_slot(instruction.results, [&](SlotId slot) { writes = writes || is_of(slot); });
    if (writes) {
      return ", last written by " + operator_name(instruction.op) + " in " +
             to_string(program.locations[static_cast<size_t>(instruction.location)]);
    }
  }
  return "";
}

std::string last_writer(const StepProgram& program, const std::string& name) {
  for (const Slot& slot : program.slots) {
    if (slot.kind != SlotKind::Produced && slot.name == name) {
      return last_writer(program, slot.storage);
    }
  }
  return "";
}

std::string outputs_difference(const StepProgram& program,
                               const Outputs& eager,
                               const std::vector<at::Tensor>& replayed) {
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const auto& [name, slot] = program.outputs[i];
    const at::Tensor* const tensor = eager.find(name);
    if (tensor == nullptr || !equal_bytes(tensor->detach(), replayed[i])) {
      return "output \"" + name + "\"" +
             last_writer(program, program.slots[static_cast<size_t>(slot)].storage);
    }
  }
  return "";
}

std::string closures_difference(const StepProgram& program,
                                const std::vector<std::vector<at::Tensor>>& eager,
                                const std::vector<at::Tensor>& replayed) {
  size_t next = program.outputs.size();
  for (const ClosureOutput& closure : program.closures) {
    for (size_t i = 0; i < closure.tensors.size(); ++i, ++next) {
      const bool is_there = closure.index < eager.size() && i < eager[closure.index].size();
      if (!is_there || !equal_bytes(eager[closure.index][i].detach(), replayed[next])) {
        const auto slot = static_cast<size_t>(closure.tensors[i]);
        return "tensor " + std::to_string(i) + " of step closure " + std::to_string(closure.index) +
               last_writer(program, program.slots[slot].storage);
      }
    }
  }
  return "";
}

}  // namespace

const std::vector<at::Tensor>* Verification::run(
    const std::function<const std::vector<at::Tensor>&()>& replay) const {
  const std::unique_ptr<StateSnapshot> before = snapshot(*this);
  if (before == nullptr) {
    return confirm ? nullptr : &replay();
  }
  const KeepAnswers answers(host_calls);
  const auto replay_or_undo = [&]() -> const std::vector<at::Tensor>& {
    try {
      return replay();
    } catch (...) {
      if (confirm) {
        before->swap();
      }
      throw;
    }
  };
  const std::vector<at::Tensor>& replayed = replay_or_undo();
  before->swap();  // the state is as before the step; the copy holds what the replay left
  MutedBody body(call, host_calls);
  const auto run_as_written = [&] {
    if (!confirm) {
      return body.run(call.batch);
    }
    CapturedStep step = body.run_recorded(program.name);
    confirm(step.program);
    return std::move(step.outputs);
  };
  const Outputs eager = run_as_written();

  const std::string state = before->first_difference();
  std::string difference = state.empty() ? "" : "\"" + state + "\"" + last_writer(program, state);
  if (difference.empty()) {
    difference = outputs_difference(program, eager, replayed);
  }
  if (difference.empty()) {
    difference = closures_difference(program, body.closures(), replayed);
  }
  if (!difference.empty()) {
    throw CaptureError("step " + program.name +
                       ": its replay differs from the step as written in " + difference +
                       ". What the body reads on the host (a counter, a pointer, a flag) is frozen "
                       "into the replay: make it a tensor, a host call or part of the step's key; "
                       "backend.mode=eager runs the step as written");
  }
  return &replayed;
}

}  // namespace rondo
