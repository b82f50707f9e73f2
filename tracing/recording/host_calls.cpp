#include "tracing/recording/host_calls.h"

#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include "core/state_dict.h"
#include "tracing/recording/dispatcher.h"

namespace rondo {

namespace {

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : tensors) {
    all.push_back(tensor.detach().clone());
  }
  return all;
}

}  // namespace

int64_t HostCalls::add(HostFunction function) {
  functions_.push_back(std::move(function));
  return static_cast<int64_t>(functions_.size()) - 1;
}

void HostCalls::call(int64_t id, const std::vector<at::Tensor>& tensors) {
  if (keeps_answers_) {
    answers_.push_back({copies(tensors), {}});
  }
  try {
    functions_.at(static_cast<size_t>(id))(tensors);
  } catch (...) {
    exception_ = std::current_exception();
    throw;
  }
  if (answer_bytes_ != nullptr) {
    for (const at::Tensor& tensor : tensors) {
      const at::Tensor plain = tensor.to(at::kCPU).contiguous();
      const auto* const bytes = static_cast<const char*>(plain.data_ptr());
      answer_bytes_->insert(answer_bytes_->end(), bytes, bytes + plain.nbytes());
    }
  }
  if (keeps_answers_) {
    answers_.back().left = copies(tensors);
  }
}

void HostCalls::keep_answers(bool keep) {
  keeps_answers_ = keep;
  answers_.clear();
  has_misled_ = false;
}

bool HostCalls::answer(size_t id, std::vector<at::Tensor>& tensors) {
  if (id >= answers_.size() || answers_[id].left.size() != tensors.size()) {
    return false;
  }
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < tensors.size(); ++i) {
    has_misled_ = has_misled_ || !equal_bytes(tensors[i].detach(), answers_[id].got[i]);
    tensors[i].copy_(answers_[id].left[i]);
  }
  return true;
}

std::exception_ptr HostCalls::take_exception() {
  return std::exchange(exception_, nullptr);
}

void HostCalls::clear() {
  *this = HostCalls();
}

HostCallScope::HostCallScope(HostCalls& calls) : before_(exchange_host_calls(&calls)) {}

HostCallScope::~HostCallScope() {
  exchange_host_calls(before_);
}

void dispatch_host_call(int64_t id, const std::vector<at::Tensor>& tensors) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("rondo::host_call", "")
                             .typed<void(int64_t, at::TensorList)>();
  const at::NoGradGuard no_grad;
  op.call(id, tensors);
}

}  // namespace rondo
