#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

#include "support/file_content.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;

using rondo::test::content;
using rondo::test::TempDir;

namespace {

/// A clone's scripts on a machine without the packages, whose only programs are a few real ones and
/// others that note how they were called.
class BareMachine {
 public:
  BareMachine() {
    const fs::path source = RONDO_SOURCE_DIR;
    fs::create_directories(dir_ / "clone/cmake");
    fs::create_directories(dir_ / "bin");
    for (const char* file : {"run.sh", "packages.txt", "cmake/install_packages.sh"}) {
      fs::copy_file(source / file, dir_ / "clone" / file);
    }
    for (const char* program : {"bash",
                                "cat",
                                "dirname",
                                "env",
                                "grep",
                                "mkdir",
                                "nproc",
                                "tail",
                                "tee",
                                "touch",
                                "tr"}) {
      const fs::path usual = fs::path("/usr/bin") / program;
      fs::create_symlink(fs::exists(usual) ? usual : fs::path("/bin") / program,
                         dir_ / "bin" / program);
    }
    for (const char* program : {"apt-get", "cmake", "ninja"}) {
      add(program, "echo " + std::string(program) + " \"$@\" >>'" + calls().string() + "'");
    }
    add("dpkg-query", "exit 1");
  }

  void add(const std::string& program, const std::string& script) {
    const fs::path file = dir_ / "bin" / program;
    std::ofstream(file) << "#!/bin/bash\n" << script << "\n";
    fs::permissions(file, fs::perms::owner_all);
  }

  /// `run.sh version` without a terminal. \return its exit code
  int run() {
    // The gate's own settings, which it starts tests with, are not for this machine.
    const std::string command = "RONDO_BUILD_DIR= RONDO_CMAKE_FLAGS= PATH='" +
                                (dir_ / "bin").string() + "' '" + (dir_ / "clone/run.sh").string() +
                                "' version </dev/null >'" + (dir_ / "out").string() + "' 2>'" +
                                (dir_ / "err").string() + "'";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string out() const { return content(dir_ / "out"); }

  std::string err() const { return content(dir_ / "err"); }

  /// What was called, a line each.
  std::string called() const { return content(calls()); }

  std::string log() const { return content(dir_ / "clone/build/run.log"); }

  bool has_build() const { return fs::exists(dir_ / "clone/build"); }

 private:
  fs::path calls() const { return dir_ / "calls"; }

  TempDir dir_;
};

}  // namespace

TEST_SUITE_BEGIN("cli/run_script");

TEST_CASE("run.sh without root and sudo prints the one command to run, and stops") {
  BareMachine machine;
  machine.add("id", "echo 1000");
  CHECK(machine.run() == 1);
  CHECK(machine.err().find("apt-get update && apt-get install -y") != std::string::npos);
  for (const char* package : {"libtorch-dev", "doctest-dev", "ninja-build"}) {
    CHECK(machine.err().find(package) != std::string::npos);
  }
  CHECK(machine.out().empty());
  CHECK(machine.called().empty());
  CHECK_FALSE(machine.has_build());
}

TEST_CASE("run.sh does the same where sudo would ask for a password and nobody is there") {
  BareMachine machine;
  machine.add("id", "echo 1000");
  machine.add("sudo", "exit 1");
  CHECK(machine.run() == 1);
  CHECK(machine.err().find("apt-get install -y") != std::string::npos);
  CHECK(machine.called().empty());
}

TEST_CASE("run.sh as root, or with sudo, says what it installs and installs it") {
  for (const char* user : {"0", "1000"}) {
    CAPTURE(user);
    BareMachine machine;
    machine.add("id", std::string("echo ") + user);
    machine.add("sudo", "[[ $1 == -n ]] && shift\n\"$@\"");
    machine.add("true", "exit 0");
    machine.run();  // there is nothing to build here
    CHECK(machine.err().find("Installing with apt: libtorch-dev") != std::string::npos);
    CHECK(machine.called().find("apt-get update") == 0);
    CHECK(machine.called().find("--no-install-recommends libtorch-dev") != std::string::npos);
    CHECK(machine.called().find("cmake -S") != std::string::npos);
  }
}

TEST_CASE("run.sh installs nothing when everything is there") {
  BareMachine machine;
  machine.add("id", "echo 1000");
  machine.add("dpkg-query", "echo installed");
  machine.run();
  CHECK(machine.called().find("apt-get") == std::string::npos);
  CHECK(machine.called().find("cmake -S") == 0);
}

TEST_CASE("run.sh shows one line for each stage, and keeps what the stage printed in a log") {
  BareMachine machine;
  machine.add("dpkg-query", "echo installed");
  machine.add("cmake", "echo 'a line of cmake'");
  machine.add("ninja",
              "[[ $3 == -n ]] && exit\necho '[1/2] a line of ninja'\necho 'said at the end'");
  machine.run();  // there is no program to run
  const std::string lines = machine.err();
  CHECK(lines.find("Configuring ... done in ") == 0);
  CHECK(lines.find("Building ... done in ") != std::string::npos);
  CHECK(lines.find("a line of") == std::string::npos);
  CHECK(machine.log() == "[1/2] a line of ninja\nsaid at the end\n");
  CHECK(machine.out().empty());
}

TEST_CASE("run.sh ends with the log of a stage that failed, and with the log's name") {
  BareMachine machine;
  machine.add("dpkg-query", "echo installed");
  machine.add("ninja", "[[ $3 == -n ]] && exit\necho 'loss.cpp:3: error: no such name'\nexit 1");
  CHECK(machine.run() == 1);
  CHECK(machine.err().find("Building ... failed") != std::string::npos);
  CHECK(machine.err().find("loss.cpp:3: error: no such name") != std::string::npos);
  CHECK(machine.err().find("clone/build/run.log") != std::string::npos);
  CHECK(machine.log() == "loss.cpp:3: error: no such name\n");
  CHECK(machine.out().empty());
}

TEST_SUITE_END();
