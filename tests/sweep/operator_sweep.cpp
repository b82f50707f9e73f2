// Runs the trials of operators' out variants with every tensor beside memory that nobody may touch,
// each operator in a process of its own.
//
//   operator_sweep            a fixed sample of 40 operators, which all must be covered
//   operator_sweep --all      every operator of this LibTorch that has an out variant
//   operator_sweep NAME...    these, such as aten::mm or aten::add.Tensor

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "sweep/forked.h"
#include "sweep/operator_samples.h"
#include "sweep/operator_trial.h"
#include "tracing/plan/out_variant.h"
#include "tracing/program/step_program.h"
#include "tracing/recording/dispatcher.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr size_t kFewestCovered = 250;  // of all

/// Losses that resize their result, and some of each family.
const std::vector<std::string> kSample = {
    "aten::huber_loss",
    "aten::binary_cross_entropy",
    "aten::mse_loss",
    "aten::smooth_l1_loss",
    "aten::nll_loss_forward",
    "aten::nll_loss2d_forward",
    "aten::multi_margin_loss",
    "aten::multilabel_margin_loss_forward",
    "aten::huber_loss_backward",
    "aten::binary_cross_entropy_backward",
    "aten::mm",
    "aten::bmm",
    "aten::addmm",
    "aten::baddbmm",
    "aten::add.Tensor",
    "aten::div.Tensor_mode",
    "aten::where.self",
    "aten::exp",
    "aten::gelu",
    "aten::sigmoid_backward",
    "aten::_softmax",
    "aten::_log_softmax_backward_data",
    "aten::sum.dim_IntList",
    "aten::mean.dim",
    "aten::var.correction",
    "aten::max.dim",
    "aten::cumsum",
    "aten::sort.stable",
    "aten::topk",
    "aten::cat",
    "aten::gather",
    "aten::index.Tensor",
    "aten::scatter_add",
    "aten::index_add",
    "aten::avg_pool2d",
    "aten::max_pool2d_with_indices",
    "aten::upsample_bilinear2d",
    "aten::reflection_pad2d",
    "aten::_fft_r2c",
    "aten::linalg_cholesky_ex",
};

/// What came of all the samples of an operator.
struct Row {
  std::string name;
  int used = 0;      ///< samples whose trial the out variant stood
  int reads = 0;     ///< trials in which LibTorch, or its BLAS, read beyond the memory of a tensor
  int not_used = 0;  ///< samples after which a plan calls the operator itself
  std::string why_not;
  std::string wrong;

  bool is_covered() const { return used + not_used + reads > 0; }
};

using Say = std::function<void(const std::string&)>;

// A line each: which sample, and whether it is being called, is being tried, or what came of it.
// The last line of a process that was ended tells where.
constexpr const char* kCalls = "calls";
constexpr const char* kTries = "tries";

void run_samples(const c10::OperatorHandle& op, size_t first, const Say& say) {
  at::set_num_threads(1);
  const std::vector<SampleArguments> samples = sample_arguments(op.schema());
  for (size_t i = first; i < samples.size(); ++i) {
    say(fmt::format("{} {}\n", kCalls, i));
    const TrialOutcome plain = call_plainly(op, samples[i]);
    if (plain.kind != TrialOutcome::Kind::Used) {
      const bool is_taken = plain.kind == TrialOutcome::Kind::NeverOut;
      say((is_taken ? "never-out " : "unsuitable ") + plain.reason + "\n");
      continue;
    }
    for (const Side side : {Side::EndsAtPage, Side::BeginsAfterPage}) {
      say(fmt::format("{} {}\n", kCalls, i));
      const TrialOutcome outcome =
          run_trials(op, samples[i], side, [&] { say(fmt::format("{} {}\n", kTries, i)); });
      const char* const word = outcome.kind == TrialOutcome::Kind::Used      ? "used"
                               : outcome.kind == TrialOutcome::Kind::NotUsed ? "not-used"
                                                                             : "wrong";
      say(fmt::format("{} {}\n", word, outcome.reason));
    }
  }
}

/// \param last  gets what the process was doing when it ended; empty: making arguments
/// \return the sample that it was at
size_t read_lines(const std::string& said, Row& row, std::string& last) {
  std::istringstream lines(said);
  std::string line;
  size_t sample = 0;
  while (std::getline(lines, line)) {
    const size_t space = line.find(' ');
    const std::string word = line.substr(0, space);
    const std::string rest = line.substr(space + 1);
    if (word == kCalls || word == kTries) {
      sample = std::stoul(rest);
      last = word;
    } else if (word == "used") {
      ++row.used;
    } else if (word == "not-used") {
      ++row.not_used;
    } else if (word == "wrong") {
      row.wrong = fmt::format("sample {}: {}", sample, rest);
    } else if (row.why_not.empty() || word == "never-out") {
      row.why_not = rest;  // of several calls that throw, the first suits best
    }
  }
  return sample;
}

Row sweep(const c10::OperatorHandle& op) {
  Row row;
  row.name = operator_name(op);
  for (size_t first = 0;;) {
    const ForkedRun run = run_forked([&](const Say& say) { run_samples(op, first, say); });
    std::string last;
    const size_t sample = read_lines(run.said, row, last);
    if (run.ending.empty()) {
      return row;
    }
    if (last.empty()) {
      row.wrong = "its arguments cannot be made: " + run.ending;
      return row;
    }
    if (last == kTries && run.ending == kForbiddenRead) {
      ++row.reads;
    } else if (last == kTries) {
      row.wrong = fmt::format("sample {}: ended by: {}", sample, run.ending);
    } else {
      row.why_not = "ends the process when it is called: " + run.ending;
    }
    first = sample + 1;
  }
}

std::vector<c10::OperatorHandle> operators_with_out_variant() {
  std::vector<c10::OperatorHandle> all;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (op && name.name.rfind("aten::", 0) == 0 && find_out_variant(*op)) {
      all.push_back(*op);
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return operator_name(a) < operator_name(b);
  });
  return all;
}

void print(const Row& row) {
  const std::string what =
      !row.wrong.empty() ? "WRONG, " + row.wrong
      : row.is_covered()
          ? fmt::format(
                "used {}, not used {}{}",
                row.used,
                row.not_used,
                row.reads == 0 ? "" : fmt::format(", reads beyond its memory {}", row.reads))
          : "not covered: " + row.why_not;
  fmt::print("{:<48} {}\n", row.name, what);
}

/// \param fewest  operators that must be covered
int run(const std::vector<c10::OperatorHandle>& operators, size_t fewest) {
  size_t covered = 0;
  size_t wrong = 0;
  for (const c10::OperatorHandle& op : operators) {
    const Row row = sweep(op);
    print(row);
    std::fflush(stdout);
    covered += row.is_covered() ? 1 : 0;
    wrong += row.wrong.empty() ? 0 : 1;
  }
  fmt::print("{} operators have out variants: {} covered, {} not covered, {} wrong\n",
             operators.size(),
             covered,
             operators.size() - covered,
             wrong);
  if (covered < fewest) {
    fmt::print("at least {} must be covered\n", fewest);
  }
  return wrong == 0 && covered >= fewest ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  register_with_dispatcher();  // once, before all processes
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::vector<c10::OperatorHandle> all = operators_with_out_variant();
  if (arguments == std::vector<std::string>{"--all"}) {
    return run(all, kFewestCovered);
  }
  const std::vector<std::string>& names = arguments.empty() ? kSample : arguments;
  std::vector<c10::OperatorHandle> chosen;
  for (const c10::OperatorHandle& op : all) {
    if (std::find(names.begin(), names.end(), operator_name(op)) != names.end()) {
      chosen.push_back(op);
    }
  }
  return run(chosen, names.size());
}
