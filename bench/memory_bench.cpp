// Compares the memory that `rondo plan` predicts for a run with the peak of the process that `rondo
// fit` becomes, both started as a user starts them, and prints a table. The exit status is 1 when a
// prediction is off by more than the tolerance.
//
//   memory_bench --rondo=build/bin/rondo --tolerance=0.1 [--only=bf16]

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Overrides = std::vector<std::string>;

/// A run that differs from `kRun` by some keys.
struct Case {
  std::string name;
  Overrides overrides;
};

constexpr const char* kRun = R"(
[trainer.init]
model_dir = "run"
seed = 1
model = { name = "Mlp", sizes = [784, 2000, 2000, 10] }
loop = { max_steps = 24, eval_frequency = 0 }
loggers = [{ ProgressLogger = false }]
[trainer.init.optimizer.Adam]
lr = 0.001
[trainer.fit]
train_dataloader = { dataset = "Glyphs", size = 96, batch_size = 16, prefetch = 0 }
)";

std::vector<Case> all_cases() {
  const std::string init = "trainer.init.";
  const std::string train = "trainer.fit.train_dataloader";
  const std::string groups = init + "loop.grad_accum_steps=3";
  const std::string unverified = init + "backend.verify=off";
  const std::string explains = init + "backend.on_nan=explain";
  const std::string bf16 = init + "precision.dtype=bf16";
  const std::string sparse = init + "sparsity.sparsity=0.5";
  const std::string cnn = init + "model={ name = \"Cnn\" }";
  const std::string validates = init + "loop.eval_frequency=10";
  const auto glyphs = [&](const std::string& loader, const std::string& rest) {
    return loader + "={ dataset = \"Glyphs\", " + rest + " }";
  };
  const std::string val = "trainer.fit.val_dataloader";
  return {
      {"plain", {}},
      {"unverified", {unverified}},
      {"groups of 3", {groups}},
      {"groups of 3, a short one", {groups, train + ".size=64"}},
      {"groups of 3 short batches", {groups, glyphs(train, "size = 2656, batch_size = 256")}},
      {"explain", {explains}},
      {"explain, groups of 3", {explains, groups}},
      {"sparse", {sparse}},
      {"bf16", {bf16}},
      {"bf16, groups of 3", {bf16, groups}},
      {"Cnn", {cnn, glyphs(train, "size = 8192, batch_size = 512, prefetch = 4")}},
      {"Cnn, unverified", {cnn, unverified, glyphs(train, "size = 2048, batch_size = 1024")}},
      {"batches of 5,000",
       {validates,
        glyphs(train, "size = 10100, batch_size = 5000"),
        glyphs(val, "size = 5050, batch_size = 5000")}},
      {"large validations", {validates, glyphs(val, "size = 24576, batch_size = 2048")}},
      {"queue longer than a pass", {glyphs(train, "size = 2800, batch_size = 2048, prefetch = 4")}},
  };
}

struct Ended {
  std::string out;
  int64_t peak_bytes = 0;
};

/// Runs a program in `directory` with its standard output in a file. \throws when it fails
Ended run(const std::vector<std::string>& line, const std::filesystem::path& directory) {
  const std::filesystem::path out = directory / "out";
  std::fflush(stdout);  // the child would print it again
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<char*> words;
    for (const std::string& word : line) {
      words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    const bool is_ready =
        ::chdir(directory.c_str()) == 0 && std::freopen(out.c_str(), "w", stdout) != nullptr;
    if (is_ready) {
      ::execv(words[0], words.data());
    }
    ::_exit(127);
  }
  int status = 0;
  struct rusage usage = {};
  while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(fmt::format("{} {} failed with status {}", line[0], line[1], status));
  }
  std::ifstream file(out);
  return {{std::istreambuf_iterator<char>(file), {}}, int64_t{usage.ru_maxrss} * 1024};
}

Ended run_rondo(const std::string& rondo, const std::string& command, const Overrides& overrides) {
  std::string name = (std::filesystem::temp_directory_path() / "memory_bench.XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("no temporary directory: " + name);
  }
  const std::filesystem::path directory = name;
  std::ofstream(directory / "run.toml") << kRun;
  std::vector<std::string> line = {rondo, command, "run.toml", "--json"};
  line.insert(line.end(), overrides.begin(), overrides.end());
  const Ended ended = run(line, directory);
  std::filesystem::remove_all(directory);
  return ended;
}

/// The number of the process in what `rondo plan --json` prints.
double predicted_bytes(const std::string& json) {
  const std::string key = "\"process\": ";
  const size_t place = json.find(key);
  if (place == std::string::npos) {
    throw std::runtime_error("rondo plan --json printed no \"process\": " + json);
  }
  return std::stod(json.substr(place + key.size()));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compares predicted and measured memory of whole runs");
  std::string rondo = "build/bin/rondo";
  std::string only;
  double tolerance = 0.1;
  app.add_option("--rondo", rondo, "the launcher");
  app.add_option("--only", only, "cases whose names contain this");
  app.add_option("--tolerance", tolerance, "largest relative error");
  CLI11_PARSE(app, argc, argv);
  rondo = std::filesystem::absolute(rondo).string();

  bool all_hold = true;
  fmt::print("{:28} {:>13} {:>12} {:>7}\n", "run", "predicted MB", "measured MB", "ratio");
  for (const Case& c : all_cases()) {
    if (c.name.find(only) == std::string::npos) {
      continue;
    }
    const double predicted = predicted_bytes(run_rondo(rondo, "plan", c.overrides).out);
    const auto measured = static_cast<double>(run_rondo(rondo, "fit", c.overrides).peak_bytes);
    const double ratio = predicted / measured;
    const bool holds = std::abs(ratio - 1) <= tolerance;
    all_hold = all_hold && holds;
    fmt::print("{:28} {:13.1f} {:12.1f} {:7.3f}{}\n",
               c.name,
               predicted / 1e6,
               measured / 1e6,
               ratio,
               holds ? "" : "  off");
  }
  return all_hold ? 0 : 1;
}
