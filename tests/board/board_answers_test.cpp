#include "board/board_answers.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "board/made_runs.h"
#include "core/base64.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("board/board_answers");

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

/// A board over a folder.
class Board {
 public:
  explicit Board(const fs::path& root) : index_(RunIndexOptions{root, {}, {}, 64 << 10, 0}) {}

  BoardAnswer ask(const std::string& path, const BoardParameters& parameters = {}) {
    return answers_.answer(path, parameters);
  }

  std::string body(const std::string& path, const BoardParameters& parameters = {}) {
    const BoardAnswer answer = ask(path, parameters);
    CHECK(answer.status == 200);
    return *answer.body;
  }

  int status(const std::string& path, const BoardParameters& parameters = {}) {
    const BoardAnswer answer = ask(path, parameters);
    CHECK((answer.status == 200 || answer.body->rfind("{\"error\":", 0) == 0));
    return answer.status;
  }

 private:
  RunIndex index_;
  BoardAnswers answers_{index_};
};

bool has(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) {
    MESSAGE(text);
  }
  return found;
}

/// A run with everything that a record can hold.
void write_full_run(const fs::path& directory) {
  write_text(
      directory / "record.jsonl",
      session_line("full") + config_line("lr = 0.5") +
          "{\"kind\":\"metric\",\"step\":1,\"time\":101,\"text\":\"val/"
          "acc\",\"better\":\"higher\"}\n" +
          numbers_line(1, "\"loss\":4", ",\"epoch\":0.5,\"samples\":64") +
          numbers_line(2, "\"loss\":2,\"val/acc\":\"nan\"", ",\"epoch\":1,\"samples\":128") +
          "{\"kind\":\"validation\",\"step\":2,\"time\":102,\"text\":\"val\"}\n"
          "{\"kind\":\"save\",\"step\":2,\"time\":102,\"text\":\"checkpoint_2.pt\"}\n"
          "{\"kind\":\"alert\",\"step\":2,\"time\":102,\"level\":\"warn\",\"text\":\"<b>loss</"
          "b>\"}\n"
          "{\"kind\":\"histogram\",\"step\":2,\"time\":102,\"name\":\"w\",\"edges\":[0,1],"
          "\"counts\":[3]}\n"
          "{\"kind\":\"image\",\"step\":2,\"time\":102,\"name\":\"small\",\"height\":1,\"width\":1,"
          "\"data\":\"" +
          base64("PNG-1") +
          "\"}\n"
          "{\"kind\":\"image\",\"step\":2,\"time\":102,\"name\":\"large\",\"file\":\"media/"
          "a.png\"}\n"
          "{\"kind\":\"image\",\"step\":2,\"time\":102,\"name\":\"evil\",\"file\":\"../secret\"}\n"
          "{\"kind\":\"text\",\"step\":2,\"time\":102,\"name\":\"t\",\"text\":\"say \\\"x\\\"\"}\n"
          "{\"kind\":\"text\",\"step\":3,\"time\":103,\"name\":\"t\",\"file\":\"media/t.txt\"}\n"
          "{\"kind\":\"table\",\"step\":2,\"time\":102,\"name\":\"c\",\"columns\":[\"a\"],\"rows\":"
          "[[\"1\"]]}\n");
  write_text(directory / "media/a.png", "PNG-2");
  write_text(directory / "media/t.txt", "from a file");
  write_text(directory / "latest_run.log", "one\nTwo\n");
  write_text(directory / "validate_all.csv", "checkpoint,loss\n\"a,b\",1\n");
  write_text(directory / "logs/20260101_1/steps/train.json", "{\"instructions\": 3}");
  write_text(directory / "logs/20260101_1/steps/train.txt", "step train");
  write_text(directory / "logs/20260101_1/steps/train.trace.json", "{\"traceEvents\": []}");
  write_text(directory / "../secret", "secret");
}

BoardParameters media(const char* kind, const char* name, const char* step = "2") {
  return {{"run", "full"}, {"kind", kind}, {"name", name}, {"step", step}};
}

}  // namespace

TEST_CASE("runs are listed with status, config, and metrics with their best values") {
  const TempDir dir;
  write_run(dir / "a", 0.1, 1.5);
  write_full_run(dir / "runs/full");
  Board board(dir.path());
  const std::string runs = board.body("/api/runs");
  CHECK(has(runs, "\"id\":\"a\",\"name\":\"a\",\"status\":\"done\",\"step\":2,\"updates\":20"));
  CHECK(has(runs, "\"begin\":100.000,\"end\":102.000"));
  CHECK(has(runs, "\"config\":{\"optimizer.lr\":\"0.1\"}"));
  CHECK(has(runs, "\"metrics\":{\"loss\":{\"last\":1.5}}"));
  CHECK(has(runs, "\"id\":\"runs/full\",\"name\":\"full\",\"status\":\"crashed\""));
  CHECK(has(runs, "\"val/acc\":{\"last\":\"nan\",\"higher_is_better\":true}"));
  CHECK(has(runs, "\"alerts\":1,\"saves\":1}"));
}

TEST_CASE("series come for each run and metric, over each x") {
  const TempDir dir;
  write_run(dir / "a", 0.1, 1.5);
  write_full_run(dir / "full");
  Board board(dir.path());
  const std::string two =
      board.body("/api/series", {{"run", "a"}, {"run", "full"}, {"metric", "loss"}});
  CHECK(has(
      two,
      "{\"run\":\"a\",\"metric\":\"loss\",\"count\":2,\"x\":[1,2],\"y\":[2,1.5],\"low\":[2,1.5],"
      "\"high\":[2,1.5]}"));
  CHECK(has(two, "{\"run\":\"full\",\"metric\":\"loss\",\"count\":2,\"x\":[1,2],\"y\":[4,2]"));
  BoardParameters query = {{"run", "full"}, {"metric", "loss"}, {"x", "samples"}};
  CHECK(has(board.body("/api/series", query), "\"x\":[64,128]"));
  query = {{"run", "full"}, {"metric", "loss"}, {"x", "tokens"}};
  CHECK(has(board.body("/api/series", query), "\"why\":\"the run did not record its tokens\""));
  query = {{"run", "full"}, {"metric", "val/acc"}};
  CHECK(has(board.body("/api/series", query), "\"y\":[\"nan\"]"));
  query = {{"run", "full"}, {"metric", "loss"}, {"from", "2"}, {"smooth", "0.5"}};
  CHECK(has(board.body("/api/series", query), "\"x\":[2],\"y\":[2.666667],\"low\":[2]"));
  query = {{"run", "gone"}, {"metric", "loss"}};
  CHECK(has(board.body("/api/series", query), "\"why\":\"there is no such run\""));
  CHECK(board.body("/api/series") == "{\"series\":[]}");
}

TEST_CASE("series that are asked for again follow the record") {
  const TempDir dir;
  write_text(dir / "a/record.jsonl", session_line("a") + numbers_line(1, "\"loss\":4"));
  Board board(dir.path());
  const BoardParameters query = {{"run", "a"}, {"metric", "loss"}};
  const std::string before = board.body("/api/series", query);
  CHECK(board.body("/api/series", query) == before);
  append_text(dir / "a/record.jsonl", numbers_line(2, "\"loss\":3"));
  CHECK(has(board.body("/api/series", query), "\"x\":[1,2],\"y\":[4,3]"));
}

TEST_CASE("wrong parameters are told") {
  const TempDir dir;
  write_run(dir / "a", 0.1, 1.5);
  Board board(dir.path());
  for (const auto& [name, value] : BoardParameters{{"x", "loss"},
                                                   {"smooth", "much"},
                                                   {"points", "1e"},
                                                   {"points", "nan"},
                                                   {"from", "inf"},
                                                   {"to", "1 2"}}) {
    CAPTURE(value);
    CHECK(board.status("/api/series", {{"run", "a"}, {"metric", "loss"}, {name, value}}) == 400);
  }
  BoardParameters many;
  for (int i = 0; i < 1001; ++i) {
    many.emplace("run", "a");
  }
  many.emplace("metric", "loss");
  CHECK(board.status("/api/series", many) == 400);
  CHECK(board.status("/api/series",
                     {{"run", "a"}, {"metric", "loss"}, {"points", "1e300"}, {"smooth", "9"}}) ==
        200);
  CHECK(board.status("/api/run") == 400);
  CHECK(board.status("/api/diff", {{"a", "a"}}) == 400);
  CHECK(board.status("/api/nothing") == 404);
}

TEST_CASE("one run is shown with all that it recorded") {
  const TempDir dir;
  write_full_run(dir / "full");
  Board board(dir.path());
  const std::string run = board.body("/api/run", {{"id", "full"}});
  CHECK(has(run, "\"config_text\":\"lr = 0.5\""));
  CHECK(has(run, "\"process\":7,\"host\":\"here\",\"version\":\"0.2.0\",\"damaged_lines\":0"));
  CHECK(has(run, "\"metrics\":[\"loss\",\"val/acc\"]"));
  CHECK(has(run, "\"saves\":[{\"step\":2,\"time\":102.000,\"path\":\"checkpoint_2.pt\"}]"));
  CHECK(has(run, "\"validations\":[{\"step\":2,\"time\":102.000,\"label\":\"val\"}]"));
  CHECK(has(run, "\"level\":\"warn\",\"text\":\"<b>loss</b>\"}"));
  CHECK(has(run, "{\"step\":2,\"time\":102.000,\"kind\":\"histogram\",\"name\":\"w\"}"));
  CHECK(has(run, "\"steps\":[\"train\"],\"tables\":[\"validate_all.csv\"]"));
  CHECK(board.status("/api/run", {{"id", "other"}}) == 404);
}

TEST_CASE("media come from the record or from their files") {
  const TempDir dir;
  write_full_run(dir / "full");
  Board board(dir.path());
  const BoardAnswer picture = board.ask("/api/media", media("image", "small"));
  CHECK(picture.type == "image/png");
  CHECK(*picture.body == "PNG-1");
  CHECK(board.body("/api/media", media("image", "large")) == "PNG-2");
  CHECK(has(board.body("/api/media", media("histogram", "w")), "\"edges\":[0,1],\"counts\":[3]"));
  CHECK(
      has(board.body("/api/media", media("table", "c")), "\"columns\":[\"a\"],\"rows\":[[\"1\"]]"));
  CHECK(board.body("/api/media", media("text", "t")) == "{\"text\":\"say \\\"x\\\"\"}");
  CHECK(board.body("/api/media", media("text", "t", "3")) == "{\"text\":\"from a file\"}");
  CHECK(board.status("/api/media", media("image", "small", "3")) == 404);
  CHECK(board.status("/api/media", media("image", "../secret")) == 404);
  CHECK(board.status("/api/media", media("image", "evil")) == 404);
  CHECK(board.status("/api/media", {{"run", "full"}}) == 400);
}

TEST_CASE("steps, logs and tables of a run are named by what its directory lists") {
  const TempDir dir;
  write_full_run(dir / "full");
  Board board(dir.path());
  CHECK(board.body("/api/step", {{"run", "full"}, {"key", "train"}}) == "{\"instructions\": 3}");
  const auto part = [](const char* name) {
    return BoardParameters{{"run", "full"}, {"key", "train"}, {"part", name}};
  };
  CHECK(board.body("/api/step", part("program")) == "step train");
  CHECK(board.body("/api/step", part("timeline")) == "{\"traceEvents\": []}");
  CHECK(board.status("/api/step", part("../train")) == 400);
  CHECK(board.body("/api/log", {{"run", "full"}}) == "{\"lines\":[\"one\",\"Two\"],\"count\":2}");
  CHECK(board.body("/api/log", {{"run", "full"}, {"q", "tWo"}, {"last", "1"}}) ==
        "{\"lines\":[\"Two\"],\"count\":1}");
  CHECK(board.body("/api/table", {{"run", "full"}, {"name", "validate_all.csv"}}) ==
        "{\"columns\":[\"checkpoint\",\"loss\"],\"rows\":[[\"a,b\",\"1\"]]}");
  for (const char* path : {"../secret",
                           "../../../../secret",
                           "/etc/passwd",
                           "train.json",
                           "",
                           ".",
                           "../../../latest_run.log"}) {
    CAPTURE(path);
    CHECK(board.status("/api/step", {{"run", "full"}, {"key", path}}) >= 400);
    CHECK(board.status("/api/table", {{"run", "full"}, {"name", path}}) >= 400);
    CHECK(board.status("/api/log", {{"run", path}}) >= 400);
    CHECK(board.status("/api/run", {{"id", path}}) >= 400);
    CHECK(board.status("/api/media",
                       {{"run", path}, {"kind", "image"}, {"name", "small"}, {"step", "2"}}) >=
          400);
  }
}

TEST_CASE("a log outside of the run's directory is not shown") {
  const TempDir dir;
  write_run(dir / "runs/a", 0.1, 1);
  write_text(dir / "secret", "secret\n");
  fs::create_symlink("../../secret", dir / "runs/a/latest_run.log");
  Board board(dir / "runs");
  CHECK(board.body("/api/log", {{"run", "a"}}) == "{\"lines\":[],\"count\":0}");
}

TEST_CASE("two runs are compared: config, results, and the first update that differs") {
  const TempDir dir;
  write_run(dir / "a", 0.1, 1.5);
  write_run(dir / "b", 0.2, 1.25);
  Board board(dir.path());
  CHECK(board.body("/api/diff", {{"a", "a"}, {"b", "b"}}) ==
        "{\"config\":[{\"key\":\"optimizer.lr\",\"a\":\"0.1\",\"b\":\"0.2\"}],"
        "\"results\":[{\"metric\":\"loss\",\"a\":1.5,\"b\":1.25}],"
        "\"first_difference\":{\"metric\":\"loss\",\"step\":2}}");
  CHECK(has(board.body("/api/diff", {{"a", "a"}, {"b", "a"}}), "\"first_difference\":null"));
}

TEST_CASE("alerts of all runs, and the metrics of running ones for Prometheus") {
  const TempDir dir;
  write_full_run(dir / "full");
  write_run(dir / "a", 0.1, 1.5);
  Board board(dir.path());
  CHECK(board.body("/api/alerts") ==
        "{\"alerts\":[{\"run\":\"full\",\"step\":2,\"time\":102.000,\"level\":\"warn\","
        "\"text\":\"<b>loss</b>\"}]}");
  const BoardAnswer metrics = board.ask("/metrics");
  CHECK(metrics.type == "text/plain; version=0.0.4");
  CHECK(metrics.body->find("rondo_metric{") == std::string::npos);  // no run is running
}

TEST_CASE("names that try to break out of JSON are texts") {
  const TempDir dir;
  write_text(dir / "a\"}],\"x<script>/record.jsonl",
             session_line("\"\n</script>") + numbers_line(1, "\"m\\\"\\u0000</script>\":1"));
  Board board(dir.path());
  const std::string runs = board.body("/api/runs");
  CHECK(has(runs, "\"id\":\"a\\\"}],\\\"x<script>\",\"name\":\"\\\"\\u000a</script>\""));
  CHECK(has(runs, "\"m\\\"\\u0000</script>\":{\"last\":1}"));
}

TEST_SUITE_END();
