// Times saving and loading a state, beside torch::save and torch::load of the same tensors, and
// measures the memory that each takes beyond the state; prints JSON.
//
//   checkpoint_bench --megabytes=200 --rounds=5 --dir=/var/tmp
//
// pause: how long `BackgroundSave::begin` keeps the caller. update: a pass that changes every
// tensor; at once: right after `begin`, when it has to wait for the copy, which is the worst that
// can be. extra_mb: growth of the process' peak (VmHWM). What was loaded is counted in, and is
// copied into the state as a run would do it; own_mb: what of it is no page of the file.

#include <fmt/format.h>
#include <malloc.h>
#include <torch/torch.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/background_save.h"
#include "checkpoint/checkpoint_file.h"
#include "core/file_system.h"
#include "optim/adam.h"

namespace {

using namespace rondo;
using Clock = std::chrono::steady_clock;

/// What a model with Adam has, where they have it: three tensors for each parameter, all touched.
StateDict make_state(int64_t megabytes, int64_t parameters) {
  const int64_t numel = megabytes * 1'000'000 / 4 / 3 / parameters;
  NamedTensors weights;
  for (int64_t i = 0; i < parameters; ++i) {
    weights.emplace_back(fmt::format("layer{}.weight", i), torch::randn({numel}).requires_grad_());
  }
  Adam adam({});
  adam.attach(weights);
  StateDict model;
  StateDict first;
  StateDict second;
  for (Parameter& parameter : adam.groups().front().params) {
    model.set(parameter.name, parameter.value.detach());
    first.set(parameter.name, parameter.state("exp_avg").normal_());
    second.set(parameter.name, parameter.state("exp_avg_sq").uniform_());
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

/// A line of /proc/self/status, in MB.
double status_mb(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != name + ":") {
  }
  double kibibytes = 0.0;
  status >> kibibytes;
  return kibibytes * 1024.0 / 1e6;
}

/// By how much the process grew at its largest while it did this, in MB.
double extra_mb(const std::function<void()>& work) {
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // forgets the peak so far
  const double before = status_mb("VmRSS");
  work();
  return status_mb("VmHWM") - before;
}

/// Memory that is no file's, in MB, that the process got with what `load` returns.
template <class Load>
double own_mb(const Load& load) {
  const double before = status_mb("RssAnon");
  const auto loaded = load();
  return status_mb("RssAnon") - before;
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

/// Gives the live tensors what was loaded.
void adopt(const std::vector<at::Tensor>& live, const std::vector<at::Tensor>& loaded) {
  for (size_t i = 0; i < live.size(); ++i) {
    live[i].copy_(loaded[i]);
  }
}

/// A JSON object, field by field.
class Report {
 public:
  void add(const std::string& name, double value) {
    text_ += fmt::format("{}\"{}\": {:.4f}", text_.empty() ? "" : ", ", name, value);
  }

  std::string json() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

/// What is timed: the state, where it goes, how often.
struct Subject {
  StateDict state;
  std::vector<at::Tensor> tensors;
  std::filesystem::path dir;
  int rounds = 0;
};

void measure_format(const Subject& subject, const std::string& suffix, Report& report) {
  const std::filesystem::path path = subject.dir / ("x.pt" + suffix);
  const std::string name = suffix.empty() ? "" : suffix.substr(1) + "_";
  const auto save = [&] { write_checkpoint(*real_file_system(), path, subject.state); };
  const auto load = [&] { adopt(subject.tensors, tensors_of(read_checkpoint(path))); };
  report.add(name + "save_s", median_of(subject.rounds, save));
  report.add(name + "save_extra_mb", extra_mb(save));
  report.add(name + "load_s", median_of(subject.rounds, load));
  report.add(name + "load_extra_mb", extra_mb(load));
  report.add(name + "load_own_mb", own_mb([&] { return read_checkpoint(path); }));
  report.add(name + "file_mb", static_cast<double>(std::filesystem::file_size(path)) / 1e6);
}

void measure_torch(const Subject& subject, Report& report) {
  const std::string path = (subject.dir / "torch.pt").string();
  const auto save = [&] { torch::save(subject.tensors, path); };
  const auto load = [&] {
    std::vector<at::Tensor> loaded;
    torch::load(loaded, path);
    adopt(subject.tensors, loaded);
  };
  report.add("torch_save_s", median_of(subject.rounds, save));
  report.add("torch_save_extra_mb", extra_mb(save));
  report.add("torch_load_s", median_of(subject.rounds, load));
  report.add("torch_load_extra_mb", extra_mb(load));
  report.add("torch_load_own_mb", own_mb([&] {
               std::vector<at::Tensor> loaded;
               torch::load(loaded, path);
               return loaded;
             }));
}

void measure_background(const Subject& subject, Report& report) {
  BackgroundSave background(real_file_system());
  const auto begin = [&] {
    const auto path = [&] { return subject.dir / "background.pt"; };
    background.begin({path, {}}, subject.state, [](const auto&) {});
  };
  report.add("first_pause_s", seconds_of(begin));
  const auto update = [&] {
    for (const at::Tensor& tensor : subject.tensors) {
      tensor.neg_();
    }
  };
  std::vector<double> pauses;
  std::vector<double> updates;
  std::vector<double> updates_behind;
  std::vector<double> writes;
  for (int i = 0; i < subject.rounds; ++i) {
    writes.push_back(background.wait()->seconds);
    std::filesystem::remove(subject.dir / "background.pt");
    updates.push_back(seconds_of(update));
    pauses.push_back(seconds_of(begin));
    updates_behind.push_back(seconds_of(update));
  }
  background.wait();
  report.add("pause_s", median(pauses));
  report.add("update_s", median(updates));
  report.add("update_at_once_s", median(updates_behind));
  report.add("background_write_s", median(writes));
}

}  // namespace

int main(int argc, char** argv) {
  int64_t megabytes = 200;
  int64_t parameters = 64;
  Subject subject;
  subject.rounds = 5;
  bool compresses = false;
  std::string parent = std::filesystem::temp_directory_path().string();
  CLI::App app("Times checkpoints.");
  app.add_option("--megabytes", megabytes, "Size of the state")->check(CLI::PositiveNumber);
  app.add_option("--parameters", parameters, "Tensors of the model; two more for each are Adam's")
      ->check(CLI::PositiveNumber);
  app.add_option("--rounds", subject.rounds, "Each is timed this often; the median counts")
      ->check(CLI::PositiveNumber);
  app.add_option("--dir", parent, "Where files go");
  app.add_flag("--compress", compresses, "Also with zstd and gzip");
  CLI11_PARSE(app, argc, argv);

  subject.dir = std::filesystem::path(parent) / fmt::format("rondo_bench_{}", ::getpid());
  std::filesystem::create_directories(subject.dir);
  subject.state = make_state(megabytes, parameters);
  subject.tensors = tensors_of(subject.state);
  Report report;
  report.add("megabytes", static_cast<double>(megabytes));
  report.add("threads", at::get_num_threads());
  measure_format(subject, "", report);
  measure_torch(subject, report);
  measure_background(subject, report);
  if (compresses) {
    measure_format(subject, ".zst", report);
    measure_format(subject, ".gz", report);
  }
  std::filesystem::remove_all(subject.dir);
  fmt::print("{}\n", report.json());
  return 0;
}
