#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <string>

#include "sweep/guarded_memory.h"
#include "sweep/operator_samples.h"

namespace rondo::test {

/// What came of running an operator's out variant as a plan's trial does.
struct TrialOutcome {
  enum class Kind {
    Unsuitable,  ///< the operator does not take the arguments
    NeverOut,    ///< a plan never lets the out variant run the call
    Used,        ///< the out variant gives the operator's bytes
    NotUsed,     ///< it does not, or changes its tensors: a plan calls the operator itself
    Wrong        ///< memory beside a slot was written, or a slot is not as planned afterwards
  };

  Kind kind = Kind::Unsuitable;
  std::string reason;
};

/// Calls the operator: `Used` stands for a call that trials can be run of.
TrialOutcome call_plainly(const c10::OperatorHandle& op, const SampleArguments& arguments);

/// Records the call as a step of one instruction and runs the trials of its out variant, and of
/// each kernel of rondo's own that accepts it, twice, with every slot in memory of its own beside
/// a page that nobody may touch. A write to that page, or into an argument, ends the process.
/// \param begin  called after the operator itself was called on such memory: an end of the process
///               before that is not due to a trial
TrialOutcome run_trials(const c10::OperatorHandle& op,
                        const SampleArguments& arguments,
                        Side side,
                        const std::function<void()>& begin);

}  // namespace rondo::test
