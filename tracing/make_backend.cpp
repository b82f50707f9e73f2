#include "tracing/make_backend.h"

#include <algorithm>
#include <utility>

#include <ATen/Context.h>
#include <fmt/format.h>

#include "backends/blas_advice.h"
#include "backends/eager_backend.h"
#include "backends/gpu_environment.h"
#include "backends/numeric_environment.h"
#include "core/available_cores.h"
#include "core/error.h"
#include "core/glob.h"
#include "tracing/checks/verify_policy.h"
#include "tracing/passes/kept_casts.h"
#include "tracing/passes/passes.h"
#include "tracing/plan/chains.h"
#include "tracing/plan/plan.h"
#include "tracing/traced_backend.h"

namespace rondo {

namespace {

void require(bool holds,
             const std::string& option,
             const std::string& rule,
             const std::string& value) {
  if (!holds) {
    throw UsageError("backend." + option + ": expected " + rule + ", got " + value);
  }
}

c10::Device device_named(const std::string& name) {
  if (const auto device = find_device(name)) {
    return *device;
  }
  require(name == "cuda", "device", "\"cpu\" or \"cuda\"", '"' + name + '"');
  throw UsageError(
      "backend.device: \"cuda\" needs a LibTorch that is built with CUDA and a driver; this one "
      "has the CPU only: set backend.device = \"cpu\"");
}

const std::vector<std::string>& known_passes(const std::vector<std::string>& names) {
  const std::vector<std::string> known = pass_names();
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw UsageError("backend.without_passes: there is no pass \"" + name + '"' +
                       suggestion(name, known));
    }
  }
  return names;
}

void check(const BackendOptions& options) {
  require(options.mode == "traced" || options.mode == "eager",
          "mode",
          "\"traced\" or \"eager\"",
          '"' + options.mode + '"');
  require(options.executor == "plan" || options.executor == "interpreter",
          "executor",
          "\"plan\" or \"interpreter\"",
          '"' + options.executor + '"');
  require(options.environment == "same" || options.environment == "new",
          "environment",
          "\"same\" or \"new\"",
          '"' + options.environment + '"');
  require(options.threads >= 1, "threads", "an integer >= 1", std::to_string(options.threads));
  require(options.on_nan == "stop" || options.on_nan == "explain",
          "on_nan",
          "\"stop\" or \"explain\"",
          '"' + options.on_nan + '"');
  require(options.on_refusal == "eager" || options.on_refusal == "error",
          "on_refusal",
          "\"eager\" or \"error\"",
          '"' + options.on_refusal + '"');
  require(options.on_nan == "stop" || options.mode == "traced",
          "on_nan",
          "\"stop\" under mode = \"eager\" (recorded steps are run once more)",
          '"' + options.on_nan + '"');
  require(options.timed_replays >= 0,
          "timed_replays",
          "an integer >= 0",
          std::to_string(options.timed_replays));
}

void warn_of_threads(int threads, TextLog& log) {
  if (const int cores = available_cores(); threads > cores) {
    log.warning(fmt::format(
        "backend.threads = {} is more than the {} {} that this process may use: threads that wait "
        "for each other make steps many times slower",
        threads,
        cores,
        cores == 1 ? "core" : "cores"));
  }
}

std::unique_ptr<DeviceGraphs> graphs_on(const c10::Device& device, const std::string& executor) {
  std::unique_ptr<DeviceGraphs> graphs = make_device_graphs(device.type());
  if (graphs == nullptr) {
    throw NotSupportedError("backend.mode: \"traced\" is not built for " + device.str() +
                            "; set backend.mode = \"eager\"");
  }
  require(executor == "plan",
          "executor",
          "\"plan\" on " + device.str() + " (which runs it as graphs)",
          '"' + executor + '"');
  return graphs;
}

}  // namespace

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : clean_up_passes()) {
    names.emplace_back(pass.name);
  }
  names.insert(names.end(), {KeptCasts::kPass, kChainsPass, kInPlacePass});
  return names;
}

std::optional<c10::Device> find_device(const std::string& name) {
  if (name == "cpu") {
    return c10::kCPU;
  }
  if (name == "cuda") {
    return at::hasCUDA() ? std::optional(c10::Device(c10::kCUDA, 0)) : std::nullopt;
  }
  try {
    const c10::DeviceType type = c10::Device(name).type();
    return has_device_graphs(type) ? std::optional(c10::Device(type, 0)) : std::nullopt;
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

std::unique_ptr<Backend> make_backend(const BackendOptions& options,
                                      TextLog log,
                                      const Instruments& instruments) {
  check(options);
  const VerifyPolicy verify = parse_verify(options.verify);
  const c10::Device device = device_named(options.device);
  if (!device.is_cpu()) {
    use_deterministic_kernels(options.deterministic);
  }
  use_threads(options.threads);
  warn_of_blas(options.threads, log);
  warn_of_threads(options.threads, log);
  if (options.mode == "eager") {
    return std::make_unique<EagerBackend>(device);
  }
  if (!options.exact && verify.every > 0) {
    log.warning("backend.verify = \"" + options.verify +
                "\" compares nothing: with exact = false replays may round differently");
  }
  TracedOptions traced;
  if (!device.is_cpu()) {
    traced.device = device;
    traced.graphs = graphs_on(device, options.executor);
  }
  traced.verify = options.exact ? verify : parse_verify("off");
  traced.without_passes = known_passes(options.without_passes);
  traced.explains = options.on_nan == "explain";
  traced.exact = options.exact;
  traced.instruments = instruments;
  if (options.timed_replays > instruments.timing.active) {
    traced.instruments.timing = TimingSchedule::of(options.timed_replays);
  }
  traced.throws_on_refusal = options.on_refusal == "error";
  traced.interprets = options.executor == "interpreter";
  return std::make_unique<TracedBackend>(traced, std::move(log));
}

}  // namespace rondo
