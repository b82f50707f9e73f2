// `rondo checkpoint ACTION`: work on checkpoint files, outside of any run.

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <map>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_tools.h"
#include "cli/commands.h"
#include "cli/print_entries.h"
#include "core/error.h"
#include "core/file_system.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

int info(const CommandLine& line) {
  for (const fs::path path : line.files) {
    const StateDict state = read_checkpoint(path);
    std::cout << fmt::format("file = {}\nbytes = {}\ntensor_bytes = {}\n",
                             path.string(),
                             fs::file_size(path),
                             tensor_bytes(state))
              << (path.extension() == ".safetensors" ? "" : read_manifest(path));
    print_entries(state);
  }
  return 0;
}

int diff(const CommandLine& line) {
  const auto lines =
      state_differences(read_checkpoint(line.files.at(0)), read_checkpoint(line.files.at(1)));
  for (const std::string& text : lines) {
    std::cout << text << "\n";
  }
  std::cout << (lines.empty() ? "equal, bit for bit\n" : "");
  return lines.empty() ? 0 : 1;
}

int verify(const CommandLine& line) {
  int code = 0;
  for (const std::string& path : line.files) {
    try {
      read_checkpoint(path);
      std::cout << path << ": whole\n";
    } catch (const CheckpointError&) {
      std::cout << path << ": BROKEN: " << describe(std::current_exception()) << "\n";
      code = 1;
    }
  }
  return code;
}

int convert(const CommandLine& line) {
  write_any(*real_file_system(), line.files.at(1), read_checkpoint(line.files.at(0)));
  return 0;
}

int copy(const CommandLine& line) {
  copy_checkpoint(*real_file_system(), line.files.at(0), line.files.at(1));
  return 0;
}

int remove(const CommandLine& line) {
  for (const std::string& path : line.files) {
    delete_checkpoint(real_file_system(), path);
  }
  return 0;
}

int average(const CommandLine& line) {
  const std::vector<fs::path> paths(line.files.begin(), line.files.end());
  write_any(*real_file_system(), line.output, average_models(paths));
  return 0;
}

int merge(const CommandLine& line) {
  const StateDict base = line.files.size() > 1 ? read_checkpoint(line.files[1]) : StateDict();
  write_any(
      *real_file_system(), line.output, merge_adapters(read_checkpoint(line.files.at(0)), base));
  return 0;
}

}  // namespace

int run_checkpoint(const CommandLine& line, Registries&) {
  const std::map<std::string, int (*)(const CommandLine&)> actions = {{"info", info},
                                                                      {"diff", diff},
                                                                      {"verify", verify},
                                                                      {"convert", convert},
                                                                      {"copy", copy},
                                                                      {"delete", remove},
                                                                      {"average", average},
                                                                      {"merge", merge}};
  return actions.at(line.action)(line);
}

}  // namespace rondo
