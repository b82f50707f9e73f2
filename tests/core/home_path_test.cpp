#include "core/home_path.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/options.h"

using namespace rondo;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("core/home_path");

namespace {

/// Another home directory, or none, while it lives.
class WithHome {
 public:
  explicit WithHome(const char* home) {
    if (const char* before = std::getenv("HOME")) {
      before_ = before;
    }
    set(home);
  }

  WithHome(const WithHome&) = delete;
  WithHome& operator=(const WithHome&) = delete;

  ~WithHome() { set(before_ ? before_->c_str() : nullptr); }

 private:
  static void set(const char* home) {
    if (home != nullptr) {
      ::setenv("HOME", home, 1);
    } else {
      ::unsetenv("HOME");
    }
  }

  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("a leading ~ is the home directory, as in a shell; every other path stays") {
  const WithHome home("/home/ada");
  CHECK(expand_home("~") == "/home/ada");
  CHECK(expand_home("~/runs/a") == "/home/ada/runs/a");
  for (const char* path : {"", "runs/~", "./~/a", "~ada/runs", "/~", "a~"}) {
    CHECK(expand_home(path) == path);
  }
}

TEST_CASE("without a home directory a path stays as it is") {
  const WithHome home(nullptr);
  CHECK(expand_home("~/runs") == "~/runs");
}

TEST_CASE("every option that is a path knows ~, alone and in a list") {
  const WithHome home("/home/ada");
  std::vector<Fault> faults;
  FaultSink sink("trainer", faults);
  CHECK(OptionType<fs::path>::read(ConfigValue("~/run"), sink) == fs::path("/home/ada/run"));
  CHECK(OptionType<std::optional<fs::path>>::read(ConfigValue("~"), sink) == fs::path("/home/ada"));
  const ConfigValue list(ConfigArray{ConfigValue("~/a"), ConfigValue("b")});
  CHECK(OptionType<std::vector<fs::path>>::read(list, sink) ==
        std::vector<fs::path>{"/home/ada/a", "b"});
  CHECK(faults.empty());
  CHECK_FALSE(OptionType<fs::path>::read(ConfigValue(true), sink));
  CHECK(faults.size() == 1);
}

TEST_SUITE_END();
