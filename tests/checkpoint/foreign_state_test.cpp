#include "checkpoint/foreign_state.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("checkpoint/foreign_state");

namespace {

using Names = std::vector<std::string>;

StateDict weights(const Names& names) {
  StateDict dict;
  for (const std::string& name : names) {
    dict.set(name, torch::ones({1}));
  }
  return dict;
}

const Names kOwn = {"0.weight", "0.bias"};

/// What torch.optim saves.
StateDict optimizer_state() {
  return {{"state", StateDict{{"0", weights({"exp_avg", "exp_avg_sq"})}}},
          {"param_groups", StateList{StateDict{{"lr", 0.1}}}}};
}

std::string unwrap_error(StateDict state, const std::string& key = "") {
  try {
    unwrap_weights(state, key);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "";
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("weights are found alone and in the usual dictionaries; nothing else is kept") {
  for (const char* key : {"state_dict", "model_state_dict", "model", "module", "net", "weights"}) {
    CAPTURE(key);
    StateDict state{{"epoch", 5},
                    {"global_step", 7},
                    {key, weights(kOwn)},
                    {"optimizer_state_dict", optimizer_state()},
                    {"ema", weights(kOwn)}};
    const ForeignWeights found = unwrap_weights(state, "");
    CHECK(found.key == key);
    CHECK(found.unused == Names{"epoch", "global_step", "optimizer_state_dict", "ema"});
    CHECK(state.names() == Names{"model"});
    CHECK(state.at("model").as_dict().names() == kOwn);
  }
  StateDict plain = weights(kOwn);
  CHECK(unwrap_weights(plain, "").key.empty());
  CHECK(plain.at("model").as_dict().names() == kOwn);
}

TEST_CASE("weights are found two levels deep, under an unusual name, and beside a number") {
  StateDict composer{{"state", StateDict{{"model", weights(kOwn)}, {"timestamp", 3}}}, {"rng", 1}};
  CHECK(unwrap_weights(composer, "").key == "state/model");
  StateDict unusual{{"encoder", weights(kOwn)}, {"optim", optimizer_state()}};
  CHECK(unwrap_weights(unusual, "").key == "encoder");
  StateDict beside = weights(kOwn);
  beside.set("epoch", 3);
  CHECK(unwrap_weights(beside, "").unused == Names{"epoch"});
  CHECK(beside.at("model").as_dict().names() == kOwn);
}

TEST_CASE("of several dictionaries the user names one, the error those there are") {
  const StateDict gan{{"generator", weights({"a"})}, {"discriminator", weights({"b"})}};
  const std::string error = unwrap_error(gan);
  CHECK(mentions(error, "generator"));
  CHECK(mentions(error, "discriminator"));
  CHECK(mentions(error, "checkpoint.load.key"));
  StateDict state = gan;
  unwrap_weights(state, "discriminator");
  CHECK(state.at("model").as_dict().names() == Names{"b"});
  CHECK(mentions(unwrap_error(gan, "critic"), "generator, discriminator"));
  StateDict nested{{"nets", gan}};
  unwrap_weights(nested, "nets/generator");
  CHECK(nested.at("model").as_dict().names() == Names{"a"});
}

TEST_CASE("a file without weights is refused with what it has") {
  const std::string error = unwrap_error({{"epoch", 3}, {"optimizer", optimizer_state()}});
  CHECK(mentions(error, "epoch, optimizer"));
}

TEST_CASE("only what a run saved is a run's state") {
  CHECK_FALSE(is_run_state({{"model", weights(kOwn)}, {"global_step", 3}}));
  CHECK_FALSE(is_run_state({{"__metadata__", "pt"}, {"model", weights(kOwn)}}));
  CHECK(is_run_state({{"__metadata__", StateDict{{"version", "1.0.0"}}}}));
}

TEST_CASE("names lose what wrappers put there, unless the model has it too") {
  const WrapperNames wrappers(kOwn);
  CHECK(wrappers.without("module.0.weight") == "0.weight");
  CHECK(wrappers.without("_orig_mod.module.0.weight") == "0.weight");
  CHECK(wrappers.without("encoder._orig_mod.0.weight") == "encoder.0.weight");
  CHECK(wrappers.without("0.module.weight") == "0.module.weight");
  CHECK(WrapperNames({"module.0.weight"}).without("module.0.weight") == "module.0.weight");
  CHECK(WrapperNames({"_orig_mod.0.w"}).without("_orig_mod.0.w") == "_orig_mod.0.w");
  StateDict twice = weights({"module.a", "a"});
  CHECK_THROWS_AS(wrappers.take_off(twice), CheckpointError);
}

TEST_CASE("a prefix that all of the model's names have is taken off, and the rest left out") {
  StateDict lightning = weights({"model.0.weight", "model.0.bias", "criterion.weight"});
  CHECK(take_off_prefix(lightning, kOwn, /*strict=*/true) == "model.");
  CHECK(lightning.names() == kOwn);
  StateDict deep = weights({"net.body.0.weight", "net.body.0.bias"});
  CHECK(take_off_prefix(deep, kOwn, true) == "net.body.");
  StateDict both = weights({"0.weight", "0.bias", "ema.0.weight", "ema.0.bias"});
  CHECK(take_off_prefix(both, kOwn, true).empty());
  CHECK(both.size() == 4);
}

TEST_CASE("a prefix of some names only counts when loading is not strict") {
  const StateDict part = weights({"model.0.weight", "model.head"});
  StateDict strict = part;
  CHECK(take_off_prefix(strict, kOwn, /*strict=*/true).empty());
  StateDict lenient = part;
  CHECK(take_off_prefix(lenient, kOwn, /*strict=*/false) == "model.");
  CHECK(lenient.names() == Names{"0.weight", "head"});
}

TEST_CASE("two prefixes that are as good are refused, naming both") {
  StateDict state = weights({"model.0.weight", "model.0.bias", "ema.0.weight", "ema.0.bias"});
  try {
    take_off_prefix(state, kOwn, true);
    FAIL("taken");
  } catch (const CheckpointError& error) {
    CHECK(mentions(error.what(), "\"ema.*\""));
    CHECK(mentions(error.what(), "model."));
  }
}

TEST_SUITE_END();
