// Times how fast data are read, and prints a JSON line for each round.
//
//   reading_bench table numbers.csv               # as CsvTable reads it, all of it
//   reading_bench table numbers.csv --cache=DIR   # first without the cache, then from it
//   reading_bench images FOLDER --workers=2       # random crops of 224, flipped, normalised
//
// bench/peers/reading.py makes such data and times pandas and torchvision in turns with it.

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "data/data_loader.h"
#include "data/images/image_folder.h"
#include "data/tables/csv_table.h"

namespace {

using namespace rondo;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void time_table(const std::string& file, const std::string& cache) {
  CsvTable::Options options;
  options.file = fs::absolute(file);
  options.label_column = "";
  options.cache = cache;
  const auto start = Clock::now();
  const CsvTable table(options);
  const double seconds = seconds_since(start);
  fmt::print(
      "{{\"peer\":\"rondo\",\"table\":\"{}\",\"rows\":{},\"seconds\":{:.3f},\"mb_per_s\":{:.1f}}}"
      "\n",
      fs::path(file).filename().string(),
      table.size(),
      seconds,
      static_cast<double>(fs::file_size(file)) / 1e6 / seconds);
}

void time_images(const std::string& folder, int64_t workers) {
  ImageFolder::Options options;
  options.root = fs::absolute(folder);
  options.crop = "random";
  options.flip = 0.5;
  options.mean = {0.485, 0.456, 0.406};
  options.std = {0.229, 0.224, 0.225};
  LoaderOptions batches;
  batches.batch_size = 64;
  batches.shuffle = true;
  batches.workers = workers;
  batches.prefetch = 2 * workers;
  const DataLoader loader(use<ImageFolder>(options), batches);
  loader.samples();  // lists the files
  const auto start = Clock::now();
  const auto stream = loader.stream({}, /*run_seed=*/1);
  int64_t images = 0;
  while (const auto batch = stream->next()) {
    images += batch->size();
  }
  const double seconds = seconds_since(start);
  fmt::print(
      "{{\"peer\":\"rondo\",\"workers\":{},\"images\":{},\"seconds\":{:.3f},"
      "\"images_per_s\":{:.1f}}}\n",
      workers,
      images,
      seconds,
      static_cast<double>(images) / seconds);
}

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  std::string cache;
  int64_t workers = 1;
  int rounds = 1;
  CLI::App app("Times how fast data are read.");
  app.require_subcommand(1);
  CLI::App& table = *app.add_subcommand("table", "a table of numbers, on one thread");
  table.add_option("file", path, "the table")->required();
  table.add_option("--cache", cache, "folder that keeps the table as it was read");
  CLI::App& images = *app.add_subcommand("images", "a folder of pictures by class");
  images.add_option("folder", path, "the folder")->required();
  images.add_option("--workers", workers, "threads of the loader")->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds, "how often")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  try {
    for (int i = 0; i < rounds; ++i) {
      table.parsed() ? time_table(path, cache) : time_images(path, workers);
    }
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
