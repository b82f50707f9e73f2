#include "record/run_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/json_reader.h"
#include "record/config_keys.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// One line; only what its kind has is filled.
struct Line {
  std::string kind;
  int64_t step = 0;
  double time = 0.0;
  std::string run;
  std::string version;
  int64_t format = 1;
  std::optional<int64_t> updates;
  std::string status;
  std::string text;
  std::string level;
  std::string name;
  std::string file;
  std::string host;
  int64_t process = 0;
  RecordPosition position;
  std::vector<std::pair<std::string, double>> values;
};

/// JSON has no numbers that are not finite: they are texts.
double number_of(const std::string& text) {
  if (text == "inf" || text == "-inf") {
    return (text[0] == '-' ? -1.0 : 1.0) * std::numeric_limits<double>::infinity();
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void read_values(JsonReader& json, Line& line) {
  json.object([&](const std::string& name) {
    if (json.is_at_string()) {
      line.values.emplace_back(name, number_of(json.string()));
    } else if (const std::optional<double> value = json.number()) {
      line.values.emplace_back(name, *value);
    }
  });
}

/// \throws DataError
Line parse(std::string_view text) {
  JsonReader json(text);
  Line line;
  json.object([&](const std::string& key) {
    if (key == "kind") {
      line.kind = json.string();
    } else if (key == "step") {
      line.step = json.unsigned_integer();
    } else if (key == "time") {
      line.time = json.number().value_or(0.0);
    } else if (key == "run") {
      line.run = json.string();
    } else if (key == "version") {
      line.version = json.string();
    } else if (key == "format") {
      line.format = json.unsigned_integer();
    } else if (key == "updates") {
      line.updates = json.unsigned_integer();
    } else if (key == "status" || key == "better") {
      line.status = json.string();
    } else if (key == "text") {
      line.text = json.string();
    } else if (key == "level") {
      line.level = json.string();
    } else if (key == "name") {
      line.name = json.string();
    } else if (key == "file") {
      line.file = json.string();
    } else if (key == "host") {
      line.host = json.string();
    } else if (key == "process") {
      line.process = json.unsigned_integer();
    } else if (key == "epoch") {
      line.position.epoch = json.number().value_or(0.0);
    } else if (key == "samples") {
      line.position.samples = json.number().value_or(0.0);
    } else if (key == "tokens") {
      line.position.tokens = json.number().value_or(0.0);
    } else if (key == "values") {
      read_values(json, line);
    } else {
      json.skip();
    }
  });
  json.end();
  if (line.kind.empty()) {
    throw DataError("a line without a kind");
  }
  return line;
}

template <class Entries>
void drop_after(Entries& entries, int64_t step) {
  entries.erase(
      std::remove_if(
          entries.begin(), entries.end(), [&](const auto& entry) { return entry.step > step; }),
      entries.end());
}

/// A session that goes on from an earlier update does again what came after it.
void begin_session(RunRecord& run, const Line& line) {
  for (auto metric = run.metrics.begin(); metric != run.metrics.end();) {
    drop_after(metric->second, line.step);
    metric = metric->second.empty() ? run.metrics.erase(metric) : std::next(metric);
  }
  drop_after(run.positions, line.step);
  drop_after(run.saves, line.step);
  drop_after(run.validations, line.step);
  drop_after(run.alerts, line.step);
  drop_after(run.media, line.step);
  run.begin = run.sessions == 0 ? line.time : run.begin;
  ++run.sessions;
  run.step = line.step;
  run.name = line.run;
  run.format = std::max(run.format, line.format);
  run.version = line.version;
  run.updates = line.updates;
  run.process = line.process;
  run.host = line.host;
  run.status = RunStatus::Crashed;
  run.reason.clear();
}

void add_values(RunRecord& run, const Line& line) {
  const RecordPosition& position = line.position;
  if (position.epoch > 0.0 || position.samples > 0.0 || position.tokens > 0.0) {
    if (!run.positions.empty() && run.positions.back().step == line.step) {
      run.positions.pop_back();  // of an earlier line of this update
    }
    run.positions.push_back({line.step, position.epoch, position.samples, position.tokens});
  }
  for (const auto& [name, value] : line.values) {
    std::vector<RecordPoint>& points = run.metrics[name];
    if (!points.empty() && points.back().step == line.step) {
      points.pop_back();  // a validation that was left unfinished and done again
    }
    points.push_back({line.step, line.time, value});
  }
}

void end_session(RunRecord& run, const Line& line) {
  run.status = line.status == "done"      ? RunStatus::Done
               : line.status == "stopped" ? RunStatus::Stopped
                                          : RunStatus::Failed;
  run.reason = line.text;
}

/// \param begin  of the line in the record
void add(RunRecord& run, const Line& line, int64_t begin) {
  if (line.kind == "session") {
    begin_session(run, line);
  } else if (line.kind == "config") {
    run.config_text = line.text;
    run.config = config_keys(line.text);
  } else if (line.kind == "numbers") {
    add_values(run, line);
  } else if (line.kind == "metric") {
    run.higher_is_better[line.text] = line.status == "higher";
  } else if (line.kind == "save") {
    run.saves.push_back({line.step, line.time, line.text});
  } else if (line.kind == "validation") {
    run.validations.push_back({line.step, line.time, line.text});
  } else if (line.kind == "alert") {
    run.alerts.push_back({line.step, line.time, line.level, line.text});
  } else if (line.kind == "histogram" || line.kind == "image" || line.kind == "text" ||
             line.kind == "table") {
    run.media.push_back({line.step, line.time, line.kind, line.name, line.file, begin});
  } else if (line.kind == "end") {
    end_session(run, line);
  } else {
    return;
  }
  run.step = std::max(run.step, line.step);
  run.end = std::max(run.end, line.time);
}

/// Adds whole lines.
/// \param begin  of the text in the record
/// \return how many there are
int64_t add_lines(RunRecord& run, std::string_view text, int64_t begin, int64_t lines_before) {
  int64_t lines = 0;
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string_view::npos;
       at = end + 1) {
    ++lines;
    try {
      add(run, parse(text.substr(at, end - at)), begin + static_cast<int64_t>(at));
    } catch (const DataError&) {
      run.damaged_line = run.damaged_lines++ == 0 ? lines_before + lines : run.damaged_line;
    }
  }
  return lines;
}

/// The file of a run's directory, or the file itself.
/// \throws DataError  when there is none
fs::path record_file(const fs::path& path) {
  std::error_code error;
  const fs::path file = fs::is_directory(path, error) ? path / kRecordFile : path;
  if (!fs::is_regular_file(file, error)) {
    throw DataError(fmt::format(
        "{}: there is no {}, which each fit writes unless the config says {{ RecordLogger = false "
        "}}; give a run's directory",
        path.string(),
        kRecordFile));
  }
  return file;
}

[[noreturn]] void fail_to_read(const fs::path& file) {
  throw DataError(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
}

detail::FileDescriptor opened(const fs::path& file) {
  detail::FileDescriptor record(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (record.get() < 0) {
    fail_to_read(file);
  }
  return record;
}

/// At most `size` bytes from an offset on; fewer at the file's end.
std::string read_bytes(int fd, const fs::path& file, int64_t offset, size_t size) {
  std::string bytes(size, '\0');
  size_t have = 0;
  while (have < size) {
    const ssize_t got =
        ::pread(fd, bytes.data() + have, size - have, offset + static_cast<int64_t>(have));
    if (got < 0 && errno != EINTR) {
      fail_to_read(file);
    }
    if (got == 0) {
      break;
    }
    have += got > 0 ? static_cast<size_t>(got) : 0;
  }
  bytes.resize(have);
  return bytes;
}

struct stat facts_of(int fd, const fs::path& file) {
  struct stat facts = {};
  if (::fstat(fd, &facts) != 0) {
    fail_to_read(file);
  }
  return facts;
}

constexpr int kMostFolders = 4;

void find_runs(const fs::path& folder, int depth, std::vector<fs::path>& found) {
  std::error_code error;
  if (fs::is_regular_file(folder / kRecordFile, error)) {
    found.push_back(folder);
    return;
  }
  if (depth == kMostFolders) {
    return;
  }
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const bool is_hidden = it->path().filename().string().rfind('.', 0) == 0;
    std::error_code gone;
    if (!is_hidden && !it->is_symlink(gone) && it->is_directory(gone)) {
      find_runs(it->path(), depth + 1, found);
    }
  }
}

}  // namespace

const char* to_string(RunStatus status) {
  switch (status) {
    case RunStatus::Running:
      return "running";
    case RunStatus::Done:
      return "done";
    case RunStatus::Stopped:
      return "stopped";
    case RunStatus::Failed:
      return "failed";
    case RunStatus::Crashed:
      return "crashed";
  }
  return "";
}

const RecordPoint* RunRecord::best(const std::string& metric) const {
  const auto direction = higher_is_better.find(metric);
  const auto points = metrics.find(metric);
  if (direction == higher_is_better.end() || points == metrics.end()) {
    return nullptr;
  }
  const RecordPoint* best = nullptr;
  for (const RecordPoint& point : points->second) {
    const bool is_better = best == nullptr || (direction->second ? point.value > best->value
                                                                 : point.value < best->value);
    if (!std::isnan(point.value) && is_better) {
      best = &point;
    }
  }
  return best;
}

bool has_writer(const fs::path& file) {
  const detail::FileDescriptor record(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (record.get() < 0) {
    return false;
  }
  if (::flock(record.get(), LOCK_SH | LOCK_NB) == 0) {
    return false;
  }
  if (errno == EWOULDBLOCK) {
    return true;
  }
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  return !error && fs::file_time_type::clock::now() - written < std::chrono::minutes(1);
}

RunRecord read_record(const fs::path& path) {
  return RecordFollower(path).run();
}

std::pair<RunRecord, bool> glance_at_record(const fs::path& path, size_t most_bytes) {
  const fs::path file = record_file(path);
  const detail::FileDescriptor record = opened(file);
  const int64_t size = facts_of(record.get(), file).st_size;
  const auto most = static_cast<int64_t>(most_bytes);
  if (size <= 2 * most) {
    return {read_record(file), true};
  }
  RunRecord run;
  run.directory = file.parent_path();
  const bool is_running = has_writer(file);
  const std::string head = read_bytes(record.get(), file, 0, most_bytes);
  const int64_t lines = add_lines(run, head, 0, 0);
  const std::string tail = read_bytes(record.get(), file, size - most, most_bytes);
  const size_t begin = tail.find('\n') + 1;  // 0: a line that is longer, of which nothing is read
  if (begin > 0) {
    add_lines(run,
              std::string_view(tail).substr(begin),
              size - most + static_cast<int64_t>(begin),
              lines);
  }
  if (run.status == RunStatus::Crashed && is_running) {
    run.status = RunStatus::Running;
  }
  return {std::move(run), false};
}

std::string record_line(const fs::path& path, int64_t begin) {
  constexpr size_t kLongest = 64 << 10;
  const fs::path file = record_file(path);
  std::string line = read_bytes(opened(file).get(), file, begin, kLongest);
  const size_t end = line.find('\n');
  if (end == std::string::npos) {
    throw DataError(fmt::format("{}: there is no line at byte {}", file.string(), begin));
  }
  line.resize(end);
  return line;
}

RecordFollower::RecordFollower(const fs::path& path) : file_(record_file(path)) {
  read();
}

void RecordFollower::start_again(uint64_t inode) {
  run_ = {};
  run_.directory = file_.parent_path();
  recorded_ = RunStatus::Crashed;
  offset_ = 0;
  lines_ = 0;
  inode_ = inode;
}

void RecordFollower::read() {
  constexpr size_t kAtOnce = 4 << 20;
  constexpr size_t kLongestLine = 64 << 20;
  const bool is_running = has_writer(file_);  // before reading: its end may come in between
  const detail::FileDescriptor record = opened(file_);
  const struct stat facts = facts_of(record.get(), file_);
  if (facts.st_ino != inode_ || facts.st_size < offset_) {
    start_again(facts.st_ino);
  }
  run_.status = recorded_;
  for (size_t most = kAtOnce;;) {
    const int64_t left = std::max<int64_t>(facts.st_size - offset_, 0);
    const size_t size = std::min(most, static_cast<size_t>(left) + 1);
    const std::string text = read_bytes(record.get(), file_, offset_, size);
    const size_t end = text.rfind('\n') + 1;
    lines_ += add_lines(run_, std::string_view(text).substr(0, end), offset_, lines_);
    offset_ += static_cast<int64_t>(end);
    if (text.size() < most) {
      break;  // the rest is read later, also what was written meanwhile
    }
    most = end == 0 ? 2 * most : kAtOnce;  // a line that is longer
    if (most > kLongestLine) {
      throw DataError(fmt::format("{}: a line has more than 64 MiB", file_.string()));
    }
  }
  recorded_ = run_.status;
  if (run_.status == RunStatus::Crashed && is_running) {
    run_.status = RunStatus::Running;
  }
}

std::vector<fs::path> find_runs(const fs::path& root) {
  std::vector<fs::path> found;
  find_runs(root, 0, found);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace rondo
