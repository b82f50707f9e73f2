// Times saving and loading a state, beside torch::save of the same tensors; prints JSON.
//
//   checkpoint_bench --megabytes=200 --rounds=5 --dir=/var/tmp
//
// pause: how long `BackgroundSave::begin` keeps the caller; the first one also allocates the copy.

#include <fmt/format.h>
#include <torch/torch.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/background_save.h"
#include "checkpoint/checkpoint_file.h"
#include "core/file_system.h"

namespace {

using namespace rondo;
using Clock = std::chrono::steady_clock;

/// What a model with Adam has: three tensors for each parameter, all touched.
StateDict make_state(int64_t megabytes) {
  constexpr int64_t kParameters = 64;
  const int64_t numel = megabytes * 1'000'000 / 4 / 3 / kParameters;
  StateDict model;
  StateDict first;
  StateDict second;
  for (int64_t i = 0; i < kParameters; ++i) {
    const std::string name = fmt::format("layer{}.weight", i);
    model.set(name, torch::randn({numel}));
    first.set(name, torch::randn({numel}));
    second.set(name, torch::rand({numel}));
  }
  return {{"model", std::move(model)}, {"first", std::move(first)}, {"second", std::move(second)}};
}

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double median_of(int rounds, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    seconds.push_back(seconds_of(work));
  }
  return median(seconds);
}

std::vector<at::Tensor> tensors_of(const StateDict& state) {
  std::vector<at::Tensor> tensors;
  for (const StateDict::Item& section : state.items()) {
    for (const StateDict::Item& item : section.second.as_dict().items()) {
      tensors.push_back(item.second.as_tensor());
    }
  }
  return tensors;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t megabytes = 200;
  int rounds = 5;
  std::string parent = std::filesystem::temp_directory_path().string();
  CLI::App app("Times checkpoints.");
  app.add_option("--megabytes", megabytes, "Size of the state");
  app.add_option("--rounds", rounds, "Each is timed this often; the median counts");
  app.add_option("--dir", parent, "Where files go");
  CLI11_PARSE(app, argc, argv);

  const std::filesystem::path dir =
      std::filesystem::path(parent) / fmt::format("rondo_bench_{}", ::getpid());
  std::filesystem::create_directories(dir);
  const StateDict state = make_state(megabytes);
  const std::filesystem::path path = dir / "x.pt";
  const auto files = real_file_system();

  const double sync = median_of(rounds, [&] { write_checkpoint(*files, path, state); });
  const double load = median_of(rounds, [&] { read_checkpoint(path); });
  const std::vector<at::Tensor> tensors = tensors_of(state);
  const double torch_save =
      median_of(rounds, [&] { torch::save(tensors, (dir / "torch.pt").string()); });

  BackgroundSave background(files);
  const auto begin = [&] { background.begin(path, state, [](const auto&) {}); };
  const double first_pause = seconds_of(begin);
  std::vector<double> pauses;
  std::vector<double> writes;
  for (int i = 0; i < rounds; ++i) {
    writes.push_back(background.wait()->seconds);
    pauses.push_back(seconds_of(begin));
  }
  background.wait();
  std::filesystem::remove_all(dir);
  fmt::print(
      "{{\"megabytes\": {}, \"threads\": {}, \"sync_s\": {:.4f}, \"load_s\": {:.4f}, "
      "\"torch_save_s\": {:.4f}, \"first_pause_s\": {:.4f}, \"pause_s\": {:.4f}, "
      "\"background_write_s\": {:.4f}, \"pause_share\": {:.4f}}}\n",
      megabytes,
      at::get_num_threads(),
      sync,
      load,
      torch_save,
      first_pause,
      median(pauses),
      median(writes),
      median(pauses) / sync);
  return 0;
}
