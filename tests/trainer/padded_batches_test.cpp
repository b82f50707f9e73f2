#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "core/random.h"
#include "core/state_dict.h"
#include "data/data_loader.h"
#include "models/builtin/gpt.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int64_t kVocabulary = 7;

/// Sequences of 1 to 24 tokens.
struct Sequences final : Dataset {
  int64_t size() const override { return 60; }

  Sample get(int64_t index) const override {
    KeyedRandom random(5, static_cast<uint64_t>(index));
    const auto length = 1 + static_cast<int64_t>(random.below(24));
    const at::Tensor tokens = at::empty({length}, at::kLong);
    for (int64_t i = 0; i < length; ++i) {
      tokens.data_ptr<int64_t>()[i] = static_cast<int64_t>(random.below(kVocabulary));
    }
    return {{"tokens", tokens}, {"targets", tokens.roll(-1)}};
  }
};

}  // namespace

TEST_SUITE_BEGIN("trainer/padded_batches");

TEST_CASE(
    "sequences of many lengths take a recorded step for each length that they are padded to") {
  std::vector<StateDict> states;
  std::vector<double> perplexities;
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    Gpt::Options gpt;
    gpt.layers = 1;
    gpt.heads = 1;
    gpt.width = 8;
    gpt.context = 24;
    gpt.vocabulary = kVocabulary;
    TrainerOptions options = tiny_options(dir / "run");
    options.model = use<Gpt>(gpt);
    options.backend.mode = mode;
    options.loop.num_epochs = 6;
    LoaderOptions batches;
    batches.batch_size = 3;
    batches.shuffle = true;
    batches.pad_to = {12, 18, 24};
    batches.pad = {"tokens", "targets"};
    Trainer trainer(options, quiet_log());
    trainer.fit(DataLoader("train", use<Sequences>(), batches));
    states.push_back(bits_of(trainer));
    CHECK(trainer.state().timestamp.sample == 6 * 60);
    CHECK(trainer.state().backend->reports().size() <= batches.pad_to.size());
    perplexities.push_back(
        *trainer.validate(DataLoader("val", use<Sequences>(), batches)).number("val/perplexity"));
  }
  CHECK(first_difference(states[0], states[1]) == "");
  CHECK(perplexities[0] == perplexities[1]);
  CHECK(perplexities[0] < kVocabulary + 1.0);
}

TEST_SUITE_END();
