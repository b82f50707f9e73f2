#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace rondo::test {

/// A program that runs beside the test.
class Process {
 public:
  /// Starts `arguments[0]`; its output goes to `output`.
  Process(const std::vector<std::string>& arguments, const std::filesystem::path& output);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  /// Kills it when it was not waited for.
  ~Process();

  /// Waits until a line with `text` stands in its output, or it has ended.
  /// \return false when it ended without
  bool wait_for_output(const std::string& text);

  void send(int signal) const;

  pid_t pid() const { return pid_; }

  /// Its exit code, or -1 - the signal that ended it.
  int wait();

 private:
  pid_t pid_ = -1;
  std::filesystem::path output_;
};

}  // namespace rondo::test
