#include "checkpoint/partial_state.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "core/error.h"

using namespace rondo;

using Names = std::vector<std::string>;

TEST_SUITE_BEGIN("checkpoint/partial_state");

namespace {

StateDict names(const Names& all, int value) {
  StateDict state;
  for (const std::string& name : all) {
    state.set(name, value);
  }
  return state;
}

}  // namespace

TEST_CASE("C55: a glob means an entry, or all that is in a section; `*` also crosses a slash") {
  const EntryFilter all({}, {});
  CHECK(all("model/a.weight"));
  const EntryFilter section({}, {"rng", "state/model/*"});
  CHECK_FALSE(section("rng/cpu"));
  CHECK_FALSE(section("model/layer/x"));
  CHECK(section("optimizer/state/a"));
  const EntryFilter both({"model"}, {"model/*.bias"});
  CHECK(both("model/a.weight"));
  CHECK_FALSE(both("model/a.bias"));
  CHECK_FALSE(both("optimizer/state/a"));
}

TEST_CASE("what is not meant comes from the other state") {
  const StateDict saved{{"model", names({"a", "b", "only_saved"}, 1)}, {"step", 1}};
  const StateDict own{{"model", names({"a", "b", "only_own"}, 2)}, {"step", 2}, {"rng", 2}};
  const StateDict result = take_entries(saved, own, EntryFilter({"model"}, {"model/b"}));
  CHECK(result.at("model/a").as_int() == 1);
  CHECK(result.at("model/b").as_int() == 2);
  CHECK(result.at("model/only_saved").as_int() == 1);
  CHECK_FALSE(result.contains("model/only_own"));  // meant, and missing: the model's to refuse
  CHECK(result.at("step").as_int() == 2);
  CHECK(result.at("rng").as_int() == 2);
}

TEST_CASE("what is taken is told section by section, with the names that differ") {
  const StateDict saved{{"model", names({"a", "b", "only_saved"}, 1)}, {"step", 1}, {"old", 1}};
  const StateDict own{{"model", names({"a", "b", "only_own"}, 2)}, {"step", 2}, {"rng", 2}};
  CHECK(describe_choice(saved, own, EntryFilter({"model/?", "step"}, {"model/b"})) ==
        "model: 1 loaded, 2 initialised by the run (b, only_own), 1 of the file left out "
        "(only_saved); step: 1 loaded; not loaded: old, rng");
  const Names many{"a", "b", "c", "d", "e", "f", "g", "h"};
  CHECK(describe_choice(StateDict{{"model", names({"a"}, 1)}},
                        StateDict{{"model", names(many, 2)}},
                        EntryFilter({}, {})) ==
        "model: 1 loaded, 7 initialised by the run (b, c, d, e, f, g and 1 more)");
}

TEST_CASE("globs that match nothing are told") {
  const StateDict state{{"model", names({"a", "b"}, 1)}};
  CHECK(EntryFilter({"model", "x*"}, {"*/a", "y"}).unmatched(state) == Names{"x*", "y"});
}

TEST_CASE("parameters are renamed wherever they stand; each star keeps its text") {
  StateDict state{{"model", names({"old.0.weight", "old.1.weight", "other"}, 1)},
                  {"optimizer", StateDict{{"state", names({"old.0.weight"}, 1)}}}};
  const auto unmatched = rename_parameters(state, {{"old.*.*", "new.*.the_*"}, {"none", "x"}});
  CHECK(unmatched == Names{"none"});
  CHECK(state.at("model").as_dict().names() ==
        Names{"new.0.the_weight", "new.1.the_weight", "other"});
  CHECK(state.at("optimizer/state").as_dict().names() == Names{"new.0.the_weight"});
}

TEST_CASE("two entries that would get one name are refused") {
  StateDict state{{"model", names({"a.x", "b.x"}, 1)}};
  CHECK_THROWS_AS(rename_parameters(state, {{"*.x", "x"}}), CheckpointError);
}

TEST_SUITE_END();
