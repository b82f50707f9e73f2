#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "tracing/passes/passes.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

// The operator with its arguments: equal texts compute equal things from equal memory.
std::string key_of(const Instruction& instruction) {
  Instruction bare = instruction;
  bare.results.clear();
  return to_text(bare);
}

bool is_candidate(const Instruction& instruction) {
  return is_pure(instruction) && !instruction.is_allocation && !instruction.results.empty();
}

class Merger {
 public:
  explicit Merger(StepProgram program)
      : program_(std::move(program)), facts_(program_), keep_(program_.instructions.size(), true) {}

  StepProgram run() {
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      if (!is_candidate(program_.instructions[i])) {
        continue;
      }
      const auto [entry, is_new] = first_.try_emplace(key_of(program_.instructions[i]), i);
      if (is_new) {
        continue;
      }
      if (can_merge(entry->second, i)) {
        merge(entry->second, i);
      } else {
        entry->second = i;
      }
    }
    keep_instructions(program_, keep_);
    return std::move(program_);
  }

 private:
  // Nothing may have changed what both read, and nothing may ever write what they give, unless what
  // they give are views of memory that both see anyway. Of two results that are handed out, whoever
  // gets one may write into it.
  bool can_merge(size_t first, size_t second) const {
    const Instruction& a = program_.instructions[first];
    const Instruction& b = program_.instructions[second];
    bool is_unchanged = true;
    std::vector<size_t> read;
    for_each_slot(a.arguments, [&](SlotId slot) {
      read.push_back(storage_of(program_, slot));
      is_unchanged = is_unchanged && !facts_.is_written(read.back(), first, second);
    });
    bool are_views = true;
    bool is_never_written = true;
    const auto look = [&](SlotId slot) {
      const size_t storage = storage_of(program_, slot);
      are_views = are_views && std::find(read.begin(), read.end(), storage) != read.end();
      is_never_written = is_never_written && facts_.writes[storage].empty();
    };
    for_each_slot(a.results, look);
    for_each_slot(b.results, look);
    const bool are_apart = is_handed_out(a) && is_handed_out(b);
    return have_same_holes(a.results, b.results) &&
           (are_views || (is_unchanged && is_never_written && !are_apart));
  }

  bool is_handed_out(const Instruction& instruction) const {
    bool is = false;
    for_each_slot(instruction.results,
                  [&](SlotId slot) { is = is || facts_.escapes[storage_of(program_, slot)]; });
    return is;
  }

  static bool have_same_holes(const std::vector<Result>& a, const std::vector<Result>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Result& x, const Result& y) {
      return std::equal(
          x.slots.begin(), x.slots.end(), y.slots.begin(), y.slots.end(), [](SlotId s, SlotId t) {
            return (s == kNoTensor) == (t == kNoTensor);
          });
    });
  }

  void merge(size_t first, size_t second) {
    const std::vector<Result> kept = program_.instructions[first].results;
    const std::vector<Result> dropped = program_.instructions[second].results;
    for (size_t i = 0; i < kept.size(); ++i) {
      for (size_t k = 0; k < kept[i].slots.size(); ++k) {
        if (kept[i].slots[k] != kNoTensor && kept[i].slots[k] != dropped[i].slots[k]) {
          if (facts_.escapes[storage_of(program_, dropped[i].slots[k])]) {
            facts_.escapes[storage_of(program_, kept[i].slots[k])] = true;
          }
          replace_slot(program_, dropped[i].slots[k], kept[i].slots[k]);
        }
      }
    }
    keep_[second] = false;
  }

  StepProgram program_;
  StorageFacts facts_;
  std::vector<bool> keep_;
  std::unordered_map<std::string, size_t> first_;
};

}  // namespace

StepProgram merge_common_subexpressions(StepProgram program) {
  return Merger(std::move(program)).run();
}

}  // namespace rondo
