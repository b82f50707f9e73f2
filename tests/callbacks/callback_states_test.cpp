#include "callbacks/callback_states.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "callbacks/builtin/average_weights.h"
#include "callbacks/builtin/count_params.h"
#include "callbacks/builtin/early_stopper.h"
#include "core/error.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

#include <torch/types.h>

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("callbacks/callback_states");

namespace {

Factory<Callback> stopper(const std::string& metric, const std::string& direction = "auto") {
  EarlyStopper::Options options;
  options.metric = metric;
  options.direction = direction;
  return use<EarlyStopper>(options);
}

/// A stopper's state whose best value tells where it came from.
StateDict state_of_best(double best) {
  return {{"best", best}, {"best_at", 1}, {"age", 0}};
}

StateDict about(const std::string& subject, double best) {
  StateDict state = state_of_best(best);
  state.set("subject", subject);
  return state;
}

/// What two callbacks hold after a load, and the warnings.
struct Loaded {
  StateDict states;
  std::vector<std::string> warnings;

  double best(const std::string& name) const {
    return states.contains(name) ? states.at(name + "/best").as_double() : -1.0;
  }
};

Loaded load(const std::vector<Factory<Callback>>& callbacks, const StateDict& states) {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = callbacks;
  Loaded loaded;
  Trainer trainer(options, quiet_log(&loaded.warnings));
  loaded.warnings.clear();
  load_callback_states(trainer, states);
  loaded.states = callback_states(trainer);
  return loaded;
}

bool tells(const Loaded& loaded, const std::string& fact) {
  for (const std::string& warning : loaded.warnings) {
    if (warning.find(fact) != std::string::npos) {
      return true;
    }
  }
  return false;
}

const std::string kLower = "val/loss, of which lower values are better";
const std::string kHigher = "val/accuracy, of which higher values are better";

}  // namespace

TEST_CASE("a state is saved with what it is about, and taken by a callback of the same") {
  const Loaded loaded = load({stopper("val/loss")}, {{"EarlyStopper", about(kLower, 5.0)}});
  CHECK(loaded.best("EarlyStopper") == 5.0);
  CHECK(loaded.states.at("EarlyStopper/subject").as_string() == kLower);
  CHECK(loaded.warnings.empty());
}

TEST_CASE("a state about another metric or direction is refused, with a warning that names both") {
  const StateDict states = {{"EarlyStopper", about(kLower, 5.0)}};
  const Loaded other = load({stopper("val/accuracy")}, states);
  CHECK(other.best("EarlyStopper") == -1.0);
  CHECK(other.warnings.size() == 1);
  CHECK(tells(other, "\"EarlyStopper\""));
  CHECK(tells(other, kLower));
  CHECK(tells(other, kHigher));
  const Loaded turned = load({stopper("val/loss", "max")}, states);
  CHECK(turned.best("EarlyStopper") == -1.0);
  CHECK(turned.warnings.size() == 1);
}

TEST_CASE("stoppers that change places do not get each other's states") {
  const StateDict states = {{"EarlyStopper", about(kLower, 5.0)},
                            {"EarlyStopper_2", about(kHigher, 0.5)}};
  const Loaded swapped = load({stopper("val/accuracy"), stopper("val/loss")}, states);
  CHECK(swapped.best("EarlyStopper") == -1.0);
  CHECK(swapped.best("EarlyStopper_2") == -1.0);
  CHECK(swapped.warnings.size() == 2);
  const StateDict labelled = {{"loss", about(kLower, 5.0)}, {"accuracy", about(kHigher, 0.5)}};
  const Loaded told =
      load({stopper("val/accuracy").labelled("accuracy"), stopper("val/loss").labelled("loss")},
           labelled);
  CHECK(told.best("loss") == 5.0);
  CHECK(told.best("accuracy") == 0.5);
  CHECK(told.warnings.empty());
}

TEST_CASE("a state of an older checkpoint is taken where there is one callback of its class only") {
  const StateDict states = {{"EarlyStopper", state_of_best(5.0)}};
  const Loaded one = load({stopper("val/loss")}, states);
  CHECK(one.best("EarlyStopper") == 5.0);
  CHECK(one.warnings.size() == 1);
  CHECK(tells(one, kLower));
  const Loaded two = load({stopper("val/loss"), stopper("val/accuracy")}, states);
  CHECK(two.best("EarlyStopper") == -1.0);
  CHECK(tells(two, "with 2 callbacks of class EarlyStopper"));
}

TEST_CASE("C58: a callback whose state is missing keeps its own, and a warning names it") {
  const Loaded loaded =
      load({stopper("val/loss"), use<AverageWeights>()}, {{"EarlyStopper", about(kLower, 5.0)}});
  CHECK(loaded.best("EarlyStopper") == 5.0);
  REQUIRE(loaded.warnings.size() == 1);
  CHECK(tells(loaded, "no state of callback \"AverageWeights\""));
  // One that keeps nothing misses nothing.
  CHECK(load({use<CountParams>()}, {}).warnings.empty());
}

TEST_CASE("names in a callback's state must differ") {
  struct Twice final : Callback {
    NamedTensors captured_state() override { return {{"a", tensor}}; }

    StateDict save_state() const override { return {{"a", 1}}; }

    at::Tensor tensor = torch::zeros({1});
  };

  struct Undefined final : Callback {
    NamedTensors captured_state() override { return {{"a", {}}}; }
  };

  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  for (const Factory<Callback>& callback : {use<Twice>(), use<Undefined>()}) {
    options.callbacks = {callback};
    const Trainer trainer(options, quiet_log());
    try {
      callback_states(trainer);
      FAIL("nothing was thrown");
    } catch (const UsageError& error) {
      const std::string text = error.what();
      CHECK(text.find(callback.name()) != std::string::npos);
      CHECK(text.find("\"a\"") != std::string::npos);
    }
  }
}

TEST_CASE("a run whose stopper is given another metric is not stopped by the old one's age") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.num_epochs = 2;
  options.loop.max_steps.reset();
  options.loop.eval_frequency = "1ep";
  options.checkpoint.steps = "1ep";
  options.callbacks = {stopper("val/loss", "max")};  // it falls: the first one stays the best
  const auto fit = [&](std::vector<std::string>* warnings) {
    Trainer trainer(options, quiet_log(warnings));
    return trainer.fit(tiny_loader("train"), {tiny_loader("val")}).steps;
  };
  CHECK(fit(nullptr) == 10);
  options.callbacks = {stopper("val/loss")};
  options.loop.num_epochs = 6;
  std::vector<std::string> warnings;
  CHECK(fit(&warnings) == 30);
  CHECK(tells({{}, warnings}, "val/loss, of which higher values are better"));
}

TEST_SUITE_END();
