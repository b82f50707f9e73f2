#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/log.h"

namespace rondo {

/// Does what is slow in logging, such as encoding and writing, on a thread, in order. What is
/// queued is bounded: a full queue makes `push` wait. The thread starts at the first task.
class WriterThread {
 public:
  WriterThread() = default;
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  /// Waits until every task was done.
  ~WriterThread();

  /// \param log  warned once, when `push` has to wait, or `wait` for five seconds
  /// \param file  that the tasks write
  void warn_of_waits(TextLog log, std::string file);

  /// Queues a task. \param bytes  what it holds; while more than 8 MiB are queued, this waits
  void push(size_t bytes, std::function<void()> task);

  /// Waits until every task was done. What tasks wrote is then visible to this thread.
  void wait();

  /// The same for so long at most. \return whether every task was done
  bool wait_at_most(std::chrono::seconds limit);

  /// Throws what a task has thrown, once: the first since the last call. Others are dropped.
  /// \throws IoError  whatever it was: values are lost, and nothing else
  void rethrow();

 private:
  struct Task {
    size_t bytes = 0;
    std::function<void()> run;
  };

  void warn(std::unique_lock<std::mutex>& lock);
  void work();

  std::optional<TextLog> log_;  // until it is warned
  std::string file_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> queue_;  // the first one is being done
  size_t bytes_ = 0;        // of all of them
  bool is_over_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace rondo
