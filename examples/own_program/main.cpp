// rondo's whole command line with a callback of one's own: no plugin, no launcher.

#include <rondo/cli/cli_main.h>
#include <rondo/plugin.h>
#include <rondo/rondo.h>

/// Saves the run once in so many batches, whatever the cadence of checkpoints is.
struct SaveEvery final : rondo::Callback {
  struct Options {
    int64_t batches = 100;
  };

  explicit SaveEvery(const Options& options) : options_(options) {}

  void on_train_batch_end(rondo::Trainer& trainer,
                          rondo::Model&,
                          const rondo::Outputs&,
                          const rondo::Batch&,
                          int64_t /*batch_idx*/) override {
    // batch_idx begins again after each validation and each resume; the timestamp does not.
    if (trainer.state().timestamp.batch % options_.batches == 0) {
      trainer.request_save();
    }
  }

 private:
  Options options_;
};

int main(int argc, char** argv) {
  return rondo::cli_main(argc, argv, [](rondo::Registries& registry) {
    registry.callbacks.add<SaveEvery>("SaveEvery", "Saves once in so many batches.")
        .key("batches", &SaveEvery::Options::batches, rondo::at_least(1), "from save to save");
  });
}
