#pragma once

#include <csignal>
#include <initializer_list>
#include <utility>
#include <vector>

namespace rondo {

/// Gives signals to a function while it lives; then what was before is back. A SIGHUP that the
/// process ignores stays ignored: it was started with nohup.
class SignalHandlers {
 public:
  SignalHandlers() = default;
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;

  ~SignalHandlers() { restore(); }

  void add(std::initializer_list<int> signals, void (*handler)(int));

  /// Brings back what was before, now.
  void restore();

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

/// Keeps signals waiting while it lives, such as from before a fork until there is a child to give
/// them to.
class HoldSignals {
 public:
  explicit HoldSignals(std::initializer_list<int> signals);
  HoldSignals(const HoldSignals&) = delete;
  HoldSignals& operator=(const HoldSignals&) = delete;

  ~HoldSignals() { release(); }

  /// Lets them come, now; also in a child that was forked meanwhile.
  void release() const;

 private:
  sigset_t before_ = {};
};

/// Opens /dev/null in the place of each standard stream that is closed: a file that is opened later
/// would get its number, and what is printed would be written into it. Before anything is opened.
void open_closed_streams();

/// Lets output fail where nobody takes it: a write to a closed pipe, or beyond a limit of file
/// sizes, returns an error and does not end the process. Programs that this one starts are not
/// affected, as they would be by an ignored signal.
void survive_failing_output();

}  // namespace rondo
