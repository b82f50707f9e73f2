#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "checkpoint/checkpoint_file.h"
#include "cli/commands.h"
#include "core/error.h"
#include "core/file_system.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

void print_entries(const StateDict& state, int indent) {
  for (const StateDict::Item& item : state.items()) {
    if (item.second.is_dict()) {
      std::cout << fmt::format("{:{}}{}/\n", "", indent, item.first);
      print_entries(item.second.as_dict(), indent + 2);
    } else {
      std::cout << fmt::format("{:{}}{}: {}\n", "", indent, item.first, item.second.kind());
    }
  }
}

/// `steps/` of a run directory, of its newest logs, or of an artifact directory itself.
fs::path steps_directory(const fs::path& target) {
  for (const fs::path& candidate : {target / "steps", target / "logs" / "latest" / "steps"}) {
    if (fs::is_directory(candidate)) {
      return candidate;
    }
  }
  throw IoError(
      fmt::format(
          "{} holds no recorded steps: expected steps/ or logs/latest/steps/ in it (an eager "
          "run records none)",
          target.string()),
      0);
}

}  // namespace

int run_inspect(const CommandLine& line, Registries&) {
  const fs::path target = line.target;
  if (fs::is_regular_file(target)) {
    print_entries(read_checkpoint(target), 0);
    return 0;
  }
  const fs::path steps = steps_directory(target);
  if (!line.graph.empty()) {
    std::cout << real_file_system()->read(steps / (line.graph + ".txt"));
    return 0;
  }
  for (const std::string& name : real_file_system()->list(steps)) {
    if (fs::path(name).extension() == ".json") {
      std::cout << fs::path(name).stem().string() << ": " << real_file_system()->read(steps / name);
    }
  }
  return 0;
}

}  // namespace rondo
