// A callback by which one of the ranks of a run fails.

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "callbacks/callback.h"
#include "plugin.h"
#include "trainer/state.h"
#include "trainer/trainer.h"

namespace {

using rondo::Batch;
using rondo::DataLoader;
using rondo::Loaders;
using rondo::Loop;
using rondo::Model;
using rondo::StateDict;
using rondo::Trainer;

class FailingRank final : public rondo::Callback {
 public:
  struct Options {
    std::string rank = "1";
    std::string where = "replay";
    std::string how = "kill";
  };

  explicit FailingRank(const Options& options) : options_(options) {}

  void on_fit_start(Trainer&, const DataLoader&, const Loaders&, Loop&) override { reach("start"); }

  // Of a traced step, only while it is recorded.
  void on_before_forward(Trainer&, Model&, const Batch&, Batch&) override { reach("capture"); }

  void on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) override {
    if (trainer.state().global_step() == 10) {
      reach("replay");
    }
  }

  void on_save_checkpoint(Trainer&, StateDict&) override { reach("save"); }

  void on_validate_batch_start(Trainer&, Model&, const Batch&, int64_t) override {
    reach("validation");
  }

 private:
  void reach(const std::string& where) const {
    if (where != options_.where || options_.rank != std::getenv("RANK")) {
      return;
    }
    if (options_.how == "throw") {
      throw std::runtime_error("this rank fails");
    }
    ::raise(options_.how == "kill" ? SIGKILL : SIGSTOP);
  }

  Options options_;
};

}  // namespace

RONDO_PLUGIN(registry) {
  using Options = FailingRank::Options;
  registry.callbacks.add<FailingRank>("FailingRank", "Fails in one of the ranks.")
      .key("rank", &Options::rank, "its number")
      .key("where", &Options::where, "part of the run")
      .key("how", &Options::how, "throw, kill or freeze");
}
