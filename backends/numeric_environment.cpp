#include "backends/numeric_environment.h"

#include <cstdint>
#include <filesystem>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include "backends/gpu_environment.h"
#include "core/blas_library.h"
#include "core/openblas_core.h"

namespace rondo {

namespace {

// LibTorch tells it in a line of its description only: "  - CPU capability usage: AVX2".
std::string cpu_capability() {
  const std::string config = at::show_config();
  const std::string label = "CPU capability usage: ";
  const size_t begin = config.find(label);
  if (begin == std::string::npos) {
    return "";
  }
  const size_t value = begin + label.size();
  return config.substr(value, config.find('\n', value) - value);
}

// Directory and file only: the same package lies elsewhere on another architecture.
std::string blas_file() {
  const std::filesystem::path file = blas_library().path;
  return (file.parent_path().filename() / file.filename()).string();
}

void compare(std::string& lines,
             const char* name,
             const std::string& saved,
             const std::string& here) {
  if (saved != here) {
    lines += (lines.empty() ? "" : "\n") + std::string(name) + ": " + saved +
             " in the checkpoint, " + here + " here";
  }
}

}  // namespace

NumericEnvironment current_environment(c10::Device device) {
  NumericEnvironment environment;
  environment.libtorch = TORCH_VERSION;
  environment.cpu_capability = cpu_capability();
  environment.threads = at::get_num_threads();
  environment.onednn = at::globalContext().userEnabledMkldnn() && at::hasMKLDNN();
  environment.blas = blas_file();
  environment.blas_core = openblas_core(blas_library().handle);
  environment.gpu = gpu_environment(device);
  return environment;
}

StateDict to_state(const NumericEnvironment& environment) {
  return {{"libtorch", environment.libtorch},
          {"cpu_capability", environment.cpu_capability},
          {"threads", static_cast<int64_t>(environment.threads)},
          {"onednn", environment.onednn},
          {"blas", environment.blas},
          {"blas_core", environment.blas_core},
          {"gpu", environment.gpu}};
}

NumericEnvironment environment_from(const StateDict& state) {
  NumericEnvironment environment;
  environment.libtorch = state.at("libtorch").as_string();
  environment.cpu_capability = state.at("cpu_capability").as_string();
  environment.threads = static_cast<int>(state.at("threads").as_int());
  environment.onednn = state.at("onednn").as_bool();
  environment.blas = state.at("blas").as_string();
  if (state.contains("blas_core")) {  // the first checkpoints had none
    environment.blas_core = state.at("blas_core").as_string();
  }
  if (state.contains("gpu")) {
    environment.gpu = state.at("gpu").as_string();
  }
  return environment;
}

std::string difference(const NumericEnvironment& saved, const NumericEnvironment& here) {
  std::string lines;
  compare(lines, "libtorch", saved.libtorch, here.libtorch);
  compare(lines, "cpu_capability", saved.cpu_capability, here.cpu_capability);
  compare(lines, "threads", std::to_string(saved.threads), std::to_string(here.threads));
  compare(lines, "onednn", saved.onednn ? "on" : "off", here.onednn ? "on" : "off");
  compare(lines, "blas", saved.blas, here.blas);
  if (!saved.blas_core.empty()) {
    compare(lines, "blas_core", saved.blas_core, here.blas_core);
  }
  const auto or_none = [](const std::string& gpu) { return gpu.empty() ? "none" : gpu; };
  compare(lines, "gpu", or_none(saved.gpu), or_none(here.gpu));
  return lines;
}

void use_threads(int threads) {
  if (at::get_num_threads() != threads) {
    at::set_num_threads(threads);
  }
}

}  // namespace rondo
