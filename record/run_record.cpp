#include "record/run_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
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
  std::optional<int64_t> updates;
  std::string status;
  std::string text;
  std::string level;
  std::string name;
  std::string file;
  std::string host;
  int64_t process = 0;
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
  drop_after(run.saves, line.step);
  drop_after(run.validations, line.step);
  drop_after(run.alerts, line.step);
  drop_after(run.media, line.step);
  run.begin = run.sessions == 0 ? line.time : run.begin;
  ++run.sessions;
  run.step = line.step;
  run.name = line.run;
  run.version = line.version;
  run.updates = line.updates;
  run.process = line.process;
  run.host = line.host;
  run.status = RunStatus::Crashed;
  run.reason.clear();
}

void add_values(RunRecord& run, const Line& line) {
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

void add(RunRecord& run, const Line& line) {
  if (line.kind == "session") {
    begin_session(run, line);
  } else if (line.kind == "config") {
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
    run.media.push_back({line.step, line.time, line.kind, line.name, line.file});
  } else if (line.kind == "end") {
    end_session(run, line);
  } else {
    return;
  }
  run.step = std::max(run.step, line.step);
  run.end = std::max(run.end, line.time);
}

/// Whether a process holds the record; on a file system without locks, whether it wrote within the
/// last minute.
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

std::string read_text(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream || stream.bad()) {
    throw DataError(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  }
  return std::move(text).str();
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

RunRecord read_record(const fs::path& path) {
  std::error_code error;
  const fs::path file = fs::is_directory(path, error) ? path / kRecordFile : path;
  if (!fs::is_regular_file(file, error)) {
    throw DataError(fmt::format(
        "{}: there is no {}, which each fit writes unless the config says {{ RecordLogger = false "
        "}}; give a run's directory",
        path.string(),
        kRecordFile));
  }
  RunRecord run;
  run.directory = file.parent_path();
  const bool is_running = has_writer(file);  // before reading: its end may come in between
  const std::string text = read_text(file);
  int64_t number = 0;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    ++number;
    try {
      add(run, parse(std::string_view(text).substr(begin, end - begin)));
    } catch (const DataError&) {
      run.damaged_line = run.damaged_lines++ == 0 ? number : run.damaged_line;
    }
  }
  if (run.status == RunStatus::Crashed && is_running) {
    run.status = RunStatus::Running;
  }
  return run;
}

std::vector<fs::path> find_runs(const fs::path& root) {
  std::vector<fs::path> found;
  find_runs(root, 0, found);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace rondo
