// A run whose checkpoints go over HTTP to a server that checks signatures.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "callbacks/core/checkpoint_callback.h"
#include "core/error.h"
#include "support/object_server.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("remote/run_over_s3");

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

TrainerOptions options_for(const fs::path& dir,
                           const ObjectServer& server,
                           const std::string& bucket = "bucket") {
  TrainerOptions options = tiny_options(dir);
  options.loop.max_steps = 6;
  options.loop.eval_frequency = 0;
  options.checkpoint.steps = 2;
  options.checkpoint.remote = "s3://" + bucket + "/runs/one";
  options.config_text = "# a run";
  CheckpointCallback::Options slot;
  slot.open_remote = [&server](const std::string& address, RemoteSettings settings) {
    RemoteSettings own = server.settings();
    own.retry.retries = settings.retry.retries;
    own.retry.gives_up = settings.retry.gives_up;
    own.part_size = 1000;
    return open_remote_store(address, std::move(own));
  };
  options.slots["checkpoint"] = use<CheckpointCallback>(slot);
  return options;
}

int64_t count_with(const std::string& part, const std::vector<std::string>& lines) {
  return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(part) != std::string::npos;
  });
}

/// Nothing under a folder, and none of the lines, holds a text.
void check_nowhere(const std::string& secret,
                   const fs::path& folder,
                   const std::vector<std::string>& lines) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(in)), {});
      CAPTURE(entry.path().string());
      CHECK(bytes.find(secret) == std::string::npos);
    }
  }
  for (const std::string& line : lines) {
    CHECK(line.find(secret) == std::string::npos);
  }
}

}  // namespace

TEST_CASE("a run survives a bad network, and goes on from the store") {
  const TempDir dir;
  ObjectServer server;
  for (const ServerFault::Kind kind :
       {ServerFault::DropBefore, ServerFault::DropAfter, ServerFault::Error500}) {
    server.add_fault({kind, "PUT", 1});
    server.add_fault({kind, "POST", 1});
  }
  std::vector<std::string> lines;
  TrainerOptions first = options_for(dir / "first", server);
  first.loop.max_steps = 4;
  CHECK(Trainer(first, quiet_log(&lines)).fit(tiny_loader("train")).saves.not_uploaded == 0);
  CHECK(count_with("upload", lines) == 0);
  CHECK(server.objects().count("runs/one/checkpoint_4.pt") == 1);

  server.add_fault({ServerFault::DropInAnswer, "GET", 2});
  const FitResult result =
      Trainer(options_for(dir / "second", server), quiet_log(&lines)).fit(tiny_loader("train"));
  CHECK(result.steps_now == 2);
  check_nowhere(server.environment().at("AWS_SECRET_ACCESS_KEY"), dir.path(), lines);
  check_nowhere(server.environment().at("AWS_SESSION_TOKEN"), dir.path(), lines);
}

TEST_CASE("a wrong bucket ends a run before its first step") {
  const TempDir dir;
  ObjectServer server;
  Trainer trainer(options_for(dir / "run", server, "nobody"), quiet_log());
  try {
    trainer.fit(tiny_loader("train"));
    FAIL("trained");
  } catch (const Error&) {
    CHECK(describe(std::current_exception()).find("NoSuchBucket") != std::string::npos);
  }
  CHECK(trainer.state().global_step() == 0);
}

TEST_CASE("credentials that expire in the run are told, and cost no checkpoint here") {
  const TempDir dir;
  ObjectServer server;
  std::vector<std::string> lines;
  Trainer trainer(options_for(dir / "run", server), quiet_log(&lines));
  server.add_fault({ServerFault::ExpiredToken, "POST", 1000});
  const FitResult result = trainer.fit(tiny_loader("train"));
  CHECK(result.saves.not_uploaded == 3);
  CHECK(server.open_uploads() == 0);
  CHECK(count_with("renew the credentials", lines) == 3);
  CHECK(fs::exists(dir / "run/checkpoint_6.pt"));
}

TEST_SUITE_END();
