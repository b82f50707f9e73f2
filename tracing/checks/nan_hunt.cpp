#include "tracing/checks/nan_hunt.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "tracing/checks/program_walk.h"
#include "tracing/program/kernels_only.h"

namespace rondo {

namespace {

/// Who is to blame for what is not finite in a part of a storage.
struct Blame {
  int64_t begin = 0;  // in bytes
  int64_t end = 0;
  std::shared_ptr<NanFinding> finding;  // null: a constant
  bool is_meant = false;                // infinities that constants asked for
};

bool holds_infinity(const c10::IValue& constant) {
  if (constant.isDouble()) {
    return std::isinf(constant.toDouble());
  }
  return constant.isScalar() && constant.toScalar().isFloatingPoint() &&
         std::isinf(constant.toScalar().toDouble());
}

// One step, run once more.
class Walk {
 public:
  explicit Walk(const KeptStep& step)
      : program_(*step.program),
        walk_(program_, step.batch, step.answers),
        blames_(static_cast<size_t>(program_.storages)) {}

  std::shared_ptr<NanFinding> run() {
    blame_outside();
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      run(i);
    }
    return worst_end();
  }

 private:
  const Slot& slot(SlotId id) const { return program_.slots[static_cast<size_t>(id)]; }

  const at::Tensor& tensor(SlotId id) const { return walk_.tensor(id); }

  // What is not finite before anything runs.
  void blame_outside() {
    for (size_t i = 0; i < program_.slots.size(); ++i) {
      const Slot& outside = program_.slots[i];
      const auto id = static_cast<SlotId>(i);
      if (outside.kind == SlotKind::Produced || count_non_finite(tensor(id)) == 0) {
        continue;
      }
      const TensorSummary summary = summary_of(outside.name, tensor(id));
      Blame blame;
      blame.is_meant = outside.kind != SlotKind::Input && summary.nans == 0;
      if (!blame.is_meant) {
        blame.finding = std::make_shared<NanFinding>();
        blame.finding->kind =
            outside.kind == SlotKind::Input ? NanFinding::Kind::Batch : NanFinding::Kind::State;
        blame.finding->step = program_.name;
        blame.finding->op = outside.name;
        blame.finding->results = {summary};
      }
      set_blame(id, std::move(blame));
    }
  }

  void run(size_t index) {
    const Instruction& instruction = program_.instructions[index];
    std::vector<TensorSummary> inputs = summaries_of_arguments(instruction);
    std::vector<Blame> causes;
    for_each_slot(instruction.arguments, [&](SlotId id) {
      if (const Blame* blame = blame_of(id); blame != nullptr && count_non_finite(tensor(id)) > 0) {
        causes.push_back(*blame);
      }
    });
    const bool has_nan_input = std::any_of(
        inputs.begin(), inputs.end(), [](const TensorSummary& input) { return input.nans > 0; });
    walk_.execute(instruction);
    std::vector<std::pair<SlotId, TensorSummary>> bad;
    for (const SlotId id : written_slots(instruction)) {
      if (count_non_finite(tensor(id)) == 0) {
        clear_blame(id);
      } else {
        bad.emplace_back(id, summary_of(name_of(id), tensor(id)));
      }
    }
    if (bad.empty() || instruction.is_allocation) {
      return;
    }
    const bool is_nan = std::any_of(
        bad.begin(), bad.end(), [](const auto& result) { return result.second.nans > 0; });
    const Blame blame = judge(index, std::move(inputs), causes, is_nan && !has_nan_input, bad);
    for (const auto& result : bad) {
      set_blame(result.first, blame);
    }
  }

  // Who is to blame for what an instruction just made.
  Blame judge(size_t index,
              std::vector<TensorSummary> inputs,
              const std::vector<Blame>& causes,
              bool is_new_nan,
              const std::vector<std::pair<SlotId, TensorSummary>>& bad) {
    const Instruction& instruction = program_.instructions[index];
    const auto cause = std::find_if(
        causes.begin(), causes.end(), [](const Blame& blame) { return !blame.is_meant; });
    Blame blame;
    if (cause != causes.end()) {
      blame = *cause;
      if (is_new_nan && blame.finding->turned.empty()) {
        blame.finding->turned = to_text(instruction);
      }
      return blame;
    }
    const bool has_infinite_constant = std::any_of(
        instruction.arguments.begin(), instruction.arguments.end(), [](const Argument& argument) {
          return argument.kind == Argument::Kind::Constant && holds_infinity(argument.constant);
        });
    blame.is_meant = !is_new_nan && (!causes.empty() || has_infinite_constant);
    blame.finding = finding_at(index, std::move(inputs), bad);
    return blame;
  }

  std::shared_ptr<NanFinding> finding_at(
      size_t index,
      std::vector<TensorSummary> inputs,
      const std::vector<std::pair<SlotId, TensorSummary>>& bad) const {
    const Instruction& instruction = program_.instructions[index];
    const Origin& origin = program_.origins[static_cast<size_t>(instruction.origin)];
    auto finding = std::make_shared<NanFinding>();
    finding->step = program_.name;
    finding->index = index;
    finding->op = operator_name(instruction.op);
    finding->instruction = to_text(instruction);
    finding->phase = origin.phase;
    finding->place = to_string(origin) + ", " +
                     to_string(program_.locations[static_cast<size_t>(instruction.location)]);
    finding->inputs = std::move(inputs);
    for (const auto& result : bad) {
      finding->results.push_back(result.second);
    }
    return finding;
  }

  std::vector<TensorSummary> summaries_of_arguments(const Instruction& instruction) {
    std::vector<TensorSummary> summaries;
    for (size_t i = 0; i < instruction.arguments.size(); ++i) {
      for (const SlotId id : instruction.arguments[i].slots) {
        if (id != kNoTensor) {
          const std::string& own = slot(id).name;
          const std::string name = instruction.op.schema().arguments()[i].name();
          summaries.push_back(summary_of(own.empty() ? name : name + " (" + own + ")", tensor(id)));
        }
      }
    }
    return summaries;
  }

  std::string name_of(SlotId id) const {
    return slot(id).name.empty() ? "%" + std::to_string(id) : slot(id).name;
  }

  std::pair<int64_t, int64_t> bytes_of(SlotId id) const {
    const Slot& it = slot(id);
    return {it.offset * static_cast<int64_t>(c10::elementSize(it.dtype)), extent_of(it)};
  }

  std::vector<Blame>& blames_of(SlotId id) {
    return blames_[static_cast<size_t>(slot(id).storage)];
  }

  const Blame* blame_of(SlotId id) {
    const auto [begin, end] = bytes_of(id);
    const std::vector<Blame>& all = blames_of(id);
    for (auto blame = all.rbegin(); blame != all.rend(); ++blame) {
      if (blame->begin < end && begin < blame->end) {
        return &*blame;
      }
    }
    return nullptr;
  }

  void clear_blame(SlotId id) {
    const auto [begin, end] = bytes_of(id);
    std::vector<Blame>& all = blames_of(id);
    all.erase(std::remove_if(all.begin(),
                             all.end(),
                             [first = begin, last = end](const Blame& blame) {
                               return first <= blame.begin && blame.end <= last;
                             }),
              all.end());
  }

  void set_blame(SlotId id, Blame blame) {
    clear_blame(id);
    std::tie(blame.begin, blame.end) = bytes_of(id);
    blames_of(id).push_back(std::move(blame));
  }

  // Of the loss and the state that the step wrote, what was spoiled by the earliest instruction.
  std::shared_ptr<NanFinding> worst_end() {
    std::shared_ptr<NanFinding> worst;
    const auto look = [&](SlotId id, const std::string& name, bool also_meant) {
      const Blame* blame = count_non_finite(tensor(id)) > 0 ? blame_of(id) : nullptr;
      if (blame == nullptr || blame->finding == nullptr || (blame->is_meant && !also_meant)) {
        return;
      }
      if (worst == nullptr || blame->finding->index < worst->index) {
        worst = blame->finding;
        worst->reached = name;
      }
    };
    for (const auto& [name, id] : program_.outputs) {
      if (name == "loss") {
        look(id, "the loss", true);
      }
    }
    for (const Instruction& instruction : program_.instructions) {
      for (const SlotId id : instruction.writes) {
        if (slot(id).kind == SlotKind::Captured) {
          look(id, slot(id).name, false);
        }
      }
    }
    if (worst != nullptr && worst->kind == NanFinding::Kind::Operator) {
      worst->source = source_of(program_, program_.instructions[worst->index]);
    }
    return worst;
  }

  const StepProgram& program_;
  ProgramWalk walk_;
  std::vector<std::vector<Blame>> blames_;  // one list a storage, the newest last
};

void add_lines(std::string& text, const char* title, const std::vector<TensorSummary>& tensors) {
  for (const TensorSummary& tensor : tensors) {
    text += std::string("\n  ") + title + " " + to_text(tensor);
  }
}

std::string when(int64_t steps_ago) {
  return steps_ago == 0 ? "in the last step"
                        : std::to_string(steps_ago) + (steps_ago == 1 ? " step" : " steps") +
                              " before the last";
}

}  // namespace

std::optional<NanFinding> find_first_bad(const std::vector<KeptStep>& steps, size_t count) {
  const KernelsOnly scope;
  for (size_t i = 0; i < count; ++i) {
    if (steps[i].program == nullptr) {
      break;  // it failed before it was recorded
    }
    if (const std::shared_ptr<NanFinding> found = Walk(steps[i]).run()) {
      found->steps_ago = static_cast<int64_t>(count - 1 - i);
      return *found;
    }
  }
  return std::nullopt;
}

std::string to_text(const NanFinding& finding) {
  std::string text;
  if (finding.kind == NanFinding::Kind::Operator) {
    text = "first bad operator: " + finding.op + ", " + finding.place + ", " +
           when(finding.steps_ago) + " (" + finding.step + ")";
    text += finding.source.empty() ? "" : "\n  code: " + finding.source;
    text += "\n  " + finding.instruction;
  } else {
    const bool is_batch = finding.kind == NanFinding::Kind::Batch;
    text = std::string("nothing in the step made it: ") +
           (is_batch ? "it came with the batch, in \"" : "it was in the state before, in \"") +
           finding.op + "\", " + when(finding.steps_ago) + " (" + finding.step + ")";
  }
  add_lines(text, "in ", finding.inputs);
  add_lines(text, "out", finding.results);
  text += finding.turned.empty() ? "" : "\n  became NaN in " + finding.turned;
  return text + (finding.reached.empty() ? "" : "\n  reached " + finding.reached);
}

}  // namespace rondo
