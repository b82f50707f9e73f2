#include "coverage/trial.h"

#include <sys/wait.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <ATen/CPUGeneratorImpl.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>

#include "core/error.h"
#include "support/step_probe.h"
#include "tracing/make_backend.h"

namespace rondo::test {

namespace {

constexpr int kUpdates = 8;
constexpr int kUpdatesBeforeOthers = 4;  // captured, verified and replayed
constexpr unsigned kMostSeconds = 60;

// Integers stay as they are until the step is replayed: what LibTorch reads of them below every
// operator would go unnoticed if captures differed, and be stale after they change.
Batch batch_of(const Row& row, int step) {
  const auto numbers = at::detail::createCPUGenerator(static_cast<uint64_t>(1000 + step));
  const auto choice =
      at::detail::createCPUGenerator(static_cast<uint64_t>(step / kUpdatesBeforeOthers));
  const auto integers = at::TensorOptions().dtype(at::kLong);
  const int64_t last = row.sizes.empty() ? 1 : row.sizes.back();
  return {{"x", at::randn(row.sizes, numbers, at::TensorOptions())},
          {"y", at::randn(row.sizes, numbers, at::TensorOptions())},
          {"label", at::randint(3, {row.sizes.empty() ? 1 : row.sizes[0]}, choice, integers)},
          {"index", at::randint(last, row.sizes, choice, integers)}};
}

// A number that depends on every element of the result, and on `x` where the result has no
// gradient.
at::Tensor loss_of(const at::Tensor& result, const at::Tensor& x) {
  at::Tensor value = result.is_complex() ? result.abs() : result;
  if (!value.is_floating_point()) {
    value = value.to(at::kFloat);
  }
  const at::Tensor loss = value.square().mean();
  return loss.requires_grad() ? loss : loss + x.square().mean();
}

StepProbe probe_of(const Row& row) {
  Trained trained = row.make();
  const at::Tensor weight = at::ones(row.sizes).add(torch::rand(row.sizes), 0.1);
  weight.set_requires_grad(true);
  const at::Tensor lr = at::full({}, 0.05, at::kDouble);
  std::vector<at::Tensor> parameters{weight};
  StepProbe probe;
  probe.state = {{"lr", lr}, {"weight", weight}};
  if (trained.module != nullptr) {
    for (const auto& parameter : trained.module->named_parameters()) {
      probe.state.emplace_back(parameter.key(), parameter.value());
      parameters.push_back(parameter.value());
    }
    for (const auto& buffer : trained.module->named_buffers()) {
      probe.state.emplace_back(buffer.key(), buffer.value());
    }
  }
  probe.batch = [row](int step) { return batch_of(row, step); };
  probe.body = [=](Backend&, const Batch& batch) {
    for (const at::Tensor& parameter : parameters) {
      parameter.mutable_grad().reset();
    }
    const at::Tensor x = batch["x"] * weight;
    const at::Tensor result = trained.forward({x, batch["y"], batch["label"], batch["index"]});
    const at::Tensor loss = loss_of(result, x);
    loss.backward();
    descend(parameters, lr);
    return Outputs{{"loss", loss}};
  };
  return probe;
}

TextLog quiet() {
  return TextLog::to([](LogLevel, std::string_view) {});
}

// The fact, without where the step was and what to do instead.
std::string reason_of(const std::string& text) {
  std::string reason = text.substr(0, text.find('\n'));
  const std::string begin = "the step ";
  if (reason.rfind(begin, 0) == 0) {
    reason.erase(0, begin.size());
  }
  return reason.substr(0, std::min(reason.find(", in "), reason.find(" while step ")));
}

// The operators that were read, without the lines of code.
std::string reads_of(const StepReport& report) {
  std::set<std::string> reads;
  for (const StepGuard& guard : report.guards) {
    reads.insert(guard.read.substr(0, guard.read.find_first_of(" ,")));
  }
  return fmt::format("reads {}", fmt::join(reads, ", "));
}

Outcome outcome_of(const ProbeRun& run) {
  for (const StepReport& report : run.reports) {
    if (report.mode == "eager") {
      return {"eager", reason_of(report.reason)};
    }
  }
  if (run.reports.empty()) {
    return {"wrong", "never replayed"};
  }
  const StepReport& report = run.reports[0];
  return {report.mode, report.mode == "guarded" ? reads_of(report) : ""};
}

std::string to_line(const Outcome& outcome) {
  std::string line = outcome.way + '\t' + outcome.reason;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

Outcome from_line(const std::string& line) {
  const size_t tab = line.find('\t');
  return {line.substr(0, tab), line.substr(tab + 1)};
}

[[noreturn]] void run_child(const Row* rows, size_t count, int pipe) {
  for (size_t i = 0; i < count; ++i) {
    ::alarm(kMostSeconds);
    const std::string line = to_line(try_row(rows[i])) + '\n';
    if (::write(pipe, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      ::_exit(1);
    }
  }
  ::_exit(0);
}

std::string read_all(int pipe) {
  std::string all;
  char part[4096];
  for (ssize_t count = 0; (count = ::read(pipe, part, sizeof part)) > 0;) {
    all.append(part, static_cast<size_t>(count));
  }
  return all;
}

}  // namespace

Outcome try_row(const Row& row) {
  const auto eager = backend_of("eager");
  ProbeRun expected;
  try {
    expected = run_probe([&] { return probe_of(row); }, *eager, kUpdates);
  } catch (const std::exception& error) {
    return {"broken", reason_of(error.what())};
  }
  const auto traced = make_backend(BackendOptions(), quiet());
  try {
    const ProbeRun got = run_probe([&] { return probe_of(row); }, *traced, kUpdates);
    const std::string difference =
        row.is_repeatable ? first_difference(expected.bytes, got.bytes) : "";
    return difference.empty() ? outcome_of(got) : Outcome{"wrong", difference};
  } catch (const std::exception& error) {
    return {dynamic_cast<const CaptureError*>(&error) != nullptr ? "refused" : "wrong",
            reason_of(error.what())};
  }
}

std::vector<Outcome> try_rows_apart(const Row* rows, size_t count) {
  int ends[2];
  if (::pipe(ends) != 0) {
    throw std::runtime_error("rondo_coverage: no pipe");
  }
  const pid_t child = ::fork();
  if (child < 0) {
    throw std::runtime_error("rondo_coverage: no process");
  }
  if (child == 0) {
    ::close(ends[0]);
    run_child(rows, count, ends[1]);
  }
  ::close(ends[1]);
  std::istringstream lines(read_all(ends[0]));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  std::vector<Outcome> outcomes;
  for (std::string line; std::getline(lines, line);) {
    outcomes.push_back(from_line(line));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return outcomes;
  }
  if (count == 1) {
    return {{"crashed", "signal " + std::to_string(WIFSIGNALED(status) ? WTERMSIG(status) : 0)}};
  }
  outcomes.clear();  // one of them may have spoiled the memory of another
  for (size_t i = 0; i < count; ++i) {
    outcomes.push_back(try_rows_apart(rows + i, 1)[0]);
  }
  return outcomes;
}

}  // namespace rondo::test
