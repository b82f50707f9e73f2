#include "board/run_index.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "board/each_in_parallel.h"
#include "board/run_json.h"
#include "core/error.h"
#include "core/glob.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

FileStamp stamp_of(const fs::path& file) {
  struct stat facts = {};
  FileStamp stamp;
  if (::stat(file.c_str(), &facts) == 0 && S_ISREG(facts.st_mode)) {
    stamp.inode = facts.st_ino;
    stamp.size = facts.st_size;
    stamp.time = int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
  }
  return stamp;
}

std::string id_of(const fs::path& directory, const fs::path& root) {
  const std::string id = directory.lexically_relative(root).generic_string();
  return id.empty() ? "." : id;
}

bool fits(const std::string& id, const std::vector<std::string>& globs) {
  return globs.empty() || matches_any(globs, id);
}

size_t quarter_of_memory() {
  const int64_t pages = ::sysconf(_SC_PHYS_PAGES);
  const int64_t bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? static_cast<size_t>(pages) / 4 * static_cast<size_t>(bytes)
                                : size_t{1} << 30;
}

/// About what a record takes in memory.
size_t memory_of(const RunRecord& run) {
  size_t bytes = run.config_text.size() + run.positions.size() * sizeof(RecordPosition) +
                 run.media.size() * 128;
  for (const auto& [name, points] : run.metrics) {
    bytes += points.capacity() * sizeof(RecordPoint);
  }
  return bytes;
}

}  // namespace

/// Its mutex is taken before that of the index, never after.
struct RunIndex::Entry {
  Entry(std::string name, fs::path of_run)
      : id(std::move(name)), directory(std::move(of_run)), file(directory / kRecordFile) {}

  const std::string id;
  const fs::path directory;
  const fs::path file;

  std::mutex mutex;                        // of all below
  std::optional<RecordFollower> follower;  // while the record is in memory
  FileStamp seen;                          // when the summary was made

  // Of the index's mutex.
  std::shared_ptr<const RunSummary> summary;
  size_t memory = 0;
  uint64_t last_use = 0;
};

RunIndex::RunIndex(RunIndexOptions options) : options_(std::move(options)) {
  std::error_code error;
  if (!fs::is_directory(options_.root, error)) {
    throw UsageError(fmt::format("{}: there is no such folder", options_.root.string()));
  }
  options_.root = fs::canonical(options_.root);
  options_.memory_bytes = options_.memory_bytes == 0 ? quarter_of_memory() : options_.memory_bytes;
  look_for_runs();
  const std::vector<std::shared_ptr<Entry>> all = entries();
  each_in_parallel(all.size(), [&](size_t i) { look_at(*all[i]); });
  thread_ = std::thread([this] { follow(); });
}

RunIndex::~RunIndex() {
  close();
  thread_.join();
}

void RunIndex::close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
}

bool RunIndex::is_closed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_closed_;
}

std::vector<std::shared_ptr<RunIndex::Entry>> RunIndex::entries() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<Entry>> all;
  for (const auto& [id, entry] : entries_) {
    all.push_back(entry);
  }
  return all;
}

std::shared_ptr<RunIndex::Entry> RunIndex::find(const std::string& id) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    throw DataError(fmt::format("there is no run \"{}\"", id));
  }
  return found->second;
}

std::vector<std::shared_ptr<const RunSummary>> RunIndex::summaries() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<const RunSummary>> all;
  for (const auto& [id, entry] : entries_) {
    if (entry->summary != nullptr) {
      all.push_back(entry->summary);
    }
  }
  return all;
}

std::shared_ptr<const RunSummary> RunIndex::summary(const std::string& id) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second->summary;
}

FileStamp RunIndex::stamp(const std::string& id) const {
  return stamp_of(find(id)->file);
}

void RunIndex::with_record(const std::string& id,
                           const std::function<void(const RunRecord&)>& use) {
  const std::shared_ptr<Entry> entry = find(id);
  {
    const std::lock_guard<std::mutex> lock(entry->mutex);
    if (!entry->follower || !(stamp_of(entry->file) == entry->seen)) {
      read_whole(*entry);
    }
    use(entry->follower->run());
    const std::lock_guard<std::mutex> lock_index(mutex_);
    entry->last_use = ++uses_;
  }
  keep_within_memory();
}

/// Reads what is new of a record, the mutex of the entry held.
void RunIndex::read_whole(Entry& entry) {
  const FileStamp stamp = stamp_of(entry.file);  // what comes after is noticed later
  if (entry.follower) {
    entry.follower->read();
  } else {
    entry.follower.emplace(entry.file);
  }
  entry.seen = stamp;
  set_summary(entry, entry.follower->run(), false);
  const std::lock_guard<std::mutex> lock(mutex_);
  entry.memory = memory_of(entry.follower->run());
}

/// Brings the summary up to date, as far as that takes no long reading. A record that cannot be
/// read keeps what it has.
void RunIndex::look_at(Entry& entry) {
  const std::lock_guard<std::mutex> lock(entry.mutex);
  const FileStamp stamp = stamp_of(entry.file);
  const std::shared_ptr<const RunSummary> before = summary(entry.id);
  const bool is_alive = before != nullptr && before->status == RunStatus::Running;
  if (stamp == entry.seen && !is_alive) {
    return;
  }
  try {
    if (entry.follower) {
      read_whole(entry);
      return;
    }
    entry.seen = stamp;
    const auto [run, is_whole] = glance_at_record(entry.file, options_.glance_bytes);
    set_summary(entry, run, !is_whole);
  } catch (const std::exception&) {
    entry.follower.reset();
  }
}

void RunIndex::set_summary(Entry& entry, const RunRecord& run, bool is_partial) {
  auto summary = std::make_shared<RunSummary>();
  summary->id = entry.id;
  summary->directory = entry.directory;
  summary->status = run.status;
  summary->is_partial = is_partial;
  summary->step = run.step;
  summary->alerts = run.alerts;
  for (const auto& [name, points] : run.metrics) {
    summary->newest[name] = points.back().value;
  }
  summary->json = run_summary_json(run, entry.id, is_partial);
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool is_new = entry.summary == nullptr || entry.summary->json != summary->json;
  entry.summary = std::move(summary);
  if (is_new) {
    tell(entry.id);
  }
}

/// The index's mutex is held.
void RunIndex::tell(const std::string& id) {
  changes_[id] = ++newest_change_;
  changed_.notify_all();
}

/// Drops whole records that nobody asked for the longest, those of live runs last.
void RunIndex::keep_within_memory() {
  std::vector<std::shared_ptr<Entry>> kept;
  size_t memory = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [id, entry] : entries_) {
      if (entry->memory > 0) {
        kept.push_back(entry);
        memory += entry->memory;
      }
    }
    const auto rank = [](const std::shared_ptr<Entry>& entry) {
      const bool is_alive =
          entry->summary != nullptr && entry->summary->status == RunStatus::Running;
      return std::pair(is_alive, entry->last_use);
    };
    std::sort(
        kept.begin(), kept.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  }
  for (const std::shared_ptr<Entry>& entry : kept) {
    if (memory <= options_.memory_bytes) {
      return;
    }
    const std::unique_lock<std::mutex> lock(entry->mutex, std::try_to_lock);
    if (lock.owns_lock()) {
      entry->follower.reset();
      const std::lock_guard<std::mutex> lock_index(mutex_);
      memory -= std::min(memory, entry->memory);
      entry->memory = 0;
    }
  }
}

void RunIndex::look_for_runs() {
  std::map<std::string, fs::path> found;
  for (const fs::path& directory : find_runs(options_.root)) {
    const std::string id = id_of(directory, options_.root);
    if (fits(id, options_.globs)) {
      found.emplace(id, directory);
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (found.count(entry->first) > 0) {
      ++entry;
    } else {
      tell(entry->first);
      entry = entries_.erase(entry);
    }
  }
  for (const auto& [id, directory] : found) {
    if (entries_.count(id) == 0) {
      entries_[id] = std::make_shared<Entry>(id, directory);
    }
  }
}

void RunIndex::look_at_all() {
  for (const std::shared_ptr<Entry>& entry : entries()) {
    if (is_closed()) {
      return;
    }
    look_at(*entry);
  }
}

/// Reads long records whole, for as long as a poll takes. \return whether some are left
bool RunIndex::read_long_records() {
  const Clock::time_point end = Clock::now() + options_.poll;
  for (const std::shared_ptr<Entry>& entry : entries()) {
    const std::shared_ptr<const RunSummary> known = summary(entry->id);
    if (known == nullptr || !known->is_partial) {
      continue;
    }
    if (is_closed() || Clock::now() >= end) {
      return true;
    }
    const std::lock_guard<std::mutex> lock(entry->mutex);
    try {
      read_whole(*entry);
    } catch (const std::exception&) {
      entry->follower.reset();
    }
  }
  keep_within_memory();
  return false;
}

void RunIndex::follow() {
  Clock::time_point next_search = Clock::now() + options_.poll;
  while (!is_closed()) {
    const Clock::time_point begin = Clock::now();
    if (begin >= next_search) {
      look_for_runs();  // of many folders it takes long
      next_search = begin + std::max<Clock::duration>(options_.poll, 20 * (Clock::now() - begin));
    }
    look_at_all();
    if (!read_long_records()) {
      pause();
    }
  }
}

void RunIndex::pause() const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, options_.poll, [&] { return is_closed_; });
}

uint64_t RunIndex::newest_change() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return newest_change_;
}

RunChanges RunIndex::wait_for_change(uint64_t since, std::chrono::milliseconds most) const {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t seen = since <= newest_change_ ? since : 0;  // more: of an earlier server
  changed_.wait_for(lock, most, [&] { return is_closed_ || newest_change_ > seen; });
  RunChanges changes;
  changes.newest = newest_change_;
  for (const auto& [id, number] : changes_) {
    if (number > seen) {
      changes.ids.push_back(id);
    }
  }
  return changes;
}

}  // namespace rondo
