#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "callbacks/builtin/nan_policy.h"
#include "callbacks/builtin/normalize_inputs.h"
#include "core/error.h"
#include "distributed/single_process.h"
#include "forked_ranks.h"
#include "models/model.h"
#include "models/model_state.h"
#include "ranked_run.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Changes the options of a rank, and the samples of its data.
using Change = std::function<void(TrainerOptions&, int64_t& samples, int rank)>;

/// What each of two ranks ends with.
std::vector<std::string> errors_of(const Change& change) {
  std::vector<std::string> errors;
  for (const StateDict& result : on_processes(2, [&](const auto& communicator) {
         const TempDir dir;
         TrainerOptions options = options_of(ranked_runs()[0], 2, dir.path());
         options.communicator = communicator;
         options.loop.max_steps = 4;
         options.checkpoint.steps = 2;
         int64_t samples = 48;
         change(options, samples, communicator->rank());
         Trainer(options, quiet_log()).fit(ranked_images(samples, 16));
         return StateDict();
       })) {
    const StateValue* const error = result.find("error");
    errors.push_back(error != nullptr ? error->as_string() : "none");
  }
  return errors;
}

void check_both_tell(const std::vector<std::string>& errors, const std::string& what) {
  for (const std::string& error : errors) {
    CHECK_MESSAGE(error.find(what) != std::string::npos, error);
  }
}

}  // namespace

TEST_SUITE_BEGIN("distributed/rank_agreement");

TEST_CASE("ranks whose weights went apart end at the next save, and name the weight") {
  const auto errors = errors_of([](TrainerOptions& options, int64_t&, int rank) {
    ProbeCallback::Options probe;
    probe.train_batch_end = [rank](Trainer& trainer) {
      const at::NoGradGuard no_grad;
      named_parameters(trainer.state().model->module()).back().second.add_(rank);
    };
    options.callbacks = {use<ProbeCallback>(probe)};
  });
  check_both_tell(errors, "ranks differ in the weights after update 2: rank 1 has \"model.");
}

TEST_CASE("ranks that would train on other data, or with other numbers, end before they do") {
  check_both_tell(errors_of([](TrainerOptions&, int64_t& samples, int rank) { samples += rank; }),
                  "ranks differ in the training data: rank 1 has \"49 samples\"");
  check_both_tell(errors_of([](TrainerOptions& options, int64_t&, int rank) {
                    options.loop.grad_accum_steps = 1 + rank;
                  }),
                  "ranks differ in the batches of an update");
}

TEST_CASE("what would depend on the number of processes is refused") {
  check_both_tell(errors_of([](TrainerOptions& options, int64_t&, int) {
                    NanPolicy::Options policy;
                    policy.then = "roll_back";
                    options.callbacks = {use<NanPolicy>(policy)};
                  }),
                  "roll_back");
  check_both_tell(errors_of([](TrainerOptions& options, int64_t&, int) {
                    NormalizeInputs::Options normalize;
                    normalize.input = "image";
                    options.callbacks = {use<NormalizeInputs>(normalize)};
                  }),
                  "NormalizeInputs: each virtual rank");
}

TEST_SUITE_END();
