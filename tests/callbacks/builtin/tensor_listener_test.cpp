// Listeners, DumpActivations and ImageVisualizer.

#include "callbacks/builtin/tensor_listener.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "callbacks/builtin/image_visualizer.h"
#include "core/error.h"
#include "core/file_system.h"
#include "data/tensor_dataset.h"
#include "support/probe_callback.h"
#include "support/python.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Keeps histograms and pictures by name.
struct MediaLogger final : Logger {
  struct Options {
    std::vector<Media>* media = nullptr;
  };

  explicit MediaLogger(const Options& o) : options(o) {}

  void log(const Metrics&, int64_t) override {}

  void log_media(const Media& media, int64_t) override { options.media->push_back(media); }

  Options options;
};

TrainerOptions listened(const std::filesystem::path& run,
                        const std::string& mode,
                        const Factory<Callback>& listener) {
  TrainerOptions options = tiny_options(run);
  options.backend.mode = mode;
  options.loop.max_steps = 6;
  options.logging.log_steps = 3;
  options.callbacks = {listener};
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/tensor_listener");

TEST_CASE("NormTensorListener logs norms of the tensors that fit, and of all together") {
  std::vector<std::vector<std::pair<int64_t, double>>> both;
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    std::vector<MemoryLogger::Entry> entries;
    MemoryLogger::Options memory;
    memory.entries = &entries;
    NormTensorListener::Options norm;
    norm.tensor_names = {"grad/*"};
    TrainerOptions options = listened(dir / "run", mode, use<NormTensorListener>(norm));
    options.loggers = {use<MemoryLogger>(memory)};
    Trainer(options, quiet_log()).fit(tiny_loader("train"));
    const auto weight = values_of(entries, "norm/grad/0.weight");
    const auto bias = values_of(entries, "norm/grad/0.bias");
    const auto all = values_of(entries, "norm/__all__");
    REQUIRE(weight.size() == 2);
    REQUIRE(all.size() == 2);
    CHECK(all[1].second == doctest::Approx(std::hypot(weight[1].second, bias[1].second)));
    CHECK(values_of(entries, "norm/param/0.weight").empty());
    both.push_back(weight);
  }
  CHECK(both[0] == both[1]);
}

TEST_CASE("SummaryTensorListener logs histograms on log steps") {
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    std::vector<Media> media;
    SummaryTensorListener::Options summary;
    summary.tensor_names = {"param/0.weight", "input/x"};
    TrainerOptions options = listened(dir / "run", mode, use<SummaryTensorListener>(summary));
    options.loggers = {use<MediaLogger>({&media})};
    Trainer(options, quiet_log()).fit(tiny_loader("train"));
    REQUIRE(media.size() == 4);
    CHECK(media[0].name == "summary/input/x");
    CHECK(std::get<Histogram>(media[0].value).count == 8);
    CHECK(media[1].name == "summary/param/0.weight");
    CHECK(std::get<Histogram>(media[1].value).count == 12);
  }
  CHECK_THROWS_AS(SummaryTensorListener({}), UsageError);
}

TEST_CASE("SummaryTensorListener has an interval, which need not fall on log steps") {
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    std::vector<Media> media;
    SummaryTensorListener::Options summary;
    summary.tensor_names = {"param/0.weight"};
    summary.every = 2;
    TrainerOptions options = listened(dir / "run", mode, use<SummaryTensorListener>(summary));
    options.logging.log_steps = 5;
    options.loggers = {use<MediaLogger>({&media})};
    Trainer(options, quiet_log()).fit(tiny_loader("train"));
    CHECK(media.size() == 3);
  }
  SummaryTensorListener::Options never;
  never.tensor_names = {"*"};
  never.every = 0;
  CHECK_THROWS_AS(SummaryTensorListener{never}, UsageError);
}

TEST_CASE("a glob that fits no tensor is warned of after the first update, once") {
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    NormTensorListener::Options norm;
    norm.tensor_names = {"grad/*", "layer0*", "param/0.wieght"};
    std::vector<std::string> lines;
    Trainer(listened(dir / "run", mode, use<NormTensorListener>(norm)), quiet_log(&lines))
        .fit(tiny_loader("train"));
    std::string warnings;
    for (const std::string& line : lines) {
      warnings += line.find("tensor_names") == std::string::npos ? "" : line + "\n";
    }
    CHECK(std::count(warnings.begin(), warnings.end(), '\n') == 2);
    CHECK(warnings.find("\"layer0*\" of tensor_names") != std::string::npos);
    CHECK(warnings.find("did you mean \"param/0.weight\"?") != std::string::npos);
  }
}

TEST_CASE("DumpAvailableTensorNames writes each name with shape and type") {
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    Trainer(listened(dir / "run", mode, use<DumpAvailableTensorNames>()), quiet_log())
        .fit(tiny_loader("train"));
    const std::string names =
        real_file_system()->read(dir / "run/logs/latest/available_tensor_names.txt");
    for (const char* line : {"grad/0.weight, [3, 4], Float\n",
                             "input/x, [2, 4], Float\n",
                             "input/label, [2], Long\n",
                             "output/loss, [], Float\n"}) {
      CAPTURE(line);
      CHECK(names.find(line) != std::string::npos);
    }
  }
}

TEST_CASE("DumpActivations writes an .npz that numpy reads, a row a step") {
  if (skips_without("numpy")) {
    return;
  }
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    DumpActivations::Options dump;
    dump.tensor_names = {"output/loss", "input/*", "grad/0.weight"};
    dump.steps = 4;
    TrainerOptions options = listened(dir / "run", mode, use<DumpActivations>(dump));
    std::vector<float> losses;
    ProbeCallback::Options probe;
    probe.after_backward = [&](Trainer&, const Outputs& outputs) {
      losses.push_back(outputs["loss"].item<float>());
    };
    if (std::string(mode) == "eager") {
      options.callbacks.push_back(use<ProbeCallback>(probe));
    }
    Trainer(options, quiet_log()).fit(tiny_loader("train"));
    const std::string first = losses.empty() ? "None" : std::to_string(losses.front());
    CHECK(runs_in_python("numpy", dir, R"(
import sys, numpy
dump = numpy.load(sys.argv[1] + "/run/logs/latest/act_dumps.npz")
assert sorted(dump.files) == ["grad/0.weight", "input/label", "input/x", "output/loss"], dump.files
assert dump["input/x"].shape == (4, 2, 4) and dump["input/x"].dtype == numpy.float32
assert dump["input/label"].shape == (4, 2) and dump["input/label"].dtype == numpy.int64
assert dump["output/loss"].shape == (4,)
assert dump["grad/0.weight"].shape == (4, 3, 4)
loss = )" + first + R"(
assert loss is None or abs(dump["output/loss"][0] - loss) < 1e-5
assert len(set(dump["output/loss"].tolist())) == 4
)"));
  }
}

TEST_CASE("ImageVisualizer logs the first pictures of a batch at intervals") {
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    std::vector<Media> media;
    ImageVisualizer::Options images;
    images.input = "picture";
    images.count = 2;
    images.every = 3;
    TrainerOptions options = listened(dir / "run", mode, use<ImageVisualizer>(images));
    options.loggers = {use<MediaLogger>({&media})};
    TensorMap data;
    data.set("x", torch::randn({10, 4}));
    data.set("label", torch::randint(3, {10}));
    data.set("picture", torch::rand({10, 3, 5, 6}));
    LoaderOptions batches;
    batches.batch_size = 5;
    const DataLoader loader("train", from_tensors(data), batches);
    Trainer(options, quiet_log()).fit(loader);
    REQUIRE(media.size() == 4);  // at updates 3 and 6
    CHECK(media[1].name == "picture/1");
    const auto& picture = std::get<Picture>(media[1].value);
    CHECK(picture.height == 5);
    CHECK(picture.width == 6);
    CHECK(picture.channels == 3);
  }
}

TEST_SUITE_END();
