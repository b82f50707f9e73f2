#include "tracing/checks/operator_comparison.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/json.h"
#include "tracing/checks/program_walk.h"
#include "tracing/plan/planned_executor.h"
#include "tracing/program/kernels_only.h"

namespace rondo {

namespace {

/// Images in blocks of channels, [N, C / b, H, W, b], as images.
at::Tensor out_of_blocks(const at::Tensor& value, const at::Tensor& recorded) {
  const bool is_in_blocks = value.dim() == 5 && recorded.dim() == 4 &&
                            value.size(1) * value.size(4) == recorded.size(1) &&
                            value.numel() == recorded.numel();
  return is_in_blocks ? value.permute({0, 1, 4, 2, 3}).reshape(recorded.sizes()) : value;
}

/// For each slot, the instruction that writes it last.
std::map<SlotId, size_t> last_writers(const StepProgram& program) {
  std::map<SlotId, size_t> last;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    if (!program.instructions[i].is_allocation) {
      for (const SlotId slot : written_slots(program.instructions[i])) {
        last[slot] = i;
      }
    }
  }
  return last;
}

bool can_be_compared(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && !a.is_complex();
}

/// The worse of two: a NaN is worst.
double worse(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
}

void add_difference(OperatorError& error, const at::Tensor& replayed, const at::Tensor& recorded) {
  const at::Tensor a = replayed.to(at::kDouble);
  const at::Tensor b = recorded.to(at::kDouble);
  const at::Tensor equal = a.eq(b).logical_or_(a.isnan().logical_and_(b.isnan()));
  error.elements += a.numel();
  error.differing += a.numel() - equal.sum().item<int64_t>();
  if (error.differing == 0) {
    return;
  }
  // Equal infinities and NaNs differ by 0.
  const at::Tensor difference = (a - b).masked_fill_(equal, 0.0).abs_();
  error.largest = worse(error.largest, difference.max().item<double>());
  const double norm =
      b.masked_fill(equal.logical_and(b.isfinite().logical_not()), 0.0).norm().item<double>();
  error.relative = worse(error.relative,
                         norm > 0.0 ? difference.norm().item<double>() / norm
                                    : std::numeric_limits<double>::infinity());
}

void add_row(std::string& text, const OperatorError& error, const std::string& name) {
  text += fmt::format("  {:>10.3g} {:>10.3g} {:>10} {:>10}  {}\n",
                      error.largest,
                      error.relative,
                      error.differing,
                      error.elements,
                      name);
}

constexpr const char* kHeader = "     largest   relative     differ   elements\n";

std::string number_or_null(double number) {
  return std::isfinite(number) ? fmt::format("{}", number) : "null";
}

}  // namespace

const OperatorError* OperatorErrors::first() const {
  const auto found = std::find_if(
      operators.begin(), operators.end(), [](const auto& error) { return error.differing > 0; });
  return found == operators.end() ? nullptr : &*found;
}

const std::vector<at::Tensor>* OperatorComparison::replay(PlannedExecutor& executor,
                                                          const Batch& batch) {
  const Deadline at_once = Deadline::min();  // one instruction at a time
  executor.start(batch, kAlwaysDue);
  const size_t count = executor.plan().instructions.size();
  const std::vector<at::Tensor>* results = nullptr;
  for (size_t place = 0; place < std::max(count, size_t{1}) && results == nullptr; ++place) {
    results = executor.advance(at_once);
    if (executor.missed_guard() != nullptr) {
      return nullptr;
    }
    if (place < count) {
      keep(executor, place);
    }
  }
  return results;
}

void OperatorComparison::keep(const PlannedExecutor& executor, size_t place) {
  const Plan& plan = executor.plan();
  const PlannedInstruction& planned = plan.instructions[place];
  for (const SlotId slot : written_slots(plan.program.instructions[planned.index])) {
    const bool is_released =
        std::find(planned.releases.begin(), planned.releases.end(), slot) != planned.releases.end();
    if (!is_released) {
      replayed_[slot] = plan.memory->tensor(slot).clone();
    }
  }
}

OperatorErrors OperatorComparison::run_recorded(const Batch& batch,
                                                const std::vector<char>& answers) const {
  const KernelsOnly scope;
  const std::map<SlotId, size_t> last = last_writers(recorded_);
  ProgramWalk walk(recorded_, batch, answers);
  OperatorErrors errors;
  for (size_t i = 0; i < recorded_.instructions.size(); ++i) {
    const Instruction& instruction = recorded_.instructions[i];
    walk.execute(instruction);
    OperatorError error;
    bool is_compared = false;
    for (const SlotId slot : written_slots(instruction)) {
      const auto writer = last.find(slot);
      if (writer == last.end() || writer->second != i) {
        continue;
      }
      const at::Tensor& recorded = walk.tensor(slot);
      const auto found = replayed_.find(slot);
      const at::Tensor replayed =
          found == replayed_.end() ? at::Tensor() : out_of_blocks(found->second, recorded);
      if (replayed.defined() && can_be_compared(replayed, recorded)) {
        add_difference(error, replayed, recorded);
        is_compared = true;
      } else {
        ++errors.not_compared;
      }
    }
    if (is_compared) {
      error.op = operator_name(instruction.op);
      error.place = to_string(recorded_.origins[static_cast<size_t>(instruction.origin)]) + ", " +
                    to_string(recorded_.locations[static_cast<size_t>(instruction.location)]);
      error.source = error.differing > 0 ? source_of(recorded_, instruction) : "";
      error.instruction = to_text(instruction);
      errors.operators.push_back(std::move(error));
    }
  }
  return errors;
}

std::string to_text(const ComparedStep& step) {
  const OperatorError* const first = step.errors.first();
  const auto differing = std::count_if(step.errors.operators.begin(),
                                       step.errors.operators.end(),
                                       [](const auto& error) { return error.differing > 0; });
  std::string text =
      fmt::format("step {}: {} operators compared, {} differ; passes removed or fused {} values\n",
                  step.step,
                  step.errors.operators.size(),
                  differing,
                  step.errors.not_compared);
  if (first != nullptr) {
    text += fmt::format("first that differs: {}, {}\n", first->op, first->place);
    text += first->source.empty() ? "" : "  code: " + first->source + '\n';
    text += "  " + first->instruction + '\n';
  }
  std::map<std::string, OperatorError> by_operator;
  for (const OperatorError& error : step.errors.operators) {
    OperatorError& sum = by_operator[error.op];
    sum.elements += error.elements;
    sum.differing += error.differing;
    sum.largest = worse(sum.largest, error.largest);
    sum.relative = worse(sum.relative, error.relative);
  }
  text += std::string(" by operator\n") + kHeader;
  for (const auto& [name, sum] : by_operator) {
    add_row(text, sum, name);
  }
  if (differing > 0) {
    text += std::string(" instructions that differ\n") + kHeader;
    for (const OperatorError& error : step.errors.operators) {
      if (error.differing > 0) {
        add_row(text, error, error.op + ", " + error.place);
      }
    }
  }
  return text;
}

std::string to_json(const ComparedStep& step) {
  std::string rows;
  for (const OperatorError& error : step.errors.operators) {
    rows += fmt::format(
        "{}{{\"op\": {}, \"place\": {}, \"line\": {}, \"instruction\": {}, \"elements\": {}, "
        "\"differing\": {}, \"largest\": {}, \"relative\": {}}}",
        rows.empty() ? "" : ",\n",
        json_string(error.op),
        json_string(error.place),
        json_string(error.source),
        json_string(error.instruction),
        error.elements,
        error.differing,
        number_or_null(error.largest),
        number_or_null(error.relative));
  }
  return "[\n" + rows + "\n]\n";
}

}  // namespace rondo
