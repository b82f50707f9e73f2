// How long the board takes to open a folder of runs, and to answer for long curves.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include "board/board_answers.h"
#include "board/run_index.h"
#include "record/run_record.h"

namespace fs = std::filesystem;

using namespace rondo;

namespace {

/// Prints how long a part took, on the clock and of processors.
class Stopwatch {
 public:
  void print(const char* what, const std::string& result) const {
    const auto wall = std::chrono::steady_clock::now() - begin_;
    fmt::print("{:<42}{:8.0f} ms, {:8.0f} ms of processors: {}\n",
               what,
               std::chrono::duration<double, std::milli>(wall).count(),
               1e3 * static_cast<double>(std::clock() - cpu_) / CLOCKS_PER_SEC,
               result);
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::clock_t cpu_ = std::clock();
};

/// The record of a run that logged its loss in each update.
void write_run(const fs::path& directory, int64_t number, int64_t updates) {
  fs::create_directories(directory);
  std::ofstream record(directory / kRecordFile);
  record << fmt::format(
      "{{\"kind\":\"session\",\"step\":0,\"time\":1000,\"format\":1,\"run\":\"{}\",\"version\":"
      "\"0\"}}\n"
      "{{\"kind\":\"config\",\"step\":0,\"time\":1000,\"text\":\"lr = {}\"}}\n"
      "{{\"kind\":\"metric\",\"step\":1,\"time\":1000,\"text\":\"loss\",\"better\":\"lower\"}}\n",
      directory.filename().string(),
      1e-3 * static_cast<double>(number + 1));
  std::string lines;
  for (int64_t update = 1; update <= updates; ++update) {
    const auto x = static_cast<double>(update);
    const double loss = 1.0 / std::sqrt(x) + 0.01 * std::sin(x * 12.9898 + 0.1);
    lines += fmt::format(
        "{{\"kind\":\"numbers\",\"step\":{},\"time\":{:.3f},\"values\":{{\"loss\":{}}}}}\n",
        update,
        1000.0 + 0.01 * x,
        loss);
    if (lines.size() > (1U << 20)) {
      record << lines;
      lines.clear();
    }
  }
  record << lines
         << fmt::format("{{\"kind\":\"end\",\"step\":{},\"time\":2000,\"status\":\"done\"}}\n",
                        updates);
}

void write_runs(const fs::path& root, int64_t runs, int64_t updates) {
  for (int64_t i = 0; i < runs; ++i) {
    write_run(root / fmt::format("run-{:04}", i), i, updates);
  }
}

RunIndexOptions options_at(const fs::path& root) {
  RunIndexOptions options;
  options.root = root;
  options.memory_bytes = size_t{64} << 30;
  return options;
}

void time_opening(const fs::path& root, const char* what) {
  const Stopwatch watch;
  RunIndex index(options_at(root));
  const size_t bytes = BoardAnswers(index).answer("/api/runs", {}).body->size();
  watch.print(what, fmt::format("{} runs, {} KiB", index.summaries().size(), bytes >> 10));
}

void time_series(const fs::path& root) {
  RunIndex index(options_at(root));
  BoardAnswers answers(index);
  BoardParameters query = {{"metric", "loss"}};
  for (const auto& run : index.summaries()) {
    query.emplace("run", run->id);
  }
  const auto ask = [&](const char* what, const char* smooth) {
    query.erase("smooth");
    query.emplace("smooth", smooth);
    const Stopwatch watch;
    const size_t bytes = answers.answer("/api/series", query).body->size();
    watch.print(what, fmt::format("{} KiB", bytes >> 10));
  };
  ask("series, records read for the first time", "0.6");
  ask("series, another smoothing", "0.9");
  ask("series, asked for again", "0.9");
}

}  // namespace

int main(int argc, char** argv) {
  int64_t runs = 300;
  int64_t updates = 2000;
  int64_t long_runs = 100;
  int64_t long_updates = 1'000'000;
  CLI::App app("Times the board");
  app.add_option("--runs", runs, "Runs of a folder that is opened")->capture_default_str();
  app.add_option("--updates", updates, "Updates of each")->capture_default_str();
  app.add_option("--long-runs", long_runs, "Runs whose curves are asked for")
      ->capture_default_str();
  app.add_option("--long-updates", long_updates, "Points of each curve")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const fs::path root = fs::temp_directory_path() / fmt::format("rondo-board-{}", ::getpid());
  write_runs(root / "short", runs, updates);
  time_opening(root / "short", "opening a folder of short runs");
  write_runs(root / "long", long_runs, long_updates);
  time_opening(root / "long", "opening a folder of long runs");
  time_series(root / "long");
  std::error_code ignored;
  fs::remove_all(root, ignored);
  return 0;
}
