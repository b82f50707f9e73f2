// Rules that only Python's torch.optim has, against those.

#include <ATen/ops/allclose.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "optim/optimizers.h"
#include "parameters.h"
#include "support/python.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int kPythonSteps = 50;
constexpr double kPythonRounding = 1e-10;
const std::vector<std::vector<int64_t>> kSmall = {{17}, {3, 5}, {2, 3, 2, 2}};

/// An optimizer with the arguments that Python's gets.
struct Case {
  std::string python;
  std::shared_ptr<Optimizer> ours;
};

std::vector<Case> cases() {
  return {
      {"Adamax()", std::make_shared<Adamax>(Adamax::Options())},
      {"Adamax(lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.01)",
       std::make_shared<Adamax>(Adamax::Options{0.01, {0.8, 0.95}, 1e-6, 0.01})},
      {"NAdam()", std::make_shared<NAdam>(NAdam::Options())},
      {"NAdam(lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.01, momentum_decay=0.1)",
       std::make_shared<NAdam>(NAdam::Options{0.01, {0.8, 0.95}, 1e-6, 0.01, 0.1})},
      {"RAdam()", std::make_shared<RAdam>(RAdam::Options())},
      {"RAdam(lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.01)",
       std::make_shared<RAdam>(RAdam::Options{0.01, {0.8, 0.95}, 1e-6, 0.01})},
      {"Adadelta()", std::make_shared<Adadelta>(Adadelta::Options())},
      {"Adadelta(lr=0.5, rho=0.8, eps=1e-5, weight_decay=0.01)",
       std::make_shared<Adadelta>(Adadelta::Options{0.5, 0.8, 1e-5, 0.01})},
      {"Rprop()", std::make_shared<Rprop>(Rprop::Options())},
      {"Rprop(lr=0.02, etas=(0.4, 1.3), step_sizes=(1e-3, 0.1))",
       std::make_shared<Rprop>(Rprop::Options{0.02, {0.4, 1.3}, {1e-3, 0.1}})},
      {"ASGD()", std::make_shared<ASGD>(ASGD::Options())},
      {"ASGD(lr=0.02, lambd=0.01, alpha=0.6, t0=10, weight_decay=0.01)",
       std::make_shared<ASGD>(ASGD::Options{0.02, 0.01, 0.6, 10.0, 0.01})},
      {"Adagrad(lr_decay=0.1, initial_accumulator_value=0.5)",
       std::make_shared<Adagrad>(Adagrad::Options{0.01, 0.1, 1e-10, 0.0, 0.5})},
      {"SGD(lr=0.05, momentum=0.9)", std::make_shared<Sgd>(Sgd::Options{0.05, 0.9})},
      {"AdamW(lr=0.01, amsgrad=True)",
       std::make_shared<AdamW>(AdamW::Options{0.01, {0.9, 0.999}, 1e-8, 0.01, true})},
      {"RMSprop(momentum=0.9, centered=True)",
       std::make_shared<RMSprop>(RMSprop::Options{0.01, 0.99, 1e-8, 0.0, 0.9, true})},
  };
}

StateList list_of(const NamedTensors& named, bool takes_grads) {
  StateList list;
  for (const NamedTensor& one : named) {
    list.emplace_back(takes_grads ? one.second.grad() : one.second.detach());
  }
  return list;
}

/// Counts are float64 there too, so that they are rounded as rondo's.
std::string script(const std::vector<Case>& all) {
  std::string text = R"(
import sys, torch
from torch.optim import *
torch.set_default_dtype(torch.float64)
given = torch.load(sys.argv[1] + "/given.pt")
results = {}
def run(name, make):
    params = [p.clone().requires_grad_() for p in given["params"]]
    optimizer = make(params)
    for grads in given["grads"]:
        for p, g in zip(params, grads):
            p.grad = g.clone()
        optimizer.step()
    results[name] = {"params": [p.detach() for p in params], "optimizer": optimizer.state_dict()}
)";
  for (const Case& one : all) {
    const size_t at = one.python.find('(') + 1;
    text += "run('" + one.python + "', lambda params: " + one.python.substr(0, at) +
            "params, foreach=False" + (one.python[at] == ')' ? "" : ", ") + one.python.substr(at) +
            ")\n";
  }
  return text + "torch.save(results, sys.argv[1] + '/results.pt')\n";
}

bool is_close(const at::Tensor& a, const at::Tensor& b) {
  return at::allclose(a.detach(), b, kPythonRounding, kPythonRounding * 1e-2);
}

/// One more update, by `ours` and by an optimizer that has Python's state.
void check_next_update(const StateDict& python,
                       const NamedTensors& params,
                       Optimizer& ours,
                       Optimizer& loaded) {
  NamedTensors same;
  for (const NamedTensor& parameter : params) {
    same.emplace_back(parameter.first, parameter.second.detach().clone().requires_grad_());
  }
  loaded.attach(same);
  loaded.load(python.at("optimizer").as_dict());
  give_gradients(params, same, kPythonSteps);
  ours.step();
  loaded.step();
  for (size_t i = 0; i < params.size(); ++i) {
    CAPTURE(i);
    CHECK(is_close(params[i].second, same[i].second.detach()));
  }
}

/// Parameters and everything that PyTorch keeps for them.
void check_against(const StateDict& python, const NamedTensors& params, Optimizer& ours) {
  const StateList& expected = python.at("params").as_list();
  for (size_t i = 0; i < params.size(); ++i) {
    CAPTURE(i);
    CHECK(is_close(params[i].second, expected[i].as_tensor()));
    const StateDict& states = python.at("optimizer/state/" + std::to_string(i)).as_dict();
    Parameter& parameter = ours.groups()[0].params[i];
    for (const NamedTensor& state : parameter.states()) {
      CAPTURE(state.first);
      const bool is_flag = state.first == "step" && states.size() == 1;  // of SGD's buffer
      const StateValue value = is_flag ? StateValue(state.second) : states.at(state.first);
      CHECK(is_close(state.second,
                     value.is_tensor() ? value.as_tensor().to(at::kDouble)
                                       : at::scalar_tensor(value.as_double(), at::kDouble)));
    }
  }
}

}  // namespace

TEST_SUITE_BEGIN("optim/python_optimizers");

TEST_CASE(
    "rules of Python's torch.optim give its numbers, keep what it keeps, and load its state") {
  if (skips_without("torch")) {
    return;
  }
  const TempDir dir;
  const std::vector<Case> all = cases();
  std::vector<NamedTensors> params;
  StateDict given;
  StateList all_grads;
  for (const Case& one : all) {
    params.push_back(parameters(7, at::kDouble, kSmall));
    one.ours->attach(params.back());
  }
  given.set("params", deep_copy({{"all", list_of(params[0], false)}}).at("all"));
  for (int step = 0; step < kPythonSteps; ++step) {
    give_gradients(params[0], params[0], step);
    all_grads.emplace_back(deep_copy({{"all", list_of(params[0], true)}}).at("all"));
    for (size_t c = 0; c < all.size(); ++c) {
      give_gradients(params[c], params[c], step);
      all[c].ours->step();
    }
  }
  given.set("grads", std::move(all_grads));
  write_checkpoint(*real_file_system(), dir / "given.pt", given);
  REQUIRE(runs_in_python("torch", dir, script(all)));
  const StateDict results = read_checkpoint(dir / "results.pt");
  const std::vector<Case> loaded = cases();
  for (size_t c = 0; c < all.size(); ++c) {
    CAPTURE(all[c].python);
    const StateDict& python = results.find(all[c].python)->as_dict();
    check_against(python, params[c], *all[c].ours);
    check_next_update(python, params[c], *all[c].ours, *loaded[c].ours);
  }
}

TEST_SUITE_END();
