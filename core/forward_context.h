#pragma once

#include <functional>
#include <memory>

namespace rondo {

/// What holds on this thread while a model's forward runs, such as its precision, for those who run
/// a part of it again later (models/recompute.h).
class ForwardContext {
 public:
  /// Makes it hold once more, as long as what is returned lives.
  using Reopen = std::function<std::shared_ptr<void>()>;

  /// \param reopen  may be called until the step is over
  explicit ForwardContext(Reopen reopen);
  ForwardContext(const ForwardContext&) = delete;
  ForwardContext& operator=(const ForwardContext&) = delete;
  ~ForwardContext();

  /// Of the forward that runs on this thread; empty outside of one.
  static const Reopen& current();

 private:
  Reopen before_;
};

}  // namespace rondo
