#pragma once

#include <ATen/Parallel.h>

#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>

#include "tracing/onednn/onednn_call.h"

namespace rondo {

/// A call that is prepared anew when the number of threads changes.
class CallForThreads {
 public:
  using Prepare = std::function<std::unique_ptr<OneDnnCall>()>;

  explicit CallForThreads(Prepare prepare) : prepare_(std::move(prepare)) {
    prepare_for(at::get_num_threads());
  }

  void run(std::initializer_list<const void*> tensors) {
    if (const int threads = at::get_num_threads(); threads != threads_) {
      prepare_for(threads);
    }
    call_->run(tensors);
  }

  int64_t bytes() const { return call_->bytes(); }

 private:
  void prepare_for(int threads) {
    call_ = prepare_();
    threads_ = threads;
  }

  Prepare prepare_;
  std::unique_ptr<OneDnnCall> call_;
  int threads_ = 0;
};

/// Whether oneDNN has what is prepared. Nothing to prepare is fine.
inline bool can_prepare(const CallForThreads::Prepare& prepare) {
  try {
    return prepare == nullptr || prepare() != nullptr;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace rondo
