#include "trainer/registries.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>

#include "callbacks/callback.h"
#include "core/error.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Throws what is no std::exception, in a hook and when the Trainer goes.
struct Odd final : Callback {
  void on_fit_start(Trainer&, const DataLoader&, const Loaders&, Loop&) override { throw 42; }

  void finalize() override { throw 43; }
};

}  // namespace

TEST_SUITE_BEGIN("trainer/registries");

TEST_CASE("a plugin that throws, whatever it is, is named") {
  Registries registries;
  try {
    load_plugin(RONDO_THROWING_PLUGIN, registries);
    FAIL("nothing was thrown");
  } catch (const Error&) {
    const std::string text = describe(std::current_exception());
    CHECK(text.find(std::filesystem::path(RONDO_THROWING_PLUGIN).filename().string()) !=
          std::string::npos);
    CHECK(text.find("std::exception") != std::string::npos);
  }
}

TEST_CASE("a callback that throws what is no std::exception is named, and the program goes on") {
  const TempDir dir;
  std::vector<std::string> lines;
  {
    TrainerOptions options = tiny_options(dir / "run");
    options.callbacks = {use<Odd>()};
    Trainer trainer(options, quiet_log(&lines));
    try {
      trainer.fit(tiny_loader("train"));
      FAIL("nothing was thrown");
    } catch (const HookError&) {
      const std::string text = describe(std::current_exception());
      CHECK(text.find("Odd.on_fit_start") != std::string::npos);
      CHECK(text.find("std::exception") != std::string::npos);
    }
  }
  const auto is_of_odd = [](const std::string& line) {
    return line.find("Odd.finalize") != std::string::npos;
  };
  CHECK(std::count_if(lines.begin(), lines.end(), is_of_odd) == 1);
}

TEST_SUITE_END();
