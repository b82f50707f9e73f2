#include "board/board_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "board/each_in_parallel.h"
#include "board/run_files.h"
#include "board/run_json.h"
#include "core/base64.h"
#include "core/csv.h"
#include "core/error.h"
#include "core/json_reader.h"
#include "core/json_text.h"
#include "core/version.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostSeries = 1000;
constexpr int64_t kFewestPoints = 10;
constexpr int64_t kMostPoints = 20000;
constexpr int64_t kMostLines = 10000;
constexpr size_t kMostCachedBytes = size_t{256} << 20;
constexpr double kMostSmoothing = 0.9999;

/// An address that asks for what there is not, or in a wrong way.
struct Refused {
  int status = 400;
  std::string text;
};

[[noreturn]] void refuse(const std::string& text) {
  throw Refused{400, text};
}

[[noreturn]] void not_found(const std::string& text) {
  throw Refused{404, text};
}

std::vector<std::string> all_of(const BoardParameters& parameters, const char* name) {
  std::vector<std::string> values;
  const auto [begin, end] = parameters.equal_range(name);
  for (auto it = begin; it != end; ++it) {
    values.push_back(it->second);
  }
  return values;
}

std::string required(const BoardParameters& parameters, const char* name) {
  const auto found = parameters.find(name);
  if (found == parameters.end() || found->second.empty()) {
    refuse(fmt::format("expected the parameter \"{}\"", name));
  }
  return found->second;
}

std::optional<double> number_in(const BoardParameters& parameters, const char* name) {
  const std::string text = parameter_of(parameters, name);
  if (text.empty()) {
    return std::nullopt;
  }
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    refuse(fmt::format("{}: expected a number, got \"{}\"", name, text));
  }
  return value;
}

int64_t integer_in(const BoardParameters& parameters,
                   const char* name,
                   int64_t otherwise,
                   std::pair<int64_t, int64_t> range) {
  const std::optional<double> value = number_in(parameters, name);
  const double least = static_cast<double>(range.first);
  const double most = static_cast<double>(range.second);
  return value ? static_cast<int64_t>(std::clamp(*value, least, most)) : otherwise;
}

SeriesView view_of(const BoardParameters& parameters) {
  SeriesView view;
  const std::string x = parameter_of(parameters, "x");
  view.x = x.empty() ? view.x : x;
  if (!is_series_axis(view.x)) {
    refuse(fmt::format("x: expected update, epoch, samples, tokens or time, got \"{}\"", x));
  }
  view.smooth = std::clamp(number_in(parameters, "smooth").value_or(0.0), 0.0, kMostSmoothing);
  view.points = integer_in(parameters, "points", view.points, {kFewestPoints, kMostPoints});
  view.from = number_in(parameters, "from");
  view.to = number_in(parameters, "to");
  return view;
}

std::string key_of(const std::string& id, const std::string& metric, const SeriesView& view) {
  const auto bound = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : "";
  };
  const char end = '\0';
  return fmt::format("{}{}{}{}{}{}{}{}{}{}{}{}{}",
                     id,
                     end,
                     metric,
                     end,
                     view.x,
                     end,
                     view.smooth,
                     end,
                     view.points,
                     end,
                     bound(view.from),
                     end,
                     bound(view.to));
}

BoardAnswer with_body(std::string body, const char* type = "application/json") {
  return {200, type, std::make_shared<const std::string>(std::move(body))};
}

BoardAnswer failed(int status, const std::string& text) {
  return {status,
          "application/json",
          std::make_shared<const std::string>(fmt::format("{{\"error\":{}}}", json_string(text)))};
}

std::string as_array_of_texts(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::string> lists;
  for (const std::vector<std::string>& row : rows) {
    lists.push_back(json_texts(row));
  }
  return json_list(lists);
}

/// The member of a JSON object that is a text.
std::string text_member(const std::string& object, const char* key) {
  std::string found;
  JsonReader json(object);
  json.object([&](const std::string& name) {
    if (name == key && json.is_at_string()) {
      found = json.string();
    } else {
      json.skip();
    }
  });
  json.end();
  return found;
}

/// The medium of a run that an address names.
RecordMedia media_named(const RunRecord& run, const BoardParameters& parameters) {
  const std::string kind = required(parameters, "kind");
  const std::string name = required(parameters, "name");
  const std::string step = required(parameters, "step");
  const auto found =
      std::find_if(run.media.rbegin(), run.media.rend(), [&](const RecordMedia& one) {
        return one.kind == kind && one.name == name && std::to_string(one.step) == step;
      });
  if (found == run.media.rend()) {
    not_found(fmt::format("the run has no {} \"{}\" of update {}", kind, name, step));
  }
  return *found;
}

/// A value in a label of Prometheus' text format.
std::string label_value(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') {
      escaped += '\\';
    }
    escaped += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return "\"" + escaped + "\"";
}

std::string prometheus_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value)
         : std::isnan(value)  ? "NaN"
         : value > 0.0        ? "+Inf"
                              : "-Inf";
}

}  // namespace

std::string parameter_of(const BoardParameters& parameters, const char* name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? "" : found->second;
}

BoardAnswer BoardAnswers::answer(const std::string& path, const BoardParameters& parameters) {
  static const std::map<std::string, Route> routes = {{"/api/runs", &BoardAnswers::runs},
                                                      {"/api/series", &BoardAnswers::series},
                                                      {"/api/run", &BoardAnswers::run},
                                                      {"/api/diff", &BoardAnswers::diff},
                                                      {"/api/log", &BoardAnswers::log},
                                                      {"/api/table", &BoardAnswers::table},
                                                      {"/api/alerts", &BoardAnswers::alerts}};
  try {
    const auto route = routes.find(path);
    if (route != routes.end()) {
      return with_body((this->*route->second)(parameters));
    }
    if (path == "/api/media") {
      return media(parameters);
    }
    if (path == "/api/step") {
      return step(parameters);
    }
    if (path == "/metrics") {
      return with_body(prometheus(), "text/plain; version=0.0.4");
    }
    return failed(404, fmt::format("there is no {}", path));
  } catch (const Refused& refused) {
    return failed(refused.status, refused.text);
  } catch (const Error& error) {
    return failed(404, error.what());
  }
}

std::string BoardAnswers::runs(const BoardParameters&) {
  const uint64_t change = index_.newest_change();  // before what it may be older than
  std::vector<std::string> objects;
  for (const std::shared_ptr<const RunSummary>& run : index_.summaries()) {
    objects.push_back(run->json);
  }
  return "{" +
         json_members({{"root", json_string(index_.root().string())},
                       {"version", json_string(kVersion)},
                       {"change", std::to_string(change)},
                       {"runs", json_list(objects)}}) +
         "}";
}

std::string BoardAnswers::series(const BoardParameters& parameters) {
  const SeriesView view = view_of(parameters);
  std::vector<std::pair<std::string, std::string>> wanted;
  for (const std::string& id : all_of(parameters, "run")) {
    for (const std::string& metric : all_of(parameters, "metric")) {
      wanted.emplace_back(id, metric);
    }
  }
  if (wanted.size() > kMostSeries) {
    refuse(fmt::format("expected at most {} series, got {}", kMostSeries, wanted.size()));
  }
  std::vector<std::string> texts(wanted.size());
  each_in_parallel(wanted.size(), [&](size_t i) {
    texts[i] = one_series(wanted[i].first, wanted[i].second, view);
  });
  return "{\"series\":" + json_list(texts) + "}";
}

std::string BoardAnswers::one_series(const std::string& id,
                                     const std::string& metric,
                                     const SeriesView& view) {
  if (index_.summary(id) == nullptr) {
    Series nothing;  // a run that went while somebody looked at it
    nothing.why = "there is no such run";
    return series_json(nothing, id, metric);
  }
  const FileStamp stamp = index_.stamp(id);  // before reading: what is newer is read again
  const std::string key = key_of(id, metric, view);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = cache_.find(key);
    if (found != cache_.end() && found->second.stamp == stamp) {
      return found->second.text;
    }
  }
  std::string text;
  index_.with_record(id, [&](const RunRecord& run) {
    text = series_json(series_of(run, metric, view), id, metric);
  });
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cached_bytes_ > kMostCachedBytes) {
    cache_.clear();
    cached_bytes_ = 0;
  }
  CachedSeries& cached = cache_[key];
  cached_bytes_ += text.size() + key.size();
  cached_bytes_ -= std::min(cached_bytes_, cached.text.size());
  cached = {stamp, text};
  return text;
}

std::string BoardAnswers::run(const BoardParameters& parameters) {
  const std::string id = required(parameters, "id");
  std::string text;
  index_.with_record(id, [&](const RunRecord& run) {
    const std::string files =
        "," + json_members({{"steps", json_texts(steps_of_run(run.directory))},
                            {"tables", json_texts(tables_of_run(run.directory))}});
    text = run_json(run, id, files);
  });
  return text;
}

std::string BoardAnswers::diff(const BoardParameters& parameters) {
  const std::string a = required(parameters, "a");
  const std::string b = required(parameters, "b");
  RunRecord first;  // a copy: of two records at once neither waits for the other
  std::string text;
  index_.with_record(a, [&](const RunRecord& run) { first = run; });
  index_.with_record(b, [&](const RunRecord& run) { text = diff_json(first, run); });
  return text;
}

BoardAnswer BoardAnswers::media(const BoardParameters& parameters) {
  RecordMedia one;
  fs::path directory;
  index_.with_record(required(parameters, "run"), [&](const RunRecord& run) {
    one = media_named(run, parameters);
    directory = run.directory;
  });
  std::string content;
  if (one.file.empty()) {
    content = record_line(directory, one.line);
  } else {
    const std::optional<fs::path> file = file_of_run(directory, one.file);
    if (!file) {
      not_found(fmt::format("{}: there is no such file in the run's directory", one.file));
    }
    content = bytes_of_file(*file);
  }
  if (one.kind == "image") {
    return with_body(one.file.empty() ? from_base64(text_member(content, "data")) : content,
                     "image/png");
  }
  if (one.kind == "text") {
    const std::string text = one.file.empty() ? text_member(content, "text") : content;
    return with_body(fmt::format("{{\"text\":{}}}", json_string(text)));
  }
  return with_body(content);  // an object with the content's members
}

BoardAnswer BoardAnswers::step(const BoardParameters& parameters) {
  const std::string id = required(parameters, "run");
  const std::string key = required(parameters, "key");
  const std::string part = parameter_of(parameters, "part");
  if (!part.empty() && part != "program" && part != "timeline") {
    refuse(fmt::format("part: expected program or timeline, got \"{}\"", part));
  }
  const std::shared_ptr<const RunSummary> run = index_.summary(id);
  if (run == nullptr) {
    not_found(fmt::format("there is no run \"{}\"", id));
  }
  const std::optional<fs::path> file = file_of_step(run->directory, key, part);
  if (!file) {
    not_found(fmt::format(
        "the run has no {} of a step \"{}\"", part.empty() ? "description" : part, key));
  }
  return with_body(bytes_of_file(*file),
                   part == "program" ? "text/plain; charset=utf-8" : "application/json");
}

std::string BoardAnswers::log(const BoardParameters& parameters) {
  const std::string id = required(parameters, "run");
  const int64_t most = integer_in(parameters, "last", 500, {1, kMostLines});
  const std::shared_ptr<const RunSummary> run = index_.summary(id);
  if (run == nullptr) {
    not_found(fmt::format("there is no run \"{}\"", id));
  }
  FoundLines found;
  if (const std::optional<fs::path> file = file_of_run(run->directory, "latest_run.log")) {
    found = lines_with(*file, parameter_of(parameters, "q"), static_cast<size_t>(most));
  }
  return fmt::format("{{\"lines\":{},\"count\":{}}}", json_texts(found.last), found.count);
}

std::string BoardAnswers::table(const BoardParameters& parameters) {
  const std::string id = required(parameters, "run");
  const std::string name = required(parameters, "name");
  const std::shared_ptr<const RunSummary> run = index_.summary(id);
  if (run == nullptr) {
    not_found(fmt::format("there is no run \"{}\"", id));
  }
  const std::vector<std::string> known = tables_of_run(run->directory);
  const std::optional<fs::path> file = std::find(known.begin(), known.end(), name) == known.end()
                                           ? std::nullopt
                                           : file_of_run(run->directory, name);
  if (!file) {
    not_found(fmt::format("the run has no table \"{}\"", name));
  }
  std::vector<std::vector<std::string>> rows = csv_rows(bytes_of_file(*file));
  const std::vector<std::string> columns = rows.empty() ? std::vector<std::string>{} : rows.front();
  rows.erase(rows.begin(), rows.begin() + (rows.empty() ? 0 : 1));
  return fmt::format(
      "{{\"columns\":{},\"rows\":{}}}", json_texts(columns), as_array_of_texts(rows));
}

std::string BoardAnswers::alerts(const BoardParameters&) {
  std::vector<std::string> objects;
  for (const std::shared_ptr<const RunSummary>& run : index_.summaries()) {
    for (const RecordAlert& alert : run->alerts) {
      objects.push_back(
          fmt::format("{{\"run\":{},{}}}", json_string(run->id), alert_members(alert)));
    }
  }
  return "{\"alerts\":" + json_list(objects) + "}";
}

std::string BoardAnswers::prometheus() const {
  std::string text =
      "# HELP rondo_update The newest update of a running run.\n# TYPE rondo_update gauge\n";
  std::string metrics =
      "# HELP rondo_metric The last value of a metric of a running run.\n"
      "# TYPE rondo_metric gauge\n";
  for (const std::shared_ptr<const RunSummary>& run : index_.summaries()) {
    if (run->status != RunStatus::Running) {
      continue;
    }
    text += fmt::format("rondo_update{{run={}}} {}\n", label_value(run->id), run->step);
    for (const auto& [name, value] : run->newest) {
      metrics += fmt::format("rondo_metric{{run={},metric={}}} {}\n",
                             label_value(run->id),
                             label_value(name),
                             prometheus_number(value));
    }
  }
  return text + metrics;
}

}  // namespace rondo
