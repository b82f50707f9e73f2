#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/checkpoint_name.h"
#include "remote/remote_store.h"

namespace rondo {

/// Keeps a copy of a run's checkpoints in a store elsewhere: each is uploaded by a thread, in the
/// order in which they were published. An index there, `checkpoints_index.toml`, lists those that
/// are whole, and `latest.symlink` names the newest.
class CheckpointUploads {
 public:
  struct Options {
    std::string address;
    RemoteSettings settings = {};
    CheckpointName name = CheckpointName();  ///< of the run's checkpoints
    bool keeps_all = false;                  ///< what is deleted here stays there
    std::filesystem::path root;  ///< of the checkpoints; their names there are relative to it
    /// Deletes a checkpoint here; called by the thread.
    std::function<void(const std::filesystem::path&)> delete_here;
  };

  /// Something for the log.
  struct Event {
    bool is_warning = false;
    std::string text;
  };

  CheckpointUploads(OpenRemoteStore open, Options options);
  CheckpointUploads(const CheckpointUploads&) = delete;
  CheckpointUploads& operator=(const CheckpointUploads&) = delete;
  /// Gives up what is under way.
  ~CheckpointUploads();

  /// Asks the store for what uploads need, and queues those of `here` that are not there yet.
  /// \throws RemoteError, UsageError  when bucket or credentials are wrong
  void begin(const std::vector<std::filesystem::path>& here);

  bool is_running() const { return thread_.joinable(); }

  /// From any thread, between `begin` and `finish`.
  void upload(const std::filesystem::path& checkpoint);

  /// Deletes a checkpoint here, and there as `keeps_all` says, once what was published before is
  /// there; not one whose upload failed.
  void remove(const std::filesystem::path& checkpoint);

  /// What happened since the last call.
  std::vector<Event> take_events();

  /// Waits until all is done, or gives it up. \return checkpoints that are not there
  int64_t finish(std::chrono::seconds timeout);

  /// Downloads the newest checkpoint that comes whole. \return where it is now; nothing when the
  /// store has none \throws RemoteError  when none of those it has comes whole
  std::optional<std::filesystem::path> fetch_newest();

 private:
  struct Job {
    bool is_removal = false;
    std::filesystem::path checkpoint;
  };

  std::unique_ptr<RemoteStore> open() const;
  std::string name_of(const std::filesystem::path& checkpoint) const;
  void sort_by_step(std::vector<std::string>& names) const;
  void push(Job job);
  void work(RemoteStore& store);
  void work_on(RemoteStore& store, const Job& job);
  void upload_now(RemoteStore& store, const std::filesystem::path& checkpoint);
  void remove_now(RemoteStore& store, const std::filesystem::path& checkpoint);
  void remove_there(RemoteStore& store, const std::string& name);
  void report(bool is_warning, std::string text);

  OpenRemoteStore open_;
  Options options_;
  std::shared_ptr<std::atomic<bool>> gives_up_;
  // the thread's own while it runs
  std::vector<std::string> listed_;     // in the index there
  std::vector<std::string> to_remove_;  // there, once a newer one is confirmed
  std::set<std::filesystem::path> failed_;
  bool last_failed_ = false;
  // shared
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // the first one is being worked on
  std::vector<Event> events_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace rondo
