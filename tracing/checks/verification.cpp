#include "tracing/checks/verification.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include "backends/scoped.h"
#include "backends/staging.h"
#include "core/error.h"
#include "core/state_dict.h"
#include "tracing/checks/equal_numbers.h"
#include "tracing/checks/state_snapshot.h"
#include "tracing/recording/capture.h"

namespace rondo {

namespace {

class MutedBody final : public BodyRequests {
 public:
  MutedBody(const StepCall& call, HostCalls& host_calls) : call_(call), host_calls_(host_calls) {}

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
    closures_.push_back(closure);
    if (recorder_ != nullptr) {
      recorder_->defer(std::move(closure));
    }
  }

  // A call that the replay did not make is made.
  void host_call(std::string name,
                 std::vector<at::Tensor> tensors,
                 HostFunction function) override {
    const HostFunction answer = [this, id = host_calls_made_++, make = std::move(function)](
                                    std::vector<at::Tensor> of_call) {
      if (!host_calls_.answer(id, of_call)) {
        const at::NoGradGuard no_grad;
        make(of_call);
      }
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

  bool is_recording() const override { return true; }

  std::vector<StepClosure>& closures() { return closures_; }

  size_t host_calls_made() const { return host_calls_made_; }

 private:
  const StepCall& call_;
  HostCalls& host_calls_;
  BodyRequests* recorder_ = nullptr;  // null: nobody records
  std::vector<StepClosure> closures_;
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
    if (tensor == nullptr || !equal_numbers(tensor->detach(), replayed[i])) {
      return "output \"" + name + "\"" +
             last_writer(program, program.slots[static_cast<size_t>(slot)].storage);
    }
  }
  return "";
}

std::string closures_difference(const StepProgram& program,
                                const std::vector<StepClosure>& eager,
                                const std::vector<at::Tensor>& replayed) {
  size_t next = program.outputs.size();
  for (const ClosureOutput& closure : program.closures) {
    for (size_t i = 0; i < closure.tensors.size(); ++i, ++next) {
      const bool is_there = closure.index < eager.size() && i < eager[closure.index].tensors.size();
      if (!is_there || !equal_numbers(eager[closure.index].tensors[i].detach(), replayed[next])) {
        const auto slot = static_cast<size_t>(closure.tensors[i]);
        return "tensor " + std::to_string(i) + " of step closure " + std::to_string(closure.index) +
               last_writer(program, program.slots[slot].storage);
      }
    }
  }
  return "";
}

std::string first_difference(const StepProgram& program,
                             const StateSnapshot& replayed_state,
                             const std::vector<at::Tensor>& replayed,
                             const Outputs& eager,
                             const std::vector<StepClosure>& closures) {
  const std::string state = replayed_state.first_difference();
  if (!state.empty()) {
    return "\"" + state + "\"" + last_writer(program, state);
  }
  const std::string outputs = outputs_difference(program, eager, replayed);
  return outputs.empty() ? closures_difference(program, closures, replayed) : outputs;
}

Refusal other_host_calls(const std::string& step, size_t replayed, size_t as_written) {
  return {"step " + step + " makes other host calls than when it was captured (" +
              std::to_string(as_written) + ", captured " + std::to_string(replayed) + ")",
          "call host_call in every step or in none"};
}

Refusal other_bytes(const std::string& step, const std::string& where) {
  return {"step " + step + ": its replay differs from the step as written in " + where,
          "What the body reads on the host (a counter, a pointer, a flag) is frozen into the "
          "replay: make it a tensor, a host call or part of the step's key"};
}

}  // namespace

Verified Verification::run(const std::function<const std::vector<at::Tensor>*()>& replay) const {
  const std::unique_ptr<StateSnapshot> before = snapshot(*this);
  Verified verified;
  if (before == nullptr) {
    verified.replayed = confirm ? nullptr : replay();
    return verified;
  }
  const KeepAnswers answers(host_calls);
  try {
    verified.replayed = replay();
    if (verified.replayed == nullptr) {
      return verified;
    }
  } catch (const CaptureError&) {
    verified.refusal = Refusal{describe(std::current_exception()), "look at what it names"};
  } catch (...) {
    if (confirm) {
      before->swap();
    }
    throw;
  }
  const size_t host_calls_replayed = host_calls.answers();
  before->swap();  // the state is as before the step; the copy holds what the replay left
  MutedBody body(call, host_calls);
  if (confirm) {
    CapturedStep step = body.run_recorded(program.name);
    verified.refusal = verified.refusal ? verified.refusal : confirm(step);
    verified.outputs = std::move(step.outputs);
  } else {
    verified.outputs = detached(body.run(call.batch));
  }
  verified.closures = std::move(body.closures());
  if (!verified.refusal && body.host_calls_made() != host_calls_replayed) {
    verified.refusal = other_host_calls(program.name, host_calls_replayed, body.host_calls_made());
  }
  if (!verified.refusal) {
    const std::string difference =
        first_difference(program, *before, *verified.replayed, verified.outputs, verified.closures);
    if (!difference.empty()) {
      verified.refusal = other_bytes(program.name, difference);
    }
  }
  if (verified.refusal && host_calls.has_misled()) {
    throw CaptureError(error_text(*verified.refusal) +
                       ". A host call got other bytes in the replay, so the state cannot be that "
                       "of the step as written");
  }
  return verified;
}

}  // namespace rondo
