#include "board/export_page.h"

#include <fmt/format.h>

#include <cctype>
#include <set>
#include <utility>
#include <vector>

#include "board/board_answers.h"
#include "board/page.h"
#include "board/run_files.h"
#include "core/base64.h"
#include "core/error.h"
#include "core/json_text.h"

namespace rondo {

namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

/// As `encodeURIComponent` of a browser.
std::string encoded(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain =
        std::isalnum(byte) != 0 || std::string("-_.!~*'()").find(c) != std::string::npos;
    result += byte < 0x80 && is_plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return result;
}

std::string address(const std::string& path, const Values& values) {
  std::string text = path;
  for (const auto& [name, value] : values) {
    text += fmt::format("{}{}={}", text.size() == path.size() ? "?" : "&", name, encoded(value));
  }
  return text;
}

/// JSON in an HTML element: nothing in it ends the element.
std::string in_html(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    safe += c == '<' ? std::string("\\u003c") : std::string(1, c);
  }
  return safe;
}

/// Addresses with their answers, as members of a JSON object.
class ExportedAnswers {
 public:
  explicit ExportedAnswers(BoardAnswers& answers) : answers_(answers) {}

  /// Adds the answer to an address, if there is one.
  void add(const std::string& path, const Values& values, const Values& unnamed = {}) {
    BoardParameters parameters(values.begin(), values.end());
    parameters.insert(unnamed.begin(), unnamed.end());
    const BoardAnswer answer = answers_.answer(path, parameters);
    if (answer.status != 200) {
      return;  // such as a picture whose file is gone
    }
    const std::string type = answer.type;
    put(address(path, values),
        type == "image/png" ? json_string("data:image/png;base64," + base64(*answer.body))
        : type.rfind("text/plain", 0) == 0 ? json_string(*answer.body)
                                           : *answer.body);
  }

  /// The one series of an answer, without what is around it.
  void add_series(const Values& values) {
    BoardParameters parameters(values.begin(), values.end());
    parameters.emplace("points", "2000");
    const std::string body = *answers_.answer("/api/series", parameters).body;
    const std::string begin = "{\"series\":[";
    if (body.rfind(begin, 0) == 0 && body.find("\"why\":") == std::string::npos) {
      put(address("/api/series", values),
          body.substr(begin.size(), body.size() - begin.size() - 2));
    }
  }

  std::string object() const { return "{" + members_ + "}"; }

 private:
  void put(const std::string& key, const std::string& json) {
    members_ += (members_.empty() ? "" : ",\n") + json_string(key) + ":" + json;
  }

  BoardAnswers& answers_;
  std::string members_;
};

/// What is asked about one run. Copied out of its record, which is asked for again meanwhile.
struct Contents {
  std::vector<std::string> metrics;
  std::vector<RecordMedia> media;
};

void add_run(ExportedAnswers& answers, const RunSummary& run, const Contents& contents) {
  answers.add("/api/run", {{"id", run.id}});
  for (const std::string& metric : contents.metrics) {
    for (const char* x : {"update", "epoch", "samples", "tokens", "time"}) {
      answers.add_series({{"run", run.id}, {"metric", metric}, {"x", x}});
    }
  }
  std::set<std::string> seen;
  for (const RecordMedia& one : contents.media) {
    const Values values = {{"run", run.id},
                           {"kind", one.kind},
                           {"name", one.name},
                           {"step", std::to_string(one.step)}};
    if (seen.insert(address("", values)).second) {
      answers.add("/api/media", values);
    }
  }
  for (const std::string& key : steps_of_run(run.directory)) {
    answers.add("/api/step", {{"run", run.id}, {"key", key}});
    answers.add("/api/step", {{"run", run.id}, {"key", key}, {"part", "program"}});
    answers.add("/api/step", {{"run", run.id}, {"key", key}, {"part", "timeline"}});
  }
  for (const std::string& name : tables_of_run(run.directory)) {
    answers.add("/api/table", {{"run", run.id}, {"name", name}});
  }
  answers.add("/api/log", {{"run", run.id}}, {{"last", "2000"}});
}

}  // namespace

std::string exported_page(RunIndex& index) {
  BoardAnswers answers(index);
  ExportedAnswers exported(answers);
  for (const std::shared_ptr<const RunSummary>& run : index.summaries()) {
    Contents contents;
    index.with_record(run->id, [&](const RunRecord& record) {
      for (const auto& [name, points] : record.metrics) {
        contents.metrics.push_back(name);
      }
      contents.media = record.media;
    });
    add_run(exported, *run, contents);
  }
  exported.add("/api/runs", {});  // summaries are whole now
  exported.add("/api/alerts", {});
  const std::string end = "</body>";
  std::string page(board_page());
  const size_t place = page.rfind(end);
  if (place == std::string::npos) {
    throw UsageError("the page of this rondo has no </body>; build it again");
  }
  return page.insert(place,
                     "<script type=\"application/json\" id=\"export\">" +
                         in_html(exported.object()) + "</script>\n");
}

}  // namespace rondo
