// Histograms, pictures, texts and tables: in the record, in TensorBoard's events; what loggers are
// not given.

#include "core/media.h"

#include <doctest/doctest.h>
#include <tensorboard_event.pb.h>
#include <torch/types.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file_system.h"
#include "loggers/event_file.h"
#include "loggers/loggers.h"
#include "loggers/media_bytes.h"
#include "record/run_record.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("loggers/media");

namespace {

/// A run of 6 updates that logs media after update 2.
void run_with(const std::filesystem::path& run,
              const std::vector<Media>& media,
              const std::vector<Factory<Logger>>& loggers) {
  ProbeCallback::Options probe;
  probe.train_batch_end = [&](Trainer& trainer) {
    if (trainer.state().global_step() == 2) {
      for (const Media& one : media) {
        trainer.log_media(one);
      }
      trainer.log_metrics({{"words", std::string("of a text")}, {"vector", torch::ones({1})}});
    }
  };
  TrainerOptions options = tiny_options(run);
  options.loop.max_steps = 6;
  options.callbacks = {use<ProbeCallback>(probe)};
  options.loggers = loggers;
  options.config_text = "[trainer.init]\nmodel_dir = \"run\"\nseed = 7\n";
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
}

std::vector<Media> some_media() {
  return {{"small", histogram_of(torch::arange(4))},
          {"large", histogram_of(torch::linspace(0, 1, 1000), 500)},
          {"picture", picture_of(torch::rand({3, 64, 64}))},
          {"dot", picture_of(torch::zeros({1, 1}))},
          {"story", std::string("Once upon a time")},
          {"table", TextTable{{"a", "b"}, {{"1", "x|y"}}}}};
}

/// Values by tag of all event files of a directory.
std::vector<tensorboard::Summary::Value> values_in(const std::filesystem::path& directory) {
  std::vector<tensorboard::Summary::Value> values;
  for (const std::filesystem::path& file : event_files(directory)) {
    const std::string bytes = real_file_system()->read(file);
    for (size_t at = 0; at < bytes.size();) {
      uint64_t length = 0;
      std::memcpy(&length, bytes.data() + at, sizeof length);
      tensorboard::Event event;
      REQUIRE(event.ParseFromArray(bytes.data() + at + 12, static_cast<int>(length)));
      for (const auto& value : event.summary().value()) {
        values.push_back(value);
      }
      at += 16 + length;
    }
  }
  return values;
}

tensorboard::Summary::Value value_of(const std::vector<tensorboard::Summary::Value>& values,
                                     const std::string& tag) {
  for (const auto& value : values) {
    if (value.tag() == tag) {
      return value;
    }
  }
  FAIL("no value " << tag);
  return {};
}

}  // namespace

TEST_CASE("a histogram counts each finite value once, and sums them") {
  const at::Tensor values =
      torch::tensor({0.0, 0.1, 0.5, 0.9, 1.0, std::nan(""), static_cast<double>(INFINITY)});
  const Histogram histogram = histogram_of(values, 2);
  CHECK(histogram.counts == std::vector<int64_t>{2, 3});
  CHECK(histogram.edges == std::vector<double>{0.0, 0.5, 1.0});
  CHECK(histogram.count == 5);
  CHECK(histogram.not_finite == 2);
  CHECK(histogram.sum == doctest::Approx(2.5));
  CHECK(histogram_of(torch::full({3}, 2.0), 8).counts == std::vector<int64_t>{3});
  CHECK(histogram_of(torch::empty({0})).counts.empty());
}

TEST_CASE("a picture takes bytes as they are and spreads other numbers") {
  const Picture bytes = picture_of(torch::tensor({{7, 9}}, torch::kByte));
  CHECK(bytes.pixels == std::vector<uint8_t>{7, 9});
  CHECK(bytes.height == 1);
  const Picture spread = picture_of(torch::tensor({{-1.0, 0.0, 1.0}}));
  CHECK(spread.pixels == std::vector<uint8_t>{0, 128, 255});
  const Picture first = picture_of(torch::tensor({1.0, 0.0, 0.0}).reshape({3, 1, 1}));
  CHECK(first.channels == 3);
  CHECK(first.pixels == std::vector<uint8_t>{255, 0, 0});
  CHECK_THROWS_AS(picture_of(torch::zeros({2, 5, 5})), ShapeError);
  CHECK_THROWS_AS(picture_of(torch::zeros({5})), ShapeError);
}

TEST_CASE("the record holds what is small, and names files by content for the rest") {
  const TempDir dir;
  run_with(dir / "run", some_media(), {use<RecordLogger>()});
  const RunRecord run = read_record(dir / "run");
  CHECK(run.damaged_lines == 0);
  REQUIRE(run.media.size() == 6);
  const auto file_of = [&](size_t i) { return run.media[i].file; };
  CHECK(run.media[0].kind == "histogram");
  CHECK(run.media[0].step == 2);
  CHECK(file_of(0).empty());
  CHECK(file_of(1).rfind("media/", 0) == 0);
  CHECK(run.media[2].kind == "image");
  const std::string png = real_file_system()->read(dir / "run" / file_of(2).c_str());
  CHECK(png.substr(1, 3) == "PNG");
  CHECK(file_of(3).empty());
  CHECK(run.media[4].kind == "text");
  CHECK(run.media[5].kind == "table");
  CHECK(file_of(1) == "media/" +
                          content_name(real_file_system()->read(dir / "run" / file_of(1).c_str())) +
                          ".json");
}

TEST_CASE("T127: TensorBoard gets scalars, tensors, texts, histograms, pictures and tables") {
  const TempDir dir;
  run_with(dir / "run", some_media(), {use<TensorBoardLogger>()});
  const auto values = values_in(dir / "run/events");
  CHECK(value_of(values, "loss").value_case() == tensorboard::Summary::Value::kSimpleValue);
  const auto vector = value_of(values, "vector");
  CHECK(vector.tensor().tensor_shape().dim(0).size() == 1);
  CHECK(vector.tensor().float_val(0) == 1.0F);
  const auto words = value_of(values, "words");
  CHECK(words.metadata().plugin_data().plugin_name() == "text");
  CHECK(words.tensor().string_val(0) == "of a text");
  CHECK(value_of(values, "small").histo().num() == 4.0);
  CHECK(value_of(values, "small").histo().bucket_size() == 64);
  const auto picture = value_of(values, "picture");
  CHECK(picture.image().width() == 64);
  CHECK(picture.image().encoded_image_string().substr(1, 3) == "PNG");
  CHECK(value_of(values, "table").tensor().string_val(0) ==
        "| a | b |\n|---|---|\n| 1 | x\\|y |\n");
  CHECK(value_of(values, "config").tensor().string_val(0).find("seed = 7") != std::string::npos);
  const auto plugin = value_of(values, "_hparams_/session_start_info").metadata().plugin_data();
  CHECK(plugin.plugin_name() == "hparams");
  tensorboard::HParamsPluginData data;
  REQUIRE(data.ParseFromString(plugin.content()));
  CHECK(data.session_start_info().hparams().size() == 1);
  CHECK(data.session_start_info().hparams().at("init.seed").number_value() == 7.0);
  CHECK(value_of(values, "_hparams_/session_end_info").metadata().has_plugin_data());
}

TEST_CASE("C81: the in-memory logger keeps values and drops what a resumed fit logs again") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 3;
  options.loggers = {use<InMemoryLogger>()};
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  auto* const logger = trainer.callback<InMemoryLogger>();
  REQUIRE(logger != nullptr);
  const auto losses = logger->numbers("loss");
  REQUIRE(losses.size() == 3);
  CHECK(losses[2].first == 3);
  logger->go_back({1, {}});
  CHECK(logger->numbers("loss").size() == 1);
  logger->log({{"words", std::string("a text")}}, 2);
  CHECK(logger->numbers("words").empty());
  CHECK(logger->entries().back().name == "words");
}

TEST_CASE("a logger has its own cadence and leaves out what its globs name") {
  const TempDir dir;
  CsvLogger::Options options;
  options.log_steps = 3;
  options.exclude = {"words", "vec*"};
  run_with(dir / "run", {}, {use<CsvLogger>(options)});
  const std::string text = real_file_system()->read(dir / "run/metrics.csv");
  CHECK(text.find("\n3,loss,") != std::string::npos);
  CHECK(text.find("\n6,loss,") != std::string::npos);
  CHECK(text.find("\n1,loss,") == std::string::npos);
  CHECK(text.find("words") == std::string::npos);
  const TempDir other;
  LogFilter filter;
  filter.exclude = {"small"};
  run_with(other / "run", some_media(), {use<RecordLogger>(filter)});
  const RunRecord run = read_record(other / "run");
  CHECK(run.media.size() == 5);
  CHECK(run.metrics.at("loss").size() == 6);
}

TEST_CASE("a logger's cadence holds for media, too") {
  const TempDir dir;
  ProbeCallback::Options probe;
  probe.train_batch_end = [](Trainer& trainer) {
    trainer.log_media({"story", std::string("Once upon a time")});
  };
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 6;
  options.callbacks = {use<ProbeCallback>(probe)};
  LogFilter filter;
  filter.log_steps = 3;
  options.loggers = {use<RecordLogger>(filter)};
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
  const RunRecord run = read_record(dir / "run");
  REQUIRE(run.media.size() == 2);
  CHECK(run.media[0].step == 3);
  CHECK(run.media[1].step == 6);
}

TEST_SUITE_END();
