#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "record/run_record.h"

namespace rondo {

/// The state of a file, by which its change is noticed.
struct FileStamp {
  uint64_t inode = 0;
  int64_t size = -1;  ///< -1: there is none
  int64_t time = 0;   ///< of its newest write, in nanoseconds

  bool operator==(const FileStamp& other) const {
    return inode == other.inode && size == other.size && time == other.time;
  }
};

/// What a list shows of a run.
struct RunSummary {
  std::string id;  ///< its directory from the index's folder; "." where they are the same
  std::filesystem::path directory;
  RunStatus status = RunStatus::Crashed;
  bool is_partial = false;  ///< a long record of which only both ends were read
  int64_t step = 0;
  std::map<std::string, double> newest;  ///< the last value of each metric
  std::vector<RecordAlert> alerts;
  std::string json;  ///< an object of `/api/runs`
};

/// What changed: the number of the newest change, and the runs.
struct RunChanges {
  uint64_t newest = 0;
  std::vector<std::string> ids;
};

struct RunIndexOptions {
  std::filesystem::path root;
  std::vector<std::string> globs;        ///< only runs whose id fits one; empty: all
  std::chrono::milliseconds poll{1000};  ///< between two looks at the files
  size_t glance_bytes = 64 << 10;        ///< of both ends of a long record, at first
  size_t memory_bytes = 0;               ///< for whole records; 0: a quarter of the machine's
};

/// The runs below a folder, as they are now. Records are read when somebody asks for what is in
/// them; lists come from short summaries, of long records at first from their ends. One thread
/// looks for changes, and reads long records whole. Reads files only. Safe to use from many
/// threads.
class RunIndex {
 public:
  /// Finds the runs and their summaries.
  /// \throws UsageError  when the folder is none
  explicit RunIndex(RunIndexOptions options);
  RunIndex(const RunIndex&) = delete;
  RunIndex& operator=(const RunIndex&) = delete;
  ~RunIndex();

  const std::filesystem::path& root() const { return options_.root; }

  /// In the order of their ids.
  std::vector<std::shared_ptr<const RunSummary>> summaries() const;

  /// Null when there is no such run.
  std::shared_ptr<const RunSummary> summary(const std::string& id) const;

  /// Calls `use` with the whole record of a run, as it is now.
  /// \throws DataError  when there is no such run, or its record cannot be read
  void with_record(const std::string& id, const std::function<void(const RunRecord&)>& use);

  /// Changes with every change of the run's record. \throws DataError as `with_record`
  FileStamp stamp(const std::string& id) const;

  /// Waits for a change after change number `since`, or the end of the time or of the index.
  RunChanges wait_for_change(uint64_t since, std::chrono::milliseconds most) const;

  /// The number of the newest change.
  uint64_t newest_change() const;

  /// Waits for as long as there lies between two looks at the files, or until the index is closed.
  void pause() const;

  /// Ends waits, so that threads can leave.
  void close();

 private:
  struct Entry;

  std::shared_ptr<Entry> find(const std::string& id) const;
  std::vector<std::shared_ptr<Entry>> entries() const;
  void look_for_runs();
  void look_at(Entry& entry);
  void read_whole(Entry& entry);
  void set_summary(Entry& entry, const RunRecord& run, bool is_partial);
  void tell(const std::string& id);
  void keep_within_memory();
  void look_at_all();
  bool read_long_records();
  void follow();
  bool is_closed() const;

  RunIndexOptions options_;
  mutable std::mutex mutex_;  // of all below
  mutable std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  std::map<std::string, uint64_t> changes_;  // number of a run's newest change
  uint64_t newest_change_ = 0;
  uint64_t uses_ = 0;
  bool is_closed_ = false;
  std::thread thread_;
};

}  // namespace rondo
