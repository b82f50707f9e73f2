#include <ATen/TensorOperators.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <regex>
#include <string>
#include <vector>

#include "callbacks/algorithm.h"
#include "data/tensor_dataset.h"
#include "docs/pages.h"
#include "models/builtin/mlp.h"
#include "support/builtins.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Adds noise to the pictures in every second update.
class Noise final : public Algorithm {
 public:
  struct Options {
    double strength = 0.1;
  };

  explicit Noise(const Options& options) : options_(options) {}

  bool match(Event event, const State& state) const override {
    return event == Event::BeforeForward && state.timestamp.update % 2 == 0;
  }

  void apply(Event, Trainer& trainer) override {
    Batch& batch = *trainer.state().batch;
    const at::Tensor image = batch["image"];
    batch.set("image", image + at::randn_like(image) * options_.strength);
  }

 private:
  Options options_;
};

class Watch final : public EventCallback {
 public:
  void run_event(Event event, Trainer& trainer) override {
    if (event == Event::EpochEnd) {
      trainer.log().info("an epoch is over");
    }
  }
};

}  // namespace

TEST_SUITE_BEGIN("docs/algorithms");

TEST_CASE("the table of events has every event, in order, and says where it runs") {
  const std::string page = read_page("docs/algorithms.md");
  static const std::regex row(R"(\n\| `(\w+)` \| (host|step) \|)");
  std::vector<std::string> rows;
  std::vector<std::string> expected;
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at) {
    rows.push_back((*at)[1].str() + " " + (*at)[2].str());
  }
  for (const Event event : all_events()) {
    expected.push_back(std::string(name_of(event)) +
                       (site_of(event) == HookSite::Host ? " host" : " step"));
  }
  CHECK(rows == expected);
}

TEST_CASE("the page has a recipe line for each algorithm") {
  const std::string page = read_page("docs/algorithms.md");
  for (const auto& entry : builtins().algorithms.entries()) {
    CHECK_MESSAGE(page.find("`{ " + entry.name + " = {") != std::string::npos, entry.name);
  }
}

TEST_CASE("the examples of the page act in a run, traced as eager") {
  const auto fit = [](const char* mode) {
    const TempDir dir;
    Mlp::Options mlp;
    mlp.sizes = {4, 3};
    TrainerOptions options = tiny_options(dir / "run");
    options.model = use<Mlp>(mlp);
    options.backend.mode = mode;
    options.loop.max_steps = 8;
    options.algorithms = {use<Noise>()};
    options.callbacks = {use<Watch>()};
    LoaderOptions loader;
    loader.batch_size = 2;
    const at::Tensor image = at::arange(40, at::kFloat).sin().reshape({10, 4});
    Trainer trainer(options, quiet_log());
    trainer.fit(DataLoader(
        "train", from_tensors({{"image", image}, {"label", at::arange(10).remainder(3)}}), loader));
    return bits_of(trainer);
  };
  CHECK(first_difference(fit("eager"), fit("traced")) == "");
}

TEST_SUITE_END();
