#include "board/run_json.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <set>

#include "core/json_text.h"
#include "record/run_diff.h"

namespace rondo {

namespace {

std::string time_text(double seconds) {
  return fmt::format("{:.3f}", seconds);
}

/// An object whose keys are any texts.
template <class Values, class ToJson>
std::string json_map(const Values& values, const ToJson& to_json) {
  std::string members;
  for (const auto& [key, value] : values) {
    members += (members.empty() ? "" : ",") + json_string(key) + ":" + to_json(value);
  }
  return "{" + members + "}";
}

template <class Values, class ToJson>
std::string json_list_of(const Values& values, const ToJson& to_json) {
  std::string elements;
  for (const auto& value : values) {
    elements += (elements.empty() ? "" : ",") + to_json(value);
  }
  return "[" + elements + "]";
}

std::string metric_json(const RunRecord& run,
                        const std::string& name,
                        const std::vector<RecordPoint>& points) {
  std::vector<std::pair<const char*, std::string>> members = {
      {"last", json_any_number(points.back().value)}};
  if (const RecordPoint* best = run.best(name)) {
    members.emplace_back("best", json_any_number(best->value));
    members.emplace_back("best_step", std::to_string(best->step));
  }
  const auto direction = run.higher_is_better.find(name);
  if (direction != run.higher_is_better.end()) {
    members.emplace_back("higher_is_better", direction->second ? "true" : "false");
  }
  return "{" + json_members(members) + "}";
}

std::string metrics_json(const RunRecord& run) {
  std::string members;
  for (const auto& [name, points] : run.metrics) {
    members +=
        (members.empty() ? "" : ",") + json_string(name) + ":" + metric_json(run, name, points);
  }
  return "{" + members + "}";
}

/// What `/api/runs` and `/api/run` have of a run.
std::string common_members(const RunRecord& run, const std::string& id) {
  return json_members({{"id", json_string(id)},
                       {"name", json_string(run.name)},
                       {"status", json_string(to_string(run.status))},
                       {"step", std::to_string(run.step)},
                       {"updates", run.updates ? std::to_string(*run.updates) : "null"},
                       {"sessions", std::to_string(run.sessions)},
                       {"begin", time_text(run.begin)},
                       {"end", time_text(run.end)},
                       {"reason", json_string(run.reason)},
                       {"config", json_map(run.config, [](const std::string& value) {
                          return json_string(value);
                        })}});
}

void append_numbers(std::string& text,
                    const char* key,
                    const std::vector<double>& numbers,
                    int digits) {
  fmt::format_to(std::back_inserter(text), "\"{}\":[", key);
  bool is_first = true;
  for (const double number : numbers) {
    text += is_first ? "" : ",";
    is_first = false;
    if (std::isfinite(number)) {
      fmt::format_to(std::back_inserter(text), "{:.{}g}", number, digits);
    } else {
      text += json_any_number(number);
    }
  }
  text += "]";
}

/// The best value where the metric has a direction, else the newest; null where there is none.
std::string result_json(const RunRecord& run, const std::string& metric) {
  if (const RecordPoint* best = run.best(metric)) {
    return json_any_number(best->value);
  }
  const auto points = run.metrics.find(metric);
  return points == run.metrics.end() ? "null" : json_any_number(points->second.back().value);
}

std::string config_value(const RunRecord& run, const std::string& key) {
  const auto found = run.config.find(key);
  return found == run.config.end() ? "null" : json_string(found->second);
}

/// The earliest update at which a metric of both differs.
std::string first_difference_json(const RunRecord& a, const RunRecord& b) {
  std::optional<int64_t> first;
  std::string metric;
  for (const auto& [name, points] : a.metrics) {
    const auto other = b.metrics.find(name);
    const std::optional<int64_t> step =
        other == b.metrics.end() ? std::nullopt : first_difference(points, other->second);
    if (step && (!first || *step < *first)) {
      first = step;
      metric = name;
    }
  }
  return first ? fmt::format("{{\"metric\":{},\"step\":{}}}", json_string(metric), *first) : "null";
}

}  // namespace

std::string json_members(const std::vector<std::pair<const char*, std::string>>& members) {
  std::string text;
  for (const auto& [key, value] : members) {
    text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", key, value);
  }
  return text;
}

std::string json_list(const std::vector<std::string>& elements) {
  return json_list_of(elements, [](const std::string& element) { return element; });
}

std::string json_texts(const std::vector<std::string>& texts) {
  return json_list_of(texts, [](const std::string& text) { return json_string(text); });
}

std::string run_summary_json(const RunRecord& run, const std::string& id, bool is_partial) {
  return "{" + common_members(run, id) + "," +
         json_members({{"metrics", metrics_json(run)},
                       {"alerts", std::to_string(run.alerts.size())},
                       {"saves", std::to_string(run.saves.size())}}) +
         (is_partial ? ",\"partial\":true}" : "}");
}

std::string alert_members(const RecordAlert& alert) {
  return json_members({{"step", std::to_string(alert.step)},
                       {"time", time_text(alert.time)},
                       {"level", json_string(alert.level)},
                       {"text", json_string(alert.text)}});
}

std::string run_json(const RunRecord& run, const std::string& id, const std::string& more) {
  std::vector<std::string> metrics;
  for (const auto& [name, points] : run.metrics) {
    metrics.push_back(name);
  }
  const auto at = [](const auto& entry) {
    return fmt::format("{{\"step\":{},\"time\":{:.3f}", entry.step, entry.time);
  };
  const std::string details = json_members(
      {{"config_text", json_string(run.config_text)},
       {"process", std::to_string(run.process)},
       {"host", json_string(run.host)},
       {"version", json_string(run.version)},
       {"damaged_lines", std::to_string(run.damaged_lines)},
       {"metrics", json_texts(metrics)},
       {"saves",
        json_list_of(run.saves,
                     [&](const RecordSave& save) {
                       return at(save) + ",\"path\":" + json_string(save.path) + "}";
                     })},
       {"validations",
        json_list_of(run.validations,
                     [&](const RecordValidation& one) {
                       return at(one) + ",\"label\":" + json_string(one.label) + "}";
                     })},
       {"alerts",
        json_list_of(run.alerts,
                     [](const RecordAlert& alert) { return "{" + alert_members(alert) + "}"; })},
       {"media", json_list_of(run.media, [&](const RecordMedia& one) {
          return at(one) + ",\"kind\":" + json_string(one.kind) +
                 ",\"name\":" + json_string(one.name) + "}";
        })}});
  return "{" + common_members(run, id) + "," + details + more + "}";
}

std::string series_json(const Series& series, const std::string& id, const std::string& metric) {
  constexpr int kDigits = 7;  // more show on no screen
  std::string text = fmt::format("{{\"run\":{},\"metric\":{},\"count\":{},",
                                 json_string(id),
                                 json_string(metric),
                                 series.count);
  if (!series.why.empty()) {
    text += fmt::format("\"why\":{},", json_string(series.why));
  }
  append_numbers(text, "x", series.x, 12);
  append_numbers(text += ",", "y", series.y, kDigits);
  append_numbers(text += ",", "low", series.low, kDigits);
  append_numbers(text += ",", "high", series.high, kDigits);
  return text + "}";
}

std::string diff_json(const RunRecord& a, const RunRecord& b) {
  std::vector<std::string> config;
  for (const std::string& key : differing_keys({&a, &b})) {
    config.push_back(fmt::format("{{\"key\":{},\"a\":{},\"b\":{}}}",
                                 json_string(key),
                                 config_value(a, key),
                                 config_value(b, key)));
  }
  std::set<std::string> names;
  for (const RunRecord* run : {&a, &b}) {
    for (const auto& [name, points] : run->metrics) {
      names.insert(name);
    }
  }
  std::vector<std::string> results;
  for (const std::string& name : names) {
    results.push_back(fmt::format("{{\"metric\":{},\"a\":{},\"b\":{}}}",
                                  json_string(name),
                                  result_json(a, name),
                                  result_json(b, name)));
  }
  return "{" +
         json_members({{"config", json_list(config)},
                       {"results", json_list(results)},
                       {"first_difference", first_difference_json(a, b)}}) +
         "}";
}

}  // namespace rondo
