// What loggers hold after a run died and went on: what an uninterrupted run holds.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "loggers/event_file.h"
#include "loggers/loggers.h"
#include "loggers/tiny_fit.h"
#include "loggers/written_text.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("loggers/resume");

namespace {

/// A run of 12 updates that validates after each third and saves after each `save_every`th.
TrainerOptions resumed_options(const fs::path& run, int64_t save_every = 6) {
  TrainerOptions options = tiny_options(run);
  options.loop.max_steps = 12;
  options.loop.eval_frequency = 3;
  options.checkpoint.steps = save_every;
  options.loggers = {use<JsonlLogger>(), use<CsvLogger>(), use<TensorBoardLogger>()};
  return options;
}

/// The same, ended by an exception in the first batch after `update`; nothing is cleaned up that a
/// process which dies would leave.
void fit_and_die(TrainerOptions options, int64_t update) {
  ProbeCallback::Options probe;
  probe.train_batch_start = [update](Trainer& trainer, const Batch&) {
    if (trainer.state().global_step() == update) {
      throw std::runtime_error("dies");
    }
  };
  options.callbacks.push_back(use<ProbeCallback>(probe));
  CHECK_THROWS(fit(options));
}

/// An event, as far as these tests need it.
struct FileEvent {
  int64_t step = 0;
  bool is_start = false;
  std::string tag;
  float value = 0.0F;

  bool operator<(const FileEvent& other) const {
    return std::tie(step, tag) < std::tie(other.step, other.tag);
  }
};

/// Reads the fields of a protobuf message. Source: protobuf.dev/programming-guides/encoding.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  bool next() {
    if (bytes_.empty()) {
      return false;
    }
    const uint64_t key = varint();
    number = static_cast<int>(key >> 3);
    const uint64_t kind = key & 7;
    if (kind == 0) {
      integer = varint();
    } else {
      const size_t size = kind == 1 ? 8 : kind == 5 ? 4 : varint();
      text = bytes_.substr(0, size);
      bytes_.remove_prefix(size);
    }
    return true;
  }

  int number = 0;
  uint64_t integer = 0;
  std::string_view text;

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
  }

  std::string_view bytes_;
};

void add_values(std::string_view summary, FileEvent event, std::vector<FileEvent>& events) {
  for (Fields values(summary); values.next();) {
    for (Fields value(values.text); value.next();) {
      if (value.number == 1) {
        event.tag = value.text;
      } else if (value.number == 2) {
        std::memcpy(&event.value, value.text.data(), sizeof event.value);
      }
    }
    events.push_back(event);
  }
}

std::vector<FileEvent> events_in(const fs::path& file) {
  std::vector<FileEvent> events;
  const std::string bytes = written_text(file);
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    FileEvent event;
    for (Fields fields(std::string_view(bytes).substr(at + 12, length)); fields.next();) {
      if (fields.number == 2) {
        event.step = static_cast<int64_t>(fields.integer);
      } else if (fields.number == 5) {
        add_values(fields.text, event, events);
      } else if (fields.number == 7) {
        Fields session(fields.text);
        event.is_start = session.next() && session.number == 1 && session.integer == 1;
        events.push_back(event);
      }
    }
    at += 16 + length;
  }
  return events;
}

/// The values that a reader shows, sorted: a session that starts drops those from its step on, as
/// TensorBoard's EventAccumulator does.
std::vector<FileEvent> shown(const fs::path& directory) {
  std::vector<FileEvent> all;
  for (const fs::path& file : event_files(directory)) {
    for (const FileEvent& event : events_in(file)) {
      if (event.is_start) {
        const auto is_dropped = [&](const FileEvent& old) { return old.step >= event.step; };
        all.erase(std::remove_if(all.begin(), all.end(), is_dropped), all.end());
      } else {
        all.push_back(event);
      }
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// A line an event.
std::string text_of(const std::vector<FileEvent>& events) {
  std::string text;
  for (const FileEvent& event : events) {
    text += fmt::format("{} {} {}\n", event.step, event.tag, event.value);
  }
  return text;
}

void check_same(const fs::path& run, const fs::path& whole) {
  CHECK(written_text(run / "metrics.jsonl") == written_text(whole / "metrics.jsonl"));
  CHECK(written_text(run / "metrics.csv") == written_text(whole / "metrics.csv"));
  CHECK(text_of(shown(run / "events")) == text_of(shown(whole / "events")));
}

}  // namespace

TEST_CASE("rows between a save and a crash stand once after the resume, also those of the save") {
  const TempDir dir;
  fit(resumed_options(dir / "whole"));
  REQUIRE_FALSE(shown(dir / "whole/events").empty());
  for (const int64_t update : {6, 7, 8, 10}) {  // after 6: the validation of the save is done
    CAPTURE(update);
    const fs::path run = dir.path() / ("run" + std::to_string(update));
    fit_and_die(resumed_options(run), update);
    fit(resumed_options(run));
    check_same(run, dir / "whole");
  }
}

TEST_CASE("a run that dies twice, the second time earlier") {
  const TempDir dir;
  fit(resumed_options(dir / "whole"));
  fit_and_die(resumed_options(dir / "run"), 10);
  fit_and_die(resumed_options(dir / "run"), 8);
  fit(resumed_options(dir / "run"));
  check_same(dir / "run", dir / "whole");
}

TEST_CASE(
    "TensorBoard is told of the checkpoint's update, in a file that is read after the others") {
  const TempDir dir;
  fit_and_die(resumed_options(dir / "run"), 8);
  fit(resumed_options(dir / "run"));
  const std::vector<fs::path> files = event_files(dir / "run/events");
  REQUIRE(files.size() == 2);
  const std::vector<FileEvent> resumed = events_in(files[1]);
  REQUIRE_FALSE(resumed.empty());
  CHECK(resumed[0].is_start);
  CHECK(resumed[0].step == 6);
  for (const FileEvent& event : events_in(files[0])) {
    CHECK_FALSE(event.is_start);
  }
}

TEST_CASE("a last row that a crash cut short is dropped") {
  const TempDir dir;
  fit(resumed_options(dir / "whole"));
  fit_and_die(resumed_options(dir / "run"), 8);
  std::ofstream(dir / "run/metrics.jsonl", std::ios::app) << "{\"step\":3,\"na";
  std::ofstream(dir / "run/metrics.csv", std::ios::app) << "3,los";
  fit(resumed_options(dir / "run"));
  check_same(dir / "run", dir / "whole");
}

TEST_CASE("lines that no logger of rondo wrote stay") {
  const TempDir dir;
  fit_and_die(resumed_options(dir / "run"), 8);
  std::ofstream(dir / "run/metrics.jsonl", std::ios::app) << "# a note\n{\"step\":\"x\"}\n";
  fit(resumed_options(dir / "run"));
  const std::string text = written_text(dir / "run/metrics.jsonl");
  CHECK(text.find("# a note\n{\"step\":\"x\"}\n") != std::string::npos);
}

TEST_CASE("names and texts that CSV quotes, over several lines too, are dropped whole") {
  const TempDir dir;
  TrainerOptions options = resumed_options(dir / "run");
  options.loggers = {use<CsvLogger>()};
  ProbeCallback::Options probe;
  probe.train_batch_end = [](Trainer& trainer) {
    if (trainer.state().global_step() == 7) {
      trainer.log_metrics({{"a \"b\", c", std::string("two\nlines, \"quoted\"")}});
      throw std::runtime_error("dies");
    }
  };
  TrainerOptions dying = options;
  dying.callbacks = {use<ProbeCallback>(probe)};
  CHECK_THROWS(fit(dying));
  REQUIRE(written_text(dir / "run/metrics.csv").find("\"two\nlines") != std::string::npos);
  fit(options);
  TrainerOptions whole = resumed_options(dir / "whole");
  whole.loggers = {use<CsvLogger>()};
  fit(whole);
  CHECK(written_text(dir / "run/metrics.csv") == written_text(dir / "whole/metrics.csv"));
}

TEST_CASE("a run that died before its first save begins again, and the old rows are kept aside") {
  const TempDir dir;
  fit(resumed_options(dir / "whole"));
  fit_and_die(resumed_options(dir / "run"), 4);
  const std::string before = written_text(dir / "run/metrics.jsonl");
  fit(resumed_options(dir / "run"));
  check_same(dir / "run", dir / "whole");
  CHECK(written_text(dir / "run/metrics.1.jsonl") == before);
  CHECK(fs::exists(dir / "run/metrics.1.csv"));
}

TEST_CASE("what was logged before a fit stays, in a new file and beside an older one") {
  const TempDir dir;
  for (int i = 0; i < 2; ++i) {
    Trainer trainer(resumed_options(dir / "run"), quiet_log());
    trainer.log_metrics({{"set_up", 1.0}});
    trainer.fit(tiny_loader("train"), {}, LoadFrom::nothing());
    const std::string csv = written_text(dir / "run/metrics.csv");
    CHECK(csv.rfind("step,name,value\n0,set_up,1", 0) == 0);
    CHECK(csv.find("step,name,value", 1) == std::string::npos);
    CHECK(written_text(dir / "run/metrics.jsonl").rfind("{\"step\":0,\"name\":\"set_up\"", 0) == 0);
    const std::vector<FileEvent> events = shown(dir / "run/events");
    REQUIRE_FALSE(events.empty());
    CHECK(events[0].tag == "set_up");
    CHECK(events[1].step == 1);
  }
}

TEST_CASE("fits of one Trainer that follow each other drop nothing; one that goes back does") {
  const TempDir dir;
  TrainerOptions options = resumed_options(dir / "run", /*save_every=*/2);
  options.loop.max_steps = {};
  options.loop.num_steps = 4;
  options.loggers = {use<JsonlLogger>()};
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  trainer.log_metrics({{"between", 1.0}});
  trainer.fit(tiny_loader("train"));
  const std::string both = written_text(dir / "run/metrics.jsonl");
  CHECK(both.find("\"between\"") != std::string::npos);
  CHECK(both.find("{\"step\":8,\"name\":\"loss\"") != std::string::npos);
  trainer.fit(tiny_loader("train"), {}, (dir / "run/checkpoint_2.pt").string());
  const std::string back = written_text(dir / "run/metrics.jsonl");
  CHECK(back.find("\"between\"") == std::string::npos);
  CHECK(back.find("{\"step\":6,\"name\":\"loss\"") != std::string::npos);
  CHECK(back.find("{\"step\":8,\"name\":\"loss\"") == std::string::npos);
}

TEST_CASE("a logger of a user's own is told where a fit begins, before its first update") {
  struct Told final : Logger {
    struct Options {
      std::vector<LogPosition>* positions = nullptr;
    };

    explicit Told(const Options& options) : options_(options) {}

    void log(const Metrics&, int64_t) override { CHECK_FALSE(options_.positions->empty()); }

    void go_back(const LogPosition& position) override { options_.positions->push_back(position); }

    Options options_;
  };

  const TempDir dir;
  std::vector<LogPosition> positions;
  TrainerOptions options = resumed_options(dir / "run");
  options.loggers = {use<Told>({&positions})};
  fit_and_die(options, 8);
  fit(options);
  REQUIRE(positions.size() == 2);
  CHECK(positions[0].update == 0);
  CHECK(positions[1].update == 6);
  CHECK(positions[1].repeated == std::vector<std::string>{"val"});
  CHECK(positions[1].repeats(7, "loss"));
  CHECK(positions[1].repeats(6, "val/loss"));
  CHECK_FALSE(positions[1].repeats(6, "loss"));
  CHECK_FALSE(positions[1].repeats(6, "value/loss"));
  CHECK_FALSE(positions[1].repeats(5, "val/loss"));
}

TEST_CASE("loggers are flushed at each save: a crash right after it loses no row before it") {
  struct AtSave final : Callback {
    struct Options {
      std::string* seen = nullptr;
    };

    explicit AtSave(const Options& options) : options_(options) {}

    void on_after_save_checkpoint(Trainer& trainer, const fs::path&) override {
      *options_.seen = written_text(trainer.options().model_dir / "metrics.jsonl");
    }

    Options options_;
  };

  const TempDir dir;
  TrainerOptions options = resumed_options(dir / "run");
  std::string at_save;
  options.callbacks = {use<AtSave>({&at_save})};
  fit_and_die(options, 7);
  CHECK(at_save.find("{\"step\":6,\"name\":\"loss\"") != std::string::npos);
  fit(options);
  CHECK(at_save.find("{\"step\":12,\"name\":\"loss\"") != std::string::npos);
}

TEST_SUITE_END();
