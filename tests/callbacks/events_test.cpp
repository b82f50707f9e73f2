#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "callbacks/algorithm.h"
#include "callbacks/core/algorithms_callback.h"
#include "core/error.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

using Names = std::vector<std::string>;

constexpr int64_t kEpochUpdates = 3;

struct ListenerOptions {
  Names* heard = nullptr;
  std::string name = "";  ///< in front of each event; "": none
};

void note(const ListenerOptions& options, Event event) {
  options.heard->push_back(options.name.empty() ? name_of(event)
                                                : options.name + ":" + name_of(event));
}

class Listener final : public EventCallback {
 public:
  using Options = ListenerOptions;

  explicit Listener(const Options& options) : options_(options) {}

  void run_event(Event event, Trainer&) override { note(options_, event); }

 private:
  Options options_;
};

class ListeningLogger final : public Logger, public EventListener {
 public:
  using Options = ListenerOptions;

  explicit ListeningLogger(const Options& options) : options_(options) {}

  void log(const Metrics&, int64_t) override {}

  void flush() override {}

  void run_event(Event event, Trainer&) override { note(options_, event); }

 private:
  Options options_;
};

class ListeningAlgorithm final : public Algorithm {
 public:
  using Options = ListenerOptions;

  explicit ListeningAlgorithm(const Options& options) : options_(options) {}

  bool match(Event, const State&) const override { return true; }

  void apply(Event event, Trainer&) override { note(options_, event); }

 private:
  Options options_;
};

/// Two epochs of three updates.
TrainerOptions options_in(const TempDir& dir, Names* heard) {
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.num_epochs = 2;
  options.loop.eval_frequency = "1ep";
  options.callbacks = {use<Listener>({heard})};
  return options;
}

DataLoader train_loader() {
  return tiny_loader("train", 2 * kEpochUpdates);
}

DataLoader val_loader() {
  return tiny_loader("val", 2);
}

void append(Names& all, const Names& more) {
  all.insert(all.end(), more.begin(), more.end());
}

const Names kMicroBatch = {"before_forward",
                           "after_forward",
                           "before_loss",
                           "after_loss",
                           "before_backward",
                           "after_backward"};

Names evaluation(const std::string& family) {
  const auto named = [&](const char* event) { return family + "_" + event; };
  return {named("start"),
          named("batch_start"),
          named("before_forward"),
          named("after_forward"),
          named("batch_end"),
          named("end")};
}

/// The reference's order of a fit with an evaluation after each epoch.
Names order_of_fit() {
  Names all = {"before_load", "after_load", "fit_start", "iteration_start"};
  for (int epoch = 0; epoch < 2; ++epoch) {
    append(all, {"epoch_start"});
    for (int64_t update = 0; update < kEpochUpdates; ++update) {
      append(all, {"before_dataloader", "after_dataloader", "batch_start", "before_train_batch"});
      append(all, kMicroBatch);
      append(all, {"after_train_batch", "batch_end", "batch_checkpoint"});
    }
    append(all, {"epoch_end", "eval_before_all"});
    append(all, evaluation("eval"));
    append(all, {"eval_after_all", "epoch_checkpoint"});
  }
  append(all, {"fit_end"});
  return all;
}

int64_t count(const Names& names, const std::string& name) {
  return std::count(names.begin(), names.end(), name);
}

Names from(const Names& names, const std::string& event) {
  Names found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found), [&](const std::string& name) {
    return name.substr(name.find(':') + 1) == event;
  });
  return found;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/events");

TEST_CASE("C24: a fit with evaluations, an eval and a predict emit the reference's events") {
  const TempDir dir;
  Names heard;
  Trainer trainer(options_in(dir, &heard), quiet_log());
  CHECK(heard == Names{"init"});
  heard.clear();
  trainer.fit(train_loader(), {val_loader()});
  CHECK(heard == order_of_fit());
  heard.clear();
  trainer.validate(val_loader());
  Names standalone = {"eval_standalone_start"};
  append(standalone, evaluation("eval"));
  append(standalone, {"eval_standalone_end"});
  CHECK(heard == standalone);  // C30
  heard.clear();
  trainer.predict(val_loader());
  CHECK(heard == evaluation("predict"));
}

TEST_CASE("C30: an evaluation of several loaders is one of its own") {
  const TempDir dir;
  Names heard;
  Trainer trainer(options_in(dir, &heard), quiet_log());
  heard.clear();
  trainer.validate_all({val_loader(), tiny_loader("other", 2)});
  CHECK(count(heard, "eval_standalone_start") == 1);
  CHECK(count(heard, "eval_standalone_end") == 1);
  CHECK(count(heard, "eval_start") == 2);
  CHECK(count(heard, "eval_before_all") == 0);
  CHECK(heard.back() == "eval_standalone_end");
}

TEST_CASE("a save follows an evaluation that is due within an epoch") {
  const TempDir dir;
  Names heard;
  TrainerOptions options = options_in(dir, &heard);
  options.loop.eval_frequency = 2;
  Trainer trainer(options, quiet_log());
  trainer.fit(train_loader(), {val_loader()});
  const auto after_all = std::find(heard.begin(), heard.end(), "eval_after_all");
  REQUIRE(after_all != heard.end());
  CHECK(*(after_all + 1) == "batch_checkpoint");
  CHECK(count(heard, "batch_checkpoint") == 6);
}

TEST_CASE("C25: events of micro-batches come for each one, those of the batch once") {
  const TempDir dir;
  Names heard;
  TrainerOptions options = options_in(dir, &heard);
  options.loop.num_epochs.reset();
  options.loop.max_steps = 1;
  options.loop.grad_accum_steps = 3;
  Trainer trainer(options, quiet_log());
  trainer.fit(train_loader());
  for (const std::string& name : kMicroBatch) {
    CHECK(count(heard, name) == 3);
  }
  for (const char* name : {"batch_start",
                           "before_train_batch",
                           "after_train_batch",
                           "batch_end",
                           "batch_checkpoint"}) {
    CHECK(count(heard, name) == 1);
  }
}

TEST_CASE("C26: loggers, callbacks, algorithms at init; algorithms, callbacks, loggers elsewhere") {
  const TempDir dir;
  Names heard;
  TrainerOptions options = options_in(dir, &heard);
  options.callbacks = {use<Listener>({&heard, "callback"})};
  options.loggers = {use<ListeningLogger>({&heard, "logger"})};
  options.algorithms = {use<ListeningAlgorithm>({&heard, "algorithm"})};
  Trainer trainer(options, quiet_log());
  CHECK(from(heard, "init") == Names{"logger:init", "callback:init", "algorithm:init"});
  heard.clear();
  trainer.fit(train_loader());
  CHECK(from(heard, "fit_start") ==
        Names{"algorithm:fit_start", "callback:fit_start", "logger:fit_start"});
  const Names losses = from(heard, "before_loss");
  REQUIRE(losses.size() > 3);
  CHECK(Names(losses.begin(), losses.begin() + 3) ==
        Names{"algorithm:before_loss", "callback:before_loss", "logger:before_loss"});
}

TEST_CASE("C27: algorithms A, B act in their order, and in reverse at events after something") {
  const TempDir dir;
  Names heard;
  TrainerOptions options = options_in(dir, &heard);
  options.callbacks = {};
  options.loop.num_epochs.reset();
  options.loop.max_steps = 1;
  options.algorithms = {use<ListeningAlgorithm>({&heard, "A"}),
                        use<ListeningAlgorithm>({&heard, "B"})};
  Trainer trainer(options, quiet_log());
  trainer.fit(train_loader(), {val_loader()});
  CHECK(from(heard, "before_loss") == Names{"A:before_loss", "B:before_loss"});
  CHECK(from(heard, "after_loss") == Names{"B:after_loss", "A:after_loss"});
  CHECK(from(heard, "batch_end") == Names{"A:batch_end", "B:batch_end"});
  CHECK(from(heard, "eval_after_forward") == Names{"A:eval_after_forward", "B:eval_after_forward"});
}

TEST_CASE("a pass puts algorithms into another order, and may leave some out") {
  const TempDir dir;
  Names heard;
  TrainerOptions options = options_in(dir, &heard);
  options.callbacks = {};
  options.loop.num_epochs.reset();
  options.loop.max_steps = 1;
  options.algorithms = {use<ListeningAlgorithm>({&heard, "A"}),
                        use<ListeningAlgorithm>({&heard, "B"})};
  options.algorithm_passes = {[](std::vector<Algorithm*>& algorithms, Event event) {
    if (event == Event::BatchEnd) {
      algorithms.pop_back();
    } else {
      std::reverse(algorithms.begin(), algorithms.end());
    }
  }};
  Trainer trainer(options, quiet_log());
  trainer.fit(train_loader());
  CHECK(from(heard, "before_loss") == Names{"B:before_loss", "A:before_loss"});
  CHECK(from(heard, "batch_end") == Names{"A:batch_end"});
}

TEST_CASE("C28: a run that stops in mid-epoch emits the end of the epochs that it finished") {
  const TempDir dir;
  Names heard;
  TrainerOptions options = options_in(dir, &heard);
  options.loop.num_epochs.reset();
  options.loop.max_steps = kEpochUpdates + 1;
  Trainer trainer(options, quiet_log());
  trainer.fit(train_loader(), {val_loader()});
  CHECK(count(heard, "epoch_start") == 2);
  CHECK(count(heard, "epoch_end") == 1);
}

TEST_CASE("C29: a stop exactly at the loader's end emits the end of the epoch") {
  const TempDir dir;
  Names heard;
  TrainerOptions options = options_in(dir, &heard);
  ProbeCallback::Options probe;
  probe.train_batch_end = [](Trainer& trainer) {
    if (trainer.state().timestamp.update == kEpochUpdates) {
      trainer.request_stop("enough");
    }
  };
  options.callbacks.push_back(use<ProbeCallback>(probe));
  Trainer trainer(options, quiet_log());
  trainer.fit(train_loader());
  CHECK(count(heard, "epoch_end") == 1);
  CHECK(count(heard, "epoch_checkpoint") == 1);
}

TEST_CASE("C60: a resume within an epoch starts it no second time, one at its end ends it once") {
  for (const int64_t first : {kEpochUpdates - 1, kEpochUpdates}) {
    CAPTURE(first);
    const TempDir dir;
    Names heard;
    TrainerOptions options = options_in(dir, &heard);
    options.loop.num_epochs.reset();
    options.loop.max_steps = first;
    Trainer(options, quiet_log()).fit(train_loader(), {val_loader()});
    options.loop.max_steps = kEpochUpdates + 1;
    Trainer(options, quiet_log()).fit(train_loader(), {val_loader()});
    CHECK(count(heard, "epoch_start") == 2);
    CHECK(count(heard, "epoch_end") == 1);
    CHECK(count(heard, "iteration_start") == 1);
    CHECK(count(heard, "batch_end") == kEpochUpdates + 1);
  }
}

TEST_CASE(
    "under traced, events of the host come every time, those of the step while it is captured") {
  const TempDir dir;
  Names heard;
  TrainerOptions options = options_in(dir, &heard);
  options.backend.mode = "traced";
  options.backend.verify = "off";
  Trainer trainer(options, quiet_log());
  heard.clear();
  trainer.fit(train_loader(), {val_loader()});
  const Names eager = order_of_fit();
  for (const Event event : all_events()) {
    const std::string name = name_of(event);
    CAPTURE(name);
    const int64_t all = count(eager, name);
    CHECK(count(heard, name) ==
          (site_of(event) == HookSite::Host ? all : std::min<int64_t>(all, 2)));
  }
}

TEST_CASE("C38: the active loader, its label and the batch are in the state, and given back") {
  struct Sees final : EventCallback {
    void run_event(Event event, Trainer& trainer) override {
      const State& state = trainer.state();
      if (event == Event::AfterDataloader || event == Event::BatchEnd) {
        CHECK(state.batch->size() == 2);
        CHECK(state.loader_label == "train");
        CHECK(state.loader->size() == kEpochUpdates);
      } else if (event == Event::BeforeLoss) {
        CHECK(state.outputs->find("logits") != nullptr);
        CHECK(state.outputs->find("loss") == nullptr);
        CHECK(state.batch->find("label") != nullptr);
      } else if (event == Event::AfterLoss || event == Event::BeforeBackward) {
        CHECK(state.outputs->find("loss") != nullptr);
      } else if (event == Event::EvalBatchEnd) {
        CHECK(state.loader_label == "val");
        CHECK(state.loader->size() == 1);
        CHECK(state.pass.sample == 2);
      } else if (event == Event::FitEnd) {
        CHECK(state.batch == nullptr);
        CHECK(state.loader == nullptr);
      }
    }
  };

  const TempDir dir;
  Names heard;
  TrainerOptions options = options_in(dir, &heard);
  options.callbacks = {use<Sees>()};
  Trainer trainer(options, quiet_log());
  trainer.fit(train_loader(), {val_loader()});
}

TEST_CASE("an error at an event names who failed where") {
  struct Fails final : Algorithm {
    bool match(Event event, const State&) const override { return event == Event::BeforeLoss; }

    void apply(Event, Trainer&) override { throw std::runtime_error("planted"); }
  };

  const TempDir dir;
  Names heard;
  TrainerOptions options = options_in(dir, &heard);
  options.algorithms = {use<Fails>()};
  Trainer trainer(options, quiet_log());
  try {
    trainer.fit(train_loader());
    FAIL("nothing was thrown");
  } catch (const std::exception&) {
    const std::string told = describe(std::current_exception());
    CHECK(told.find("Fails") != std::string::npos);
    CHECK(told.find("before_loss") != std::string::npos);
    CHECK(told.find("planted") != std::string::npos);
  }
}

TEST_SUITE_END();
