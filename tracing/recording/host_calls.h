#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "backends/step.h"

namespace rondo {

/// The host functions of one step, in the order in which the step calls them.
class HostCalls {
 public:
  /// \return its number
  int64_t add(HostFunction function);

  /// Runs a function on the step's tensors; keeps what it throws, because an interpreter in between
  /// forgets the type.
  void call(int64_t id, const std::vector<at::Tensor>& tensors);

  /// From here on each call keeps what it got and what it left in its tensors; forgets what was
  /// kept before.
  void keep_answers(bool keep);

  /// How many calls were kept.
  size_t answers() const { return answers_.size(); }

  /// Instead of a call: gives the tensors the bytes that the same call of a replay left.
  /// \return false, and nothing is given, when the replay made no such call
  bool answer(size_t id, std::vector<at::Tensor>& tensors);

  /// Whether an answer was given to other bytes than it was made for.
  bool has_misled() const { return has_misled_; }

  /// From here on each call adds the bytes that it left in its tensors; null: no more.
  void append_answers_to(std::vector<char>* bytes) { answer_bytes_ = bytes; }

  /// What a function threw since the last time this was asked, or null.
  std::exception_ptr take_exception();

  void clear();

 private:
  struct Answer {
    std::vector<at::Tensor> got;
    std::vector<at::Tensor> left;
  };

  std::vector<HostFunction> functions_;
  std::vector<Answer> answers_;  // by number
  bool keeps_answers_ = false;
  bool has_misled_ = false;
  std::vector<char>* answer_bytes_ = nullptr;
  std::exception_ptr exception_;
};

/// While it lives, `rondo::host_call` on this thread goes to `calls`.
class HostCallScope {
 public:
  explicit HostCallScope(HostCalls& calls);
  HostCallScope(const HostCallScope&) = delete;
  HostCallScope& operator=(const HostCallScope&) = delete;
  ~HostCallScope();

 private:
  HostCalls* before_;
};

/// Calls the operator: runs the function, and records itself when a step is recorded.
void dispatch_host_call(int64_t id, const std::vector<at::Tensor>& tensors);

}  // namespace rondo
