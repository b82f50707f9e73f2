#include "callbacks/callback_map.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "callbacks/builtin/early_stopper.h"
#include "core/error.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("callbacks/callback_map");

TEST_CASE("callbacks are named after their labels, or after their classes with numbers") {
  CallbackNames names;
  CHECK(names.add("X", "") == "X");
  CHECK(names.add("X", "mine") == "mine");
  CHECK(names.add("X", "") == "X_2");
  CHECK(names.add("Y", "X_3") == "X_3");
  CHECK(names.add("X", "") == "X_4");
}

TEST_CASE("a label is letters, digits, _ and -, and nobody else's name") {
  CallbackNames names;
  names.add("loop", "");
  names.add("X", "a-B_9");
  for (const char* bad : {"a b", "a/b", "a.b", "ä", "a-B_9", "loop"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(names.add("X", bad), UsageError);
  }
}

TEST_CASE("the label given in code is the callback's and the logger's name in the Trainer") {
  const TempDir dir;
  std::vector<MemoryLogger::Entry> first;
  std::vector<MemoryLogger::Entry> second;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<EarlyStopper>({"loss"}).labelled("patience"),
                       use<EarlyStopper>({"loss"})};
  options.loggers = {use<MemoryLogger>({&first}).labelled("one"), use<MemoryLogger>({&second})};
  Trainer trainer(options, quiet_log());
  const CallbackMap& map = trainer.callbacks();
  CHECK(map.find("patience") != nullptr);
  CHECK(map.find("EarlyStopper") != nullptr);
  CHECK(map.find("EarlyStopper_2") == nullptr);
  trainer.log_metrics({{"a", 1.0}}, {std::nullopt, {"one"}});
  CHECK(first.size() == 1);
  CHECK(second.empty());
  options.loggers.push_back(use<MemoryLogger>({&second}).labelled("patience"));
  CHECK_THROWS_AS(Trainer(options, quiet_log()), UsageError);
}

TEST_SUITE_END();
