// The examples of docs/schedules.md, one for every scheduler, in runs.

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "configs/toml_file.h"
#include "docs/pages.h"
#include "loops/fit_run.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/run_config.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int64_t kUpdates = 12;

const Registries& registries() {
  static const auto made = [] {
    auto all = std::make_unique<Registries>();
    register_builtins(*all);
    return all;
  }();
  return *made;
}

/// The schedulers of the page's examples.
std::vector<Factory<Scheduler>> examples() {
  std::vector<Factory<Scheduler>> found;
  for (const Block& block : blocks_of("docs/schedules.md")) {
    if (block.language != "toml") {
      continue;
    }
    const ConfigValue root = parse_toml(block.text, block.page);
    const auto& trainer = *root.get_if<ConfigTable>()->find("trainer")->get_if<ConfigTable>();
    const ConfigValue& list = *trainer.find("init")->get_if<ConfigTable>()->find("schedulers");
    std::vector<Fault> faults;
    FaultSink sink("schedulers", faults);
    found.push_back(registries().schedulers.read_single(list.get_if<ConfigArray>()->front(), sink));
    INFO(block.text);
    REQUIRE(faults.empty());
  }
  return found;
}

/// What a run of 12 updates, 5 an epoch, leaves.
/// \param stops_at  after so many updates it is left, and begun again with the newest checkpoint
StateDict bits_after(const Factory<Scheduler>& scheduler, const char* mode, int64_t stops_at) {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir.path());
  options.schedulers = {scheduler};
  options.backend.mode = mode;
  options.loop.max_steps = kUpdates;
  options.loop.eval_frequency = 1;
  options.checkpoint.steps = 4;
  const DataLoader train = tiny_loader("train");
  const Loaders val = {tiny_loader("val", 6)};
  if (stops_at < kUpdates) {
    Trainer trainer(options, quiet_log());
    FitRun run(trainer, train, val, {});
    while (trainer.state().global_step() < stops_at && run.advance()) {
    }
  }
  Trainer trainer(options, quiet_log());
  trainer.fit(train, val);
  return bits_of(trainer);
}

}  // namespace

TEST_SUITE_BEGIN("docs/schedules");

TEST_CASE("the page has an example of every scheduler") {
  std::set<std::string> named;
  for (const Factory<Scheduler>& example : examples()) {
    named.insert(example.name());
  }
  for (const auto& entry : registries().schedulers.entries()) {
    CAPTURE(entry.name);
    CHECK(named.count(entry.name) == 1);
    CHECK(read_page("docs/schedules.md").find("| `" + entry.name + "` |") != std::string::npos);
  }
  CHECK(named.size() == registries().schedulers.entries().size());
}

TEST_CASE("every scheduler gives the same bytes traced as eager, and moves its number") {
  for (const Factory<Scheduler>& example : examples()) {
    CAPTURE(example.name());
    const StateDict eager = bits_after(example, "eager", kUpdates);
    CHECK(first_difference(eager, bits_after(example, "traced", kUpdates)) == "");
    const auto scheduler = example.make();
    if (scheduler->followed() == nullptr && !scheduler->target().relative) {
      scheduler->resolve({Time(kUpdates), 5});
      const StateValue& group = eager.at("optimizer/groups").as_list().front();
      CHECK(group.as_dict().at("lr").as_double() == scheduler->at(kUpdates));
      CHECK((example.name() == "ConstantLR" || scheduler->at(0) != scheduler->at(3) ||
             scheduler->at(3) != scheduler->at(8)));
    }
  }
}

TEST_CASE("every scheduler continues after a resume as if nothing had happened") {
  for (const Factory<Scheduler>& example : examples()) {
    CAPTURE(example.name());
    const StateDict whole = bits_after(example, "eager", kUpdates);
    for (const int64_t stops_at : {5, 8}) {
      CAPTURE(stops_at);
      CHECK(first_difference(whole, bits_after(example, "eager", stops_at)) == "");
    }
    CHECK(first_difference(whole, bits_after(example, "traced", 7)) == "");
  }
}

TEST_SUITE_END();
