// `rondo board`

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "board/board_server.h"
#include "board/export_page.h"
#include "board/run_index.h"
#include "cli/record_commands.h"
#include "core/error.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

void write_export(RunIndex& index, const fs::path& path) {
  const std::string page = exported_page(index);
  std::ofstream file(path, std::ios::binary);
  file << page;
  file.close();
  if (!file) {
    throw UsageError(fmt::format("{}: cannot be written", path.string()));
  }
  std::cerr << path.string() << ": written\n";
}

}  // namespace

int board(const CommandLine& line) {
  RunIndexOptions options;
  options.root = line.target.empty() ? "." : line.target;
  options.globs = line.run_globs;
  RunIndex index(options);
  if (index.summaries().empty()) {
    std::cerr << fmt::format("{}: no runs {}; a fit writes {} into its model_dir\n",
                             options.root.string(),
                             line.run_globs.empty() ? "yet" : "that fit --run",
                             kRecordFile);
  }
  if (!line.output.empty()) {
    write_export(index, line.output);
    return 0;
  }
  BoardServer server(index, {line.host, static_cast<int>(line.port)});
  std::cout << server.url() << std::endl;
  std::cerr << "Ctrl-C ends the board\n";
  server.serve();
  return 0;
}

}  // namespace rondo
