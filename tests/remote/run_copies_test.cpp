// Checkpoints of runs in stores elsewhere.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "callbacks/builtin/keep_n_checkpoints.h"
#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/core/fetched_checkpoint.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "loops/validate_all.h"
#include "remote/remote_error.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("remote/run_copies");

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

/// A store that refuses uploads of some names, and the first "download NAME"; "version" has it know
/// no versions. It notes downloads.
class PickyStore final : public RemoteStore {
 public:
  PickyStore(std::unique_ptr<RemoteStore> store,
             std::shared_ptr<std::set<std::string>> refused,
             std::shared_ptr<std::vector<std::string>> downloads)
      : store_(std::move(store)), refused_(std::move(refused)), downloads_(std::move(downloads)) {}

  void upload(const fs::path& file, const std::string& name) override {
    if (refused_->count(name) > 0) {
      throw RemoteError("refused " + name, false);
    }
    store_->upload(file, name);
  }

  void put(const std::string& name, std::string_view bytes) override { store_->put(name, bytes); }

  std::optional<std::string> read(const std::string& name) override { return store_->read(name); }

  bool download(const std::string& name, const fs::path& file) override {
    if (refused_->erase("download " + name) > 0) {
      throw RemoteError("refused " + name, false);
    }
    const bool is_there = store_->download(name, file);
    if (is_there) {
      downloads_->push_back(name);
    }
    return is_there;
  }

  std::string version(const std::string& name) override {
    return refused_->count("version") > 0 ? "" : store_->version(name);
  }

  std::vector<std::string> list() override { return store_->list(); }

  void remove(const std::string& name) override { store_->remove(name); }

  void check_access() override { store_->check_access(); }

  std::string address_of(const std::string& name) const override {
    return store_->address_of(name);
  }

 private:
  std::unique_ptr<RemoteStore> store_;
  std::shared_ptr<std::set<std::string>> refused_;
  std::shared_ptr<std::vector<std::string>> downloads_;
};

/// Stops after so many batches of validations.
class StopAfter final : public Callback {
 public:
  struct Options {
    int* batches = nullptr;
    int last = 0;
  };

  explicit StopAfter(const Options& options) : options_(options) {}

  void on_validate_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override {
    if (++*options_.batches == options_.last) {
      trainer.request_stop("stopped by the test");
    }
  }

 private:
  Options options_;
};

/// Runs of 6 updates that save every second one, and a folder as their store.
struct CopiesSetup {
  std::string address() const { return "file://" + (dir / "store").string(); }

  TrainerOptions options(const char* run) const {
    TrainerOptions options = tiny_options(dir / run);
    options.loop.max_steps = 6;
    options.loop.eval_frequency = 0;
    options.checkpoint.steps = 2;
    options.checkpoint.remote = address();
    CheckpointCallback::Options slot;
    slot.open_remote = [refused = refused, downloads = downloads](const std::string& where,
                                                                  RemoteSettings settings) {
      settings.retry.wait = [](double) {};
      return std::make_unique<PickyStore>(
          open_remote_store(where, std::move(settings)), refused, downloads);
    };
    options.slots["checkpoint"] = use<CheckpointCallback>(slot);
    return options;
  }

  FitResult train(const TrainerOptions& options) {
    lines.clear();
    return Trainer(options, quiet_log(&lines)).fit(tiny_loader("train"));
  }

  /// Checkpoints in a folder.
  std::set<std::string> checkpoints_in(const char* folder) const {
    std::set<std::string> names;
    for (const std::string& name : real_file_system()->list(dir / folder)) {
      if (name.rfind("checkpoint_", 0) == 0 && name.find(".pt") != std::string::npos) {
        names.insert(name);
      }
    }
    return names;
  }

  bool was_warned(const std::string& part) const {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    });
  }

  TempDir dir;
  std::shared_ptr<std::set<std::string>> refused = std::make_shared<std::set<std::string>>();
  std::shared_ptr<std::vector<std::string>> downloads =
      std::make_shared<std::vector<std::string>>();
  std::vector<std::string> lines;
};

using Names = std::set<std::string>;
const Names kAll{"checkpoint_2.pt", "checkpoint_4.pt", "checkpoint_6.pt"};

}  // namespace

TEST_CASE("every checkpoint is there when a fit is over, with an index and a link") {
  for (const bool async : {false, true}) {
    CAPTURE(async);
    CopiesSetup setup;
    TrainerOptions options = setup.options("run");
    options.checkpoint.async = async;
    const FitResult result = setup.train(options);
    CHECK(result.saves.not_uploaded == 0);
    CHECK_FALSE(setup.was_warned("upload"));
    CHECK(setup.checkpoints_in("store") == kAll);
    CHECK(setup.checkpoints_in("run") == kAll);
    const auto files = real_file_system();
    CHECK(files->read(setup.dir / "store/checkpoint_6.pt") ==
          files->read(setup.dir / "run/checkpoint_6.pt"));
    CHECK(files->read(setup.dir / "store/latest.symlink") == "checkpoint_6.pt\n");
    CHECK(files->read(setup.dir / "store/checkpoints_index.toml").find("checkpoint_4.pt") !=
          std::string::npos);
  }
}

TEST_CASE("a run in an empty folder goes on from its store, with the same bits") {
  CopiesSetup setup;
  TrainerOptions straight = setup.options("straight");
  straight.checkpoint.remote = "";
  Trainer whole(straight, quiet_log());
  whole.fit(tiny_loader("train"));

  TrainerOptions first = setup.options("first");
  first.loop.max_steps = 4;
  setup.train(first);
  Trainer second(setup.options("second"), quiet_log());
  const FitResult result = second.fit(tiny_loader("train"));
  CHECK(result.steps_now == 2);
  CHECK(first_difference(bits_of(second), bits_of(whole)).empty());
  CHECK(setup.checkpoints_in("second") == Names{"checkpoint_4.pt", "checkpoint_6.pt"});
  CHECK(setup.checkpoints_in("store") == kAll);
}

TEST_CASE("what is deleted here is deleted there, or stays with remote_keep = all") {
  for (const char* const keep : {"same", "all"}) {
    CAPTURE(keep);
    CopiesSetup setup;
    TrainerOptions options = setup.options("run");
    options.checkpoint.remote_keep = keep;
    options.callbacks = {use<KeepNCheckpoints>({1})};
    setup.train(options);
    CHECK(setup.checkpoints_in("run") == Names{"checkpoint_6.pt"});
    CHECK(setup.checkpoints_in("store") ==
          (std::string(keep) == "all" ? kAll : Names{"checkpoint_6.pt"}));
  }
}

TEST_CASE("an upload that fails for good is a warning, and the next start does it") {
  CopiesSetup setup;
  setup.refused->insert("checkpoint_4.pt");
  TrainerOptions options = setup.options("run");
  options.callbacks = {use<KeepNCheckpoints>({1})};
  const FitResult result = setup.train(options);
  CHECK(result.steps == 6);
  CHECK(result.saves.not_uploaded == 1);
  CHECK(setup.was_warned("refused checkpoint_4.pt"));
  CHECK(setup.checkpoints_in("run") == Names{"checkpoint_4.pt", "checkpoint_6.pt"});
  CHECK(setup.checkpoints_in("store") == Names{"checkpoint_6.pt"});

  setup.refused->clear();
  options.callbacks.clear();  // it would delete the older one, once it is there
  const FitResult again = setup.train(options);
  CHECK(again.steps_now == 0);
  CHECK(again.saves.not_uploaded == 0);
  CHECK(setup.checkpoints_in("store").count("checkpoint_4.pt") == 1);
  CHECK(real_file_system()->read(setup.dir / "store/latest.symlink") == "checkpoint_6.pt\n");
}

TEST_CASE("the older checkpoint stays there while the newer one is not") {
  CopiesSetup setup;
  setup.refused->insert("checkpoint_6.pt");
  TrainerOptions options = setup.options("run");
  options.callbacks = {use<KeepNCheckpoints>({1})};
  setup.train(options);
  CHECK(setup.checkpoints_in("run") == Names{"checkpoint_6.pt"});
  CHECK(setup.checkpoints_in("store") == Names{"checkpoint_4.pt"});
}

TEST_CASE("uploads that take too long are given up at the end") {
  CopiesSetup setup;
  TrainerOptions options = setup.options("run");
  options.checkpoint.upload_timeout = 0;
  CheckpointCallback::Options slot;
  slot.open_remote = [](const std::string& where, RemoteSettings settings) {
    struct Stuck final : public RemoteStore {
      Stuck(std::unique_ptr<RemoteStore> to, RetryPolicy retry)
          : store(std::move(to)), policy(std::move(retry)) {}

      void upload(const fs::path&, const std::string&) override {
        while (!policy.is_over()) {
          std::this_thread::yield();
        }
        throw RemoteError("given up", false);
      }

      void put(const std::string& name, std::string_view bytes) override {
        store->put(name, bytes);
      }

      std::optional<std::string> read(const std::string& name) override {
        return store->read(name);
      }

      bool download(const std::string& name, const fs::path& file) override {
        return store->download(name, file);
      }

      std::vector<std::string> list() override { return store->list(); }

      void remove(const std::string& name) override { store->remove(name); }

      void check_access() override { store->check_access(); }

      std::string address_of(const std::string& name) const override {
        return store->address_of(name);
      }

      std::unique_ptr<RemoteStore> store;
      RetryPolicy policy;
    };

    const RetryPolicy retry = settings.retry;
    return std::make_unique<Stuck>(open_remote_store(where, std::move(settings)), retry);
  };
  options.slots["checkpoint"] = use<CheckpointCallback>(slot);
  const FitResult result = setup.train(options);
  CHECK(result.saves.not_uploaded == 3);
  CHECK(setup.was_warned("upload_timeout"));
  CHECK(setup.checkpoints_in("run") == kAll);
}

TEST_CASE("a store that cannot be written to is an error before the first step") {
  CopiesSetup setup;
  std::ofstream(setup.dir / "store") << "a file";
  Trainer trainer(setup.options("run"), quiet_log());
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train")), Error);
  CHECK(trainer.state().global_step() == 0);
  CHECK(setup.checkpoints_in("run").empty());
}

TEST_CASE("when the newest object does not come whole, the one before it is taken") {
  CopiesSetup setup;
  setup.train(setup.options("first"));
  fs::remove(setup.dir / "store/checkpoint_6.pt");
  const FitResult result = setup.train(setup.options("second"));
  CHECK(result.steps_now == 2);
  CHECK(setup.was_warned("checkpoint_6.pt is in the index there but no longer exists"));
}

TEST_CASE("an index there cannot name files outside of the run") {
  CopiesSetup setup;
  fs::create_directories(setup.dir / "store");
  std::ofstream(setup.dir / "store/checkpoints_index.toml")
      << "checkpoints = [\n  \"../../checkpoint_9.pt\",\n]\n";
  std::ofstream(setup.dir / "checkpoint_9.pt") << "x";
  CHECK_THROWS_AS(setup.train(setup.options("run")), Error);
}

TEST_CASE("addresses name checkpoints to load and to validate") {
  CopiesSetup setup;
  setup.train(setup.options("first"));
  TrainerOptions options = setup.options("second");
  options.checkpoint.remote = "";
  options.checkpoint.load.path = setup.address() + "/checkpoint_4.pt";
  const FitResult result = setup.train(options);
  CHECK(result.steps_now == 2);

  Trainer trainer(options, quiet_log());
  const ValidationTable table =
      trainer.validate_all({tiny_loader("val")}, {setup.address() + "/checkpoint_*.pt"});
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0].step == 2);
  CHECK(table.rows[2].step == 6);
  CHECK_THROWS_AS(trainer.validate_all({tiny_loader("val")}, {setup.address() + "/none_*.pt"}),
                  IoError);
  for (const std::string& name : real_file_system()->list(setup.dir / "second")) {
    CHECK(name.find("download") == std::string::npos);
  }
}

TEST_CASE("rows of objects are known again until an object is replaced or a link leads elsewhere") {
  CopiesSetup setup;
  setup.train(setup.options("first"));
  TrainerOptions options = setup.options("second");
  options.checkpoint.remote = "";
  options.config_text = "the config";
  const auto steps = [&] {
    setup.downloads->clear();
    Trainer trainer(options, quiet_log());
    const ValidationTable table = trainer.validate_all(
        {tiny_loader("val")}, {setup.address() + "/checkpoint_4.pt", setup.address() + "/latest"});
    std::multiset<int64_t> result;
    for (const ValidationRow& row : table.rows) {
      result.insert(row.step);
    }
    return result;
  };
  using Steps = std::multiset<int64_t>;
  CHECK(steps() == Steps{4, 6});
  CHECK(setup.downloads->size() == 2);
  CHECK(steps() == Steps{4, 6});
  CHECK(setup.downloads->empty());

  const fs::path store = setup.dir / "store";
  std::ofstream(store / "latest.symlink") << "checkpoint_2.pt";
  CHECK(steps() == Steps{2, 4});
  CHECK(*setup.downloads == std::vector<std::string>{"checkpoint_2.pt"});
  fs::remove(store / "checkpoint_4.pt");
  fs::copy_file(store / "checkpoint_6.pt", store / "checkpoint_4.pt");
  CHECK(steps() == Steps{2, 6});
  CHECK(*setup.downloads == std::vector<std::string>{"checkpoint_4.pt"});

  setup.refused->insert("version");  // a store that cannot tell objects apart
  steps();
  CHECK(setup.downloads->size() == 2);
  steps();
  CHECK(setup.downloads->size() == 2);
}

TEST_CASE("watching: an object whose download failed once is tried again") {
  CopiesSetup setup;
  setup.train(setup.options("first"));
  TrainerOptions options = setup.options("second");
  options.checkpoint.remote = "";
  int batches = 0;
  options.callbacks = {use<StopAfter>({&batches, 15})};  // three checkpoints of five batches
  setup.refused->insert("download checkpoint_4.pt");
  setup.lines.clear();
  Trainer trainer(options, quiet_log(&setup.lines));
  ValidateAllOptions watch;
  watch.watch = true;
  watch.seconds_between_looks = 0.0;
  const ValidationTable table =
      trainer.validate_all({tiny_loader("val")}, {setup.address() + "/checkpoint_*.pt"}, watch);
  CHECK(batches == 15);
  CHECK(table.skipped.empty());
  CHECK(setup.was_warned("refused checkpoint_4.pt"));
}

TEST_CASE("a question mark of a web address begins its query and is no wildcard") {
  const OpenRemoteStore refuses = [](const std::string&,
                                     RemoteSettings) -> std::unique_ptr<RemoteStore> {
    throw UsageError("nothing is opened");
  };
  const std::string address = "https://example.org/models/a.pt?version=*";
  CHECK(matching_addresses(address, refuses) == std::vector<std::string>{address});
  CHECK_THROWS_AS(matching_addresses("https://example.org/models/*.pt?version=1", refuses),
                  UsageError);
  CHECK_THROWS_AS(matching_addresses("s3://bucket/checkpoint_?.pt", refuses), UsageError);
}

TEST_CASE("C63: links that are kept as text are followed, here and there") {
  CopiesSetup setup;
  setup.train(setup.options("run"));
  const auto step_of = [&](const std::string& name) {
    return read_named_checkpoint(name, setup.dir.path()).at("global_step").as_int();
  };
  CHECK(step_of(setup.address() + "/latest.symlink") == 6);
  CHECK(step_of(setup.address() + "/latest") == 6);
  std::ofstream(setup.dir / "run/newest.symlink") << "checkpoint_4.pt\n";
  CHECK(step_of((setup.dir / "run/newest.symlink").string()) == 4);
  CHECK(step_of((setup.dir / "run/newest").string()) == 4);
  std::ofstream(setup.dir / "run/round.symlink") << "round.symlink";
  CHECK_THROWS_AS(step_of((setup.dir / "run/round.symlink").string()), CheckpointError);
  CHECK_THROWS_AS(step_of(setup.address() + "/nothing.pt"), CheckpointError);
}

TEST_CASE("a checkpoint under a name of one's own is listed nowhere, here or there") {
  CopiesSetup setup;
  Trainer trainer(setup.options("run"), quiet_log());
  trainer.fit(tiny_loader("train"));
  const fs::path best = trainer.save_checkpoint("mine/best.pt");
  CHECK(best == setup.dir / "run/mine/best.pt");
  CHECK(read_checkpoint(best).at("global_step").as_int() == 6);
  CHECK_FALSE(trainer.slot<CheckpointCallback>().is_listed(best));
  const std::string there = setup.address() + "/elsewhere/best.pt";
  CHECK(trainer.save_checkpoint(there) == there);
  CHECK(read_checkpoint(setup.dir / "store/elsewhere/best.pt").contains("optimizer"));
}

TEST_CASE("C54, C55: save_weights_only and save_ignore_keys leave entries out") {
  CopiesSetup setup;
  TrainerOptions options = setup.options("run");
  options.checkpoint.remote = "";
  options.checkpoint.save_ignore_keys = {"optimizer", "model/*bias"};
  setup.train(options);
  const StateDict some = read_checkpoint(setup.dir / "run/checkpoint_6.pt");
  CHECK_FALSE(some.contains("optimizer"));
  CHECK(some.contains("global_step"));
  CHECK(some.at("model").as_dict().items().size() == 1);

  options = setup.options("weights");
  options.checkpoint.remote = "";
  options.checkpoint.save_weights_only = true;
  setup.train(options);
  const StateDict weights = read_checkpoint(setup.dir / "weights/checkpoint_6.pt");
  CHECK(weights.contains("model"));
  CHECK_FALSE(weights.contains("global_step"));
  try {
    setup.train(options);
    FAIL("went on from weights alone");
  } catch (const Error&) {
    CHECK(describe(std::current_exception()).find("save_weights_only") != std::string::npos);
  }
  Trainer trainer(options, quiet_log());
  CHECK_FALSE(trainer.validate(tiny_loader("val")).empty());
}

TEST_SUITE_END();
