#include "callbacks/builtin/notification.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "callbacks/builtin/notify_command.h"
#include "core/error.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Keeps the messages, or cannot send them.
struct Keeper final : Notification {
  struct Options {
    std::vector<std::string>* messages = nullptr;
  };

  explicit Keeper(const Options& o) : options(o) {}

  void send(Trainer&, const std::string& text) override {
    if (options.messages == nullptr) {
      throw std::runtime_error("planted");
    }
    options.messages->push_back(text);
  }

  Options options;
};

struct Failing final : Callback {
  struct Options {
    bool in_validation = false;
  };

  explicit Failing(const Options& o) : options(o) {}

  void on_train_batch_end(Trainer&, Model&, const Outputs&, const Batch&, int64_t) override {
    fail_when(!options.in_validation);
  }

  void on_validate_batch_end(Trainer&, Model&, const Outputs&, const Batch&, int64_t) override {
    fail_when(options.in_validation);
  }

  static void fail_when(bool now) {
    if (now) {
      throw std::runtime_error("the cause");
    }
  }

  Options options;
};

TrainerOptions notified_options(const TempDir& dir, std::vector<std::string>* messages) {
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 2;
  options.callbacks = {use<Keeper>({messages})};
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/notification");

TEST_CASE("T130: a fit that is done is told once") {
  const TempDir dir;
  std::vector<std::string> messages;
  Trainer trainer(notified_options(dir, &messages), quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val")});
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find("update 2") != std::string::npos);
  CHECK(messages[0].find(trainer.state().artifact_dir.string()) != std::string::npos);
  CHECK(messages[0].find("host: ") != std::string::npos);
  CHECK(messages[0].find("user: ") != std::string::npos);
}

TEST_CASE("T130: training or a validation that fails is told once, with its cause") {
  for (const bool in_validation : {false, true}) {
    CAPTURE(in_validation);
    const TempDir dir;
    std::vector<std::string> messages;
    TrainerOptions options = notified_options(dir, &messages);
    options.callbacks.push_back(use<Failing>({in_validation}));
    Trainer trainer(options, quiet_log());
    CHECK_THROWS_AS(trainer.fit(tiny_loader("train"), {tiny_loader("val")}), HookError);
    REQUIRE(messages.size() == 1);
    CHECK(messages[0].find("the cause") != std::string::npos);
  }
}

TEST_CASE("T130: a message that cannot be sent is a warning") {
  const TempDir dir;
  std::vector<std::string> warnings;
  Trainer trainer(notified_options(dir, nullptr), quiet_log(&warnings));
  CHECK(trainer.fit(tiny_loader("train")).steps == 2);
  const auto tells = [](const std::string& line) {
    return line.find("planted") != std::string::npos;
  };
  CHECK(std::count_if(warnings.begin(), warnings.end(), tells) == 1);
}

TEST_CASE("T130: a command gets the message as its input; one that fails is a warning") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 2;
  const std::filesystem::path file = dir / "told.txt";
  options.callbacks = {use<NotifyCommand>({"cat > '" + file.string() + "'"}),
                       use<NotifyCommand>({"exit 3"})};
  std::vector<std::string> warnings;
  Trainer trainer(options, quiet_log(&warnings));
  trainer.fit(tiny_loader("train"));
  std::ifstream told(file);
  const std::string text{std::istreambuf_iterator<char>(told), {}};
  CHECK(text.find("update 2") != std::string::npos);
  const auto tells = [](const std::string& line) {
    return line.find("exit 3") != std::string::npos && line.find("code 3") != std::string::npos;
  };
  CHECK(std::count_if(warnings.begin(), warnings.end(), tells) == 1);
  CHECK_THROWS_AS(NotifyCommand({}), UsageError);
}

TEST_SUITE_END();
