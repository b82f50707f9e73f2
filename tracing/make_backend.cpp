#include "tracing/make_backend.h"

#include <algorithm>
#include <utility>

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
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

std::optional<c10::Device> parsed(const std::string& name) {
  try {
    return c10::Device(name);
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

/// How many devices of the type there are, of types that steps can run on.
int count_of(c10::DeviceType type) {
  const bool is_usable = type == c10::kCUDA ? at::hasCUDA() : has_device_graphs(type);
  return is_usable ? c10::impl::VirtualGuardImpl(type).deviceCount() : 0;
}

c10::Device device_named(const std::string& name) {
  if (const auto device = find_device(name)) {
    return *device;
  }
  const auto wanted = parsed(name);
  require(
      wanted && wanted->is_cuda(), "device", "\"cpu\", \"cuda\" or \"cuda:N\"", '"' + name + '"');
  if (const int count = count_of(c10::kCUDA); count > 0) {
    throw UsageError(fmt::format(
        "backend.device: there is no {}; the devices here are cuda:0 to cuda:{}", name, count - 1));
  }
  throw UsageError("backend.device: \"" + name +
                   "\" needs a LibTorch that is built with CUDA and a driver; this one has the CPU "
                   "only: set backend.device = \"cpu\"");
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

/// Options that are of recorded steps on the CPU.
void warn_of_ignored(const BackendOptions& options, const c10::Device& device, TextLog& log) {
  const auto warn = [&](const char* option) {
    log.warning(fmt::format("backend.{} has no effect on {}", option, device.str()));
  };
  if (options.timed_replays > 0) {
    warn("timed_replays");
  }
  if (!options.exact) {
    warn("exact = false");
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

std::optional<c10::Device> find_device(const std::string& name, int process) {
  const auto wanted = parsed(name);
  if (!wanted || wanted->is_cpu()) {
    return wanted;
  }
  const int count = count_of(wanted->type());
  if (count == 0) {
    return std::nullopt;
  }
  const int index = wanted->has_index() ? wanted->index() : process % count;
  return index < count
             ? std::optional(c10::Device(wanted->type(), static_cast<c10::DeviceIndex>(index)))
             : std::nullopt;
}

std::unique_ptr<Backend> make_backend(const BackendOptions& options,
                                      TextLog log,
                                      const Instruments& instruments) {
  check(options);
  const VerifyPolicy verify = parse_verify(options.verify);
  const c10::Device device = device_named(options.device);
  if (!device.is_cpu()) {
    c10::impl::VirtualGuardImpl(device.type()).setDevice(device);  // for streams of this thread
    use_deterministic_kernels(options.deterministic);
  }
  use_threads(options.threads);
  warn_of_blas(options.threads, log);
  warn_of_threads(options.threads, log);
  if (options.mode == "eager") {
    return std::make_unique<EagerBackend>(device);
  }
  TracedOptions traced;
  if (!device.is_cpu()) {
    traced.device = device;
    traced.graphs = graphs_on(device, options.executor);
    warn_of_ignored(options, device, log);
  }
  const bool is_repeatable = device.is_cpu() ? options.exact : options.deterministic;
  if (!is_repeatable && verify.every > 0) {
    log.warning(fmt::format(
        "backend.verify = \"{}\" compares nothing: with {} replays may round differently",
        options.verify,
        device.is_cpu() ? "exact = false" : "deterministic = false"));
  }
  traced.verify = is_repeatable ? verify : parse_verify("off");
  traced.without_passes = known_passes(options.without_passes);
  traced.explains = options.on_nan == "explain";
  traced.exact = options.exact || !device.is_cpu();  // the device's own operators run there
  traced.instruments = instruments;
  if (options.timed_replays > instruments.timing.active) {
    traced.instruments.timing = TimingSchedule::of(options.timed_replays);
  }
  traced.throws_on_refusal = options.on_refusal == "error";
  traced.interprets = options.executor == "interpreter";
  return std::make_unique<TracedBackend>(traced, std::move(log));
}

}  // namespace rondo
