#include "record/run_summary.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <optional>

#include "core/error.h"
#include "core/json_reader.h"
#include "core/json_text.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// Begins each text: another form is not read.
constexpr int64_t kForm = 3;

constexpr RunStatus kStatuses[] = {
    RunStatus::Running, RunStatus::Done, RunStatus::Stopped, RunStatus::Failed, RunStatus::Crashed};

std::optional<FileIdentity> identity_of(const fs::path& file) {
  struct stat facts = {};
  if (::stat(file.c_str(), &facts) != 0) {
    return std::nullopt;
  }
  constexpr int64_t kSecond = 1'000'000'000;
  return FileIdentity{fs::absolute(file).lexically_normal(),
                      static_cast<int64_t>(facts.st_ino),
                      facts.st_size,
                      facts.st_mtim.tv_sec * kSecond + facts.st_mtim.tv_nsec};
}

/// Exact; what is not finite is a text.
std::string exact(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : fmt::format("\"{}\"", value);
}

double read_exact(JsonReader& json) {
  if (!json.is_at_string()) {
    return json.number().value_or(0.0);
  }
  const std::string text = json.string();
  const double infinity = std::numeric_limits<double>::infinity();
  return text == "inf" ? infinity : text == "-inf" ? -infinity : std::nan("");
}

/// The best, where the metric has a direction, and the newest.
std::vector<RecordPoint> points_to_keep(const RunRecord& run, const std::string& metric) {
  const std::vector<RecordPoint>& all = run.metrics.at(metric);
  const RecordPoint* const best = run.best(metric);
  std::vector<RecordPoint> kept;
  if (best != nullptr && best != &all.back()) {
    kept.push_back(*best);
  }
  kept.push_back(all.back());
  return kept;
}

std::string metrics_text(const RunRecord& run) {
  std::string text;
  for (const auto& metric : run.metrics) {
    std::string points;
    for (const RecordPoint& point : points_to_keep(run, metric.first)) {
      points += fmt::format("{}[{},{},{}]",
                            points.empty() ? "" : ",",
                            point.step,
                            exact(point.time),
                            exact(point.value));
    }
    text += fmt::format("{}{}:[{}]", text.empty() ? "" : ",", json_string(metric.first), points);
  }
  return text;
}

std::vector<RecordPoint> read_points(JsonReader& json) {
  std::vector<RecordPoint> points;
  json.array([&] {
    RecordPoint point;
    int place = 0;
    json.array([&] {
      const int at = place++;
      if (at == 0) {
        point.step = json.integer();
      } else {
        (at == 1 ? point.time : point.value) = read_exact(json);
      }
    });
    points.push_back(point);
  });
  if (points.empty()) {
    throw DataError("a metric without a value");
  }
  return points;
}

std::string alerts_text(const RunRecord& run) {
  std::string text;
  for (const RecordAlert& alert : run.alerts) {
    text += fmt::format("{}[{},{},{},{}]",
                        text.empty() ? "" : ",",
                        alert.step,
                        exact(alert.time),
                        json_string(alert.level),
                        json_string(alert.text));
  }
  return text;
}

RecordAlert read_alert(JsonReader& json) {
  RecordAlert alert;
  int place = 0;
  json.array([&] {
    const int at = place++;
    if (at == 0) {
      alert.step = json.integer();
    } else if (at == 1) {
      alert.time = read_exact(json);
    } else {
      (at == 2 ? alert.level : alert.text) = json.string();
    }
  });
  return alert;
}

void read_member(JsonReader& json, const std::string& key, RunRecord& run) {
  if (key == "name") {
    run.name = json.string();
  } else if (key == "version") {
    run.version = json.string();
  } else if (key == "reason") {
    run.reason = json.string();
  } else if (key == "host") {
    run.host = json.string();
  } else if (key == "status") {
    const int64_t status = json.unsigned_integer();
    run.status = kStatuses[std::min<size_t>(static_cast<size_t>(status), std::size(kStatuses) - 1)];
  } else if (key == "begin") {
    run.begin = read_exact(json);
  } else if (key == "end") {
    run.end = read_exact(json);
  } else if (key == "step") {
    run.step = json.integer();
  } else if (key == "updates") {
    run.updates = json.integer();
  } else if (key == "sessions") {
    run.sessions = static_cast<int>(json.integer());
  } else if (key == "process") {
    run.process = json.integer();
  } else if (key == "format") {
    run.format = json.integer();
  } else if (key == "damaged_lines") {
    run.damaged_lines = json.integer();
  } else if (key == "damaged_line") {
    run.damaged_line = json.integer();
  } else if (key == "config") {
    json.object([&](const std::string& name) { run.config[name] = json.string(); });
  } else if (key == "higher") {
    json.object([&](const std::string& name) { run.higher_is_better[name] = json.integer() == 1; });
  } else if (key == "alerts") {
    json.array([&] { run.alerts.push_back(read_alert(json)); });
  } else if (key == "metrics") {
    json.object([&](const std::string& name) { run.metrics[name] = read_points(json); });
  } else {
    json.skip();
  }
}

}  // namespace

fs::path default_index_file() {
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return fs::path(cache) / "rondo" / "runs.db";
  }
  const char* const home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? fs::path(home) / ".cache" / "rondo" / "runs.db"
                                         : fs::path();
}

std::string to_summary(const RunRecord& run) {
  const auto status = std::find(std::begin(kStatuses), std::end(kStatuses), run.status);
  std::string config;
  for (const auto& [key, value] : run.config) {
    config +=
        fmt::format("{}{}:{}", config.empty() ? "" : ",", json_string(key), json_string(value));
  }
  std::string higher;
  for (const auto& [metric, is_higher] : run.higher_is_better) {
    higher +=
        fmt::format("{}{}:{}", higher.empty() ? "" : ",", json_string(metric), is_higher ? 1 : 0);
  }
  return fmt::format(
      "{{\"form\":{},\"name\":{},\"version\":{},\"reason\":{},\"host\":{},\"status\":{},\"begin\":{"
      "},\"end\":{},\"format\":{},\"step\":{}{},\"sessions\":{},\"process\":{},\"damaged_lines\":{}"
      ",\"damaged_"
      "line\":{},\"config\":{{{}}},\"higher\":{{{}}},\"alerts\":[{}],\"metrics\":{{{}}}}}",
      kForm,
      json_string(run.name),
      json_string(run.version),
      json_string(run.reason),
      json_string(run.host),
      status - std::begin(kStatuses),
      exact(run.begin),
      exact(run.end),
      run.format,
      run.step,
      run.updates ? fmt::format(",\"updates\":{}", *run.updates) : "",
      run.sessions,
      run.process,
      run.damaged_lines,
      run.damaged_line,
      config,
      higher,
      alerts_text(run),
      metrics_text(run));
}

RunRecord from_summary(std::string_view text) {
  RunRecord run;
  JsonReader json(text);
  int64_t form = 0;
  json.object([&](const std::string& key) {
    if (key == "form") {
      form = json.integer();
    } else {
      read_member(json, key, run);
    }
  });
  json.end();
  if (form != kForm) {
    throw DataError("a summary of another form");
  }
  return run;
}

RunRecord RunSummaries::read(const fs::path& directory) {
  const fs::path file = directory / kRecordFile;
  const std::optional<FileIdentity> identity = identity_of(file);
  if (const auto known = identity ? index_.find(*identity) : std::nullopt) {
    try {
      RunRecord run = from_summary(*known);
      run.directory = directory;
      if (run.status == RunStatus::Crashed && has_writer(file)) {
        run.status = RunStatus::Running;
      }
      return run;
    } catch (const DataError&) {  // of another rondo: read again
    }
  }
  RunRecord run = read_record(directory);
  // What is being written has another size soon.
  if (identity && run.status != RunStatus::Running) {
    index_.add(*identity, to_summary(run));
  }
  return run;
}

}  // namespace rondo
