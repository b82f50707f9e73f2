#include "tracing/passes/passes.h"

namespace rondo {

namespace {

void add(std::vector<DueSet>& users, const std::vector<bool>& needed, DueSet by) {
  for (size_t i = 0; i < needed.size(); ++i) {
    users[i] |= needed[i] ? by : 0;
  }
}

}  // namespace

std::vector<DueSet> find_users(const StepProgram& program) {
  const size_t closures = program.closures.size();
  std::vector<DueSet> users(program.instructions.size(), 0);
  std::vector<bool> due(closures, false);
  for (size_t i = kDueClosures; i < closures; ++i) {
    due[i] = true;
  }
  add(users, needed_instructions(program, due), kAlwaysDue);
  for (size_t i = 0; i < closures && i < kDueClosures; ++i) {
    std::vector<bool> only(closures, false);
    only[i] = true;
    add(users, needed_instructions(program, only), DueSet{1} << i);
  }
  return users;
}

}  // namespace rondo
