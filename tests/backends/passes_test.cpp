#include "backends/passes/passes.h"

#include <doctest/doctest.h>
#include <torch/autograd.h>
#include <torch/library.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backends/instruction_count.h"
#include "backends/interpreter/jit_executor.h"
#include "backends/recording/capture.h"
#include "core/state_dict.h"
#include "optim/clip.h"
#include "optim/operators.h"
#include "support/step_probe.h"

TEST_SUITE_BEGIN("backends/passes");

using namespace rondo;
using namespace rondo::test;

// An operator of somebody else's: it may look at more than its argument.
TORCH_LIBRARY(rondo_passes_test, library) {
  library.def("scale(Tensor like) -> Tensor");
}

TORCH_LIBRARY_IMPL(rondo_passes_test, CPU, library) {
  library.impl("scale", [](const at::Tensor& like) { return at::full_like(like, 3.0); });
}

namespace {

using Steps = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& state)>;

// What a body of tensor operators records, with `state` [6] as captured state.
struct Recorded {
  at::Tensor state = torch::arange(6, at::kFloat);
  ClosureQueue queue;
  BodyRequests* requests = nullptr;
  StepProgram program;

  explicit Recorded(const Steps& steps,
                    const std::function<void(BodyRequests&, at::Tensor)>& after = {}) {
    const StepBody body = [&](const Batch& batch) {
      const at::Tensor y = steps(batch["x"], state);
      if (after) {
        after(*requests, y);
      }
      return Outputs{{"y", y}};
    };
    const std::function<CapturedState()> provide = [&] { return CapturedState{{"state", state}}; };
    const Batch batch = random_batch(0);
    const IsDue always;
    program = capture_step("test", {batch, body, always, queue, provide, requests}).program;
  }

  // The same bytes before and after a pass, from the same state.
  void check_same(const StepProgram& passed) {
    const at::Tensor before = state.clone();
    const auto run = [&](const StepProgram& p) {
      state.copy_(before);
      torch::manual_seed(5);
      std::vector<at::Tensor> results = JitExecutor(p).run(random_batch(1), kAlwaysDue);
      results.push_back(state.clone());
      results.push_back(torch::rand({2}));
      return results;
    };
    const auto expected = run(program);
    const auto got = run(passed);
    REQUIRE(expected.size() == got.size());
    for (size_t i = 0; i < got.size(); ++i) {
      CHECK(equal_bytes(expected[i], got[i]));
    }
  }
};

at::Tensor batch_norm(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& var) {
  return std::get<0>(at::native_batch_norm(x, {}, {}, mean, var, true, 0.1, 1e-5));
}

int64_t overloads(const StepProgram& program, const std::string& op) {
  return std::count_if(program.instructions.begin(),
                       program.instructions.end(),
                       [&](const Instruction& i) { return operator_name(i.op) == op; });
}

// Updates as the optimizers' first ones, with numbers that the step makes.
void update(const std::string& name,
            const std::vector<at::Tensor>& params,
            const std::vector<at::Tensor>& grads) {
  register_optimizer_operators();
  std::vector<at::Tensor> moments;
  std::vector<at::Tensor> more_moments;
  std::vector<at::Tensor> steps;
  for (const at::Tensor& param : params) {
    moments.push_back(torch::zeros_like(param));
    more_moments.push_back(torch::zeros_like(param));
    steps.push_back(torch::zeros({}, at::kDouble));
  }
  const auto number = [](double value) { return torch::full({}, value, at::kDouble); };
  torch::jit::Stack stack;
  if (name == "rondo::sgd_") {
    torch::jit::push(stack, params, grads, moments, steps);
    torch::jit::push(stack, number(0.1), number(0.9), number(0), number(0.01), true);
  } else {
    const std::vector<at::Tensor> no_maxima;
    torch::jit::push(stack, params, grads, moments, more_moments, no_maxima, steps);
    torch::jit::push(
        stack, number(0.1), number(0.9), number(0.99), number(1e-8), number(0.01), true);
  }
  c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").callBoxed(&stack);
}

}  // namespace

TEST_CASE("dead code goes; writes, random draws and what they need stay") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    x.sin().cos();           // dead
    torch::rand({3}).exp();  // the draw stays, exp goes
    const at::Tensor t = x.clone();
    t.select(0, 0).mul_(2);  // written, and read below
    state.add_(x.mean(0));   // outlives the step
    x.clone().add_(1);       // a write that nothing sees
    return t.sum();
  });
  const StepProgram passed = remove_dead_code(recorded.program);
  CHECK(count(passed, "aten::sin") == 0);
  CHECK(count(passed, "aten::cos") == 0);
  CHECK(count(passed, "aten::exp") == 0);
  CHECK(count(passed, "aten::rand") == 1);
  CHECK(count(passed, "aten::mul_") == 1);
  CHECK(count(passed, "aten::clone") == 1);
  CHECK(count(passed, "aten::add_") == 1);
  recorded.check_same(passed);
}

TEST_CASE("a batch norm whose result nothing uses still moves its statistics") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    batch_norm(x, state, torch::ones({6}));
    return x.sum();
  });
  const StepProgram passed = remove_dead_code(recorded.program);
  CHECK(count(passed, "aten::native_batch_norm") == 1);
  recorded.check_same(passed);
}

TEST_CASE("equal computations are done once") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor&) {
    return (x.t().mm(x.sin()) + x.t().mm(x.sin())).sum() + x.sum(0).sum() + x.sum(1).sum();
  });
  const StepProgram passed = merge_common_subexpressions(recorded.program);
  CHECK(count(recorded.program, "aten::sin") == 2);
  CHECK(count(passed, "aten::sin") == 1);
  CHECK(count(passed, "aten::mm") == 1);
  CHECK(count(passed, "aten::sum") == count(recorded.program, "aten::sum"));
  recorded.check_same(passed);
}

TEST_CASE("of equal results that are handed out, each who gets one gets its own") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor&) { return x.sum(0) + x.exp().sum(); },
                    [](BodyRequests& requests, const at::Tensor& y) {
                      const HostFunction nothing;
                      const at::Tensor kept = y.sin() + 1;  // of the step alone
                      for (int i = 0; i < 2; ++i) {
                        requests.defer({{y.clone(), y.sin(), y.view({6, 1})}, nothing, {}});
                      }
                      requests.defer({{kept}, nothing, {}});
                    });
  const StepProgram passed = merge_common_subexpressions(recorded.program);
  CHECK(count(recorded.program, "aten::clone") == 2);
  CHECK(count(passed, "aten::clone") == 2);
  CHECK(count(recorded.program, "aten::sin") == 3);
  CHECK(count(passed, "aten::sin") == 2);
  CHECK(count(recorded.program, "aten::view") == 2);
  CHECK(count(passed, "aten::view") == 1);
  recorded.check_same(passed);
}

TEST_CASE("what writes, draws, or is written in between is not merged") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor a = torch::rand({6}) + torch::rand({6});
    const at::Tensor before = state.exp();
    state.add_(1);
    const at::Tensor after = state.exp();
    at::Tensor ones = torch::ones({6});
    ones.add_(a);
    const at::Tensor other = torch::ones({6});
    const at::Tensor norms = batch_norm(x, state, ones) + batch_norm(x, state, ones);
    return norms.sum() + (before + after + other).sum();
  });
  const StepProgram passed = merge_common_subexpressions(recorded.program);
  CHECK(count(passed, "aten::rand") == 2);
  CHECK(count(passed, "aten::exp") == 2);
  CHECK(count(passed, "aten::ones") == 2);
  CHECK(count(passed, "aten::native_batch_norm") == 2);
  recorded.check_same(passed);
}

TEST_CASE("views of the whole of a tensor in its own shape go") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor same = x.detach().t().t().alias();
    const at::Tensor wide = state.expand({6}).unsqueeze(0);
    return (same * wide).sum();
  });
  const StepProgram passed = remove_identity_views(recorded.program);
  CHECK(count(passed, "aten::detach") == 0);
  CHECK(count(passed, "aten::alias") == 0);
  CHECK(count(passed, "aten::expand") == 0);
  CHECK(count(passed, "aten::t") == 1);
  CHECK(count(passed, "aten::unsqueeze") == 1);
  recorded.check_same(passed);
}

TEST_CASE("copies go unless someone writes into the copy or the source, or gets the copy") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor needless = x.clone().narrow(0, 1, 2).exp();
    at::Tensor written = x.clone();
    written.mul_(2);
    const at::Tensor kept = state.clone();
    state.add_(1);
    const at::Tensor out = written.sum() + (kept * state).sum() + needless.sum();
    return out.clone();
  });
  const StepProgram passed = remove_needless_copies(recorded.program);
  CHECK(count(recorded.program, "aten::clone") == 4);
  CHECK(count(passed, "aten::clone") == 3);
  recorded.check_same(passed);
}

TEST_CASE("copies that `to` makes go alike, and one that has nothing to do makes none") {
  constexpr bool kNow = false;  // non_blocking
  constexpr bool kCopies = true;
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor same = x.to(at::kFloat).to(x.options());  // x itself
    const at::Tensor needless = same.to(at::kFloat, kNow, kCopies).exp();
    const at::Tensor written = x.to(at::kFloat, kNow, kCopies);
    written.mul_(2);
    const at::Tensor kept = state.to(at::kFloat, kNow, kCopies);
    state.add_(1);
    const at::Tensor wider = x.to(at::kDouble).sum();
    return needless.sum() + written.sum() + (kept * state).sum() + wider;
  });
  const StepProgram passed = remove_needless_copies(recorded.program);
  CHECK(count(recorded.program, "aten::_to_copy") == 4);
  CHECK(count(recorded.program, "aten::to") == 0);
  CHECK(count(passed, "aten::_to_copy") == 3);
  recorded.check_same(passed);
}

TEST_CASE("the clean-up of a whole step leaves the same bytes") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor w = state.detach().clone().view({6, 1}).requires_grad_(true);
    const at::Tensor loss = torch::dropout(x.mm(w), 0.5, true).square().mean();
    const at::Tensor grad = torch::autograd::grad({loss}, {w})[0];
    state.sub_(grad.view({6}) * 0.1);
    return loss;
  });
  const StepProgram passed = clean_up(recorded.program).program;
  CHECK(passed.instructions.size() < recorded.program.instructions.size());
  recorded.check_same(passed);
}

TEST_CASE("a product that is only copied or added somewhere is computed there") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor kept = torch::zeros({6, 6});
    kept.copy_(x.t().mm(x));
    const at::Tensor more = x.t().mm(x.sin());
    kept.add_(more);
    state.add_(kept.sum(0));
    return kept.sum();
  });
  const StepProgram passed = put_products_in_place(recorded.program);
  CHECK(count(passed, "aten::mm") == 0);
  CHECK(count(passed, "rondo::mm_to_") == 2);
  CHECK(count(passed, "aten::copy_") == 0);
  recorded.check_same(passed);
}

TEST_CASE("a product stays where it is when it, or what it goes to, is used in between") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor&) {
    const at::Tensor read_between = torch::zeros({6, 6});
    const at::Tensor a = x.t().mm(x);
    const at::Tensor sum = read_between.sum();
    read_between.copy_(a);
    const at::Tensor used_twice = torch::zeros({6, 6});
    const at::Tensor b = x.t().mm(x.cos());
    used_twice.add_(b);
    const at::Tensor scaled = torch::zeros({6, 6});
    scaled.add_(x.t().mm(x.exp()), 0.5);
    return read_between.sum() + sum + used_twice.sum() + b.sum() + scaled.sum();
  });
  const StepProgram passed = put_products_in_place(recorded.program);
  CHECK(count(passed, "rondo::mm_to_") == 0);
  recorded.check_same(passed);
}

TEST_CASE("a sum of products is added up in the first of them, unless that is needed later") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    at::Tensor sum = x.t().mm(x);
    sum = sum + x.t().mm(x.sin());
    sum = sum + x.t().mm(x.cos());
    const at::Tensor needed = x.t().mm(x.exp());
    const at::Tensor other = needed + x.t().mm(x.tanh());
    state.add_((sum + needed).sum(0));
    return (other + sum).t();
  });
  const StepProgram passed = put_products_in_place(recorded.program);
  CHECK(count(passed, "rondo::mm_to_") == 2);
  CHECK(count(passed, "aten::mm") == 3);
  recorded.check_same(passed);
}

TEST_CASE("a sum that is the step's output may be added up in a product's place") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor&) {
    const at::Tensor first = x.t().mm(x);
    return first + x.t().mm(x.sin());
  });
  const StepProgram passed = put_products_in_place(recorded.program);
  CHECK(count(passed, "rondo::mm_to_") == 1);
  recorded.check_same(passed);
}

TEST_CASE("clipping's scale goes into the update that uses the gradients next") {
  for (const char* name : {"rondo::sgd_", "rondo::adam_"}) {
    CAPTURE(name);
    Recorded recorded([&](const at::Tensor& x, const at::Tensor& state) {
      const at::Tensor other = torch::ones({8, 6});
      const std::vector<at::Tensor> grads = {x.sum(0), x.sin()};
      clip_by_norm_(grads, 0.5);
      update(name, {state, other}, grads);
      return other + grads[1];
    });
    const StepProgram passed = scale_gradients_in_updates(recorded.program);
    CHECK(overloads(recorded.program, "aten::mul_.Tensor") == 2);
    CHECK(overloads(passed, "aten::mul_.Tensor") == 0);
    CHECK(overloads(passed, std::string(name) + ".scaled") == 1);
    recorded.check_same(passed);
  }
}

TEST_CASE("scaled gradients that something sees before the update are scaled where they were") {
  using Between = std::function<void(const at::Tensor& grad, const at::Tensor& scale)>;
  const auto check_kept = [](const at::ScalarType scale_dtype, const Between& between) {
    Recorded recorded([&](const at::Tensor& x, const at::Tensor& state) {
      const at::Tensor grad = x.sum(0);
      const at::Tensor scale = x.select(0, 1).select(0, 2).to(scale_dtype, false, /*copy=*/true);
      grad.mul_(scale);
      between(grad, scale);
      update("rondo::sgd_", {state}, {grad});
      return grad + scale;
    });
    const StepProgram passed = scale_gradients_in_updates(recorded.program);
    CHECK(overloads(passed, "rondo::sgd_.scaled") == 0);
    recorded.check_same(passed);
  };
  check_kept(at::kFloat,
             [](const at::Tensor& grad, const at::Tensor& scale) { scale.add_(grad.norm()); });
  check_kept(at::kFloat, [](const at::Tensor& grad, const at::Tensor&) { grad.clamp_(-1, 1); });
  check_kept(at::kFloat, [](const at::Tensor&, const at::Tensor& scale) { scale.add_(1); });
  check_kept(at::kDouble, [](const at::Tensor&, const at::Tensor&) {});
}

TEST_CASE("a gradient that two parameters share is scaled once") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor other = torch::ones({6});
    const at::Tensor grad = x.sum(0);
    grad.mul_(x.norm());
    update("rondo::sgd_", {state, other}, {grad, grad});
    return other;
  });
  const StepProgram passed = scale_gradients_in_updates(recorded.program);
  CHECK(overloads(passed, "rondo::sgd_.scaled") == 0);
  recorded.check_same(passed);
}

TEST_CASE("an update of which only some gradients are scaled, or by several numbers, is left") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor other = torch::ones({8, 6});
    const std::vector<at::Tensor> grads = {x.sum(0), x.sin()};
    grads[0].mul_(x.norm());
    update("rondo::sgd_", {state, other}, grads);
    grads[0].mul_(x.norm());
    grads[1].mul_(x.sum());
    update("rondo::sgd_", {state, other}, grads);
    return other;
  });
  const StepProgram passed = scale_gradients_in_updates(recorded.program);
  CHECK(overloads(passed, "rondo::sgd_.scaled") == 0);
  recorded.check_same(passed);
}

TEST_CASE("gradients of parts of a tensor are written at once, -0 and repeated parts as before") {
  const auto part = [](const at::Tensor& gradient, int64_t index) {
    return at::select_backward(gradient, {8, 3, 6}, 1, index);
  };
  Recorded recorded([&](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor zeros = -torch::relu(x);  // some of them -0
    const at::Tensor once = part(zeros, 2) + part(x.sin(), 0) + part(x.cos(), -2);
    const at::Tensor twice = part(zeros, 1) + part(-zeros, 1);
    const at::Tensor seen = part(x.exp(), 0);
    const at::Tensor more = seen + part(x.tanh(), 1);
    const at::Tensor slices = at::slice_backward(x.narrow(1, 0, 2), {8, 6}, 1, 1, 3, 1) +
                              at::slice_backward(zeros.narrow(1, 0, 2), {8, 6}, -1, -2, 1 << 30, 1);
    // Starts before the beginning, where the second part lies as well.
    const at::Tensor all = at::slice_backward(x, {8, 6}, 0, -20, 1 << 30, 1);
    const at::Tensor over_all = all + at::select_backward(x[0], {8, 6}, 0, 0);
    state.add_(twice.sum() + seen.sum());
    return torch::cat({once.flatten(), more.flatten(), slices.flatten(), over_all.flatten()});
  });
  const StepProgram passed = write_gradients_of_parts_once(recorded.program);
  CHECK(count(passed, "rondo::gradients_of_parts") == 2);
  CHECK(count(passed, "aten::select_backward") == 5);
  CHECK(count(passed, "aten::slice_backward") == 1);
  recorded.check_same(passed);
}

TEST_CASE("the gradient of a mean of cross entropies is made from the logarithms at once") {
  int64_t reduction = at::Reduction::Mean;
  int64_t dim = 1;
  bool has_weights = false;
  bool is_seen = false;
  bool changes = false;
  const auto is_fused = [&] {
    Recorded recorded([&](const at::Tensor& x, const at::Tensor& state) {
      const at::Tensor labels = torch::arange(8).remainder(6);
      const auto weights =
          has_weights ? c10::optional<at::Tensor>(torch::arange(1, 7, at::kFloat)) : c10::nullopt;
      const at::Tensor logs = at::log_softmax(x, 1);
      const auto [loss, weight] = at::nll_loss_forward(logs, labels, weights, reduction, 3);
      const at::Tensor gradient = at::full({}, 0.5F);
      const at::Tensor of_logs =
          at::nll_loss_backward(gradient, logs, labels, weights, reduction, 3, weight);
      if (changes) {
        weight.mul_(2);
      }
      const at::Tensor made = at::_log_softmax_backward_data(of_logs, logs, dim, at::kFloat);
      state.add_(loss.sum());
      return is_seen ? made + of_logs : made;
    });
    const StepProgram passed = fuse_cross_entropy_backward(recorded.program);
    recorded.check_same(passed);
    const auto made = count(passed, "rondo::cross_entropy_backward");
    CHECK(made + count(passed, "aten::nll_loss_backward") == 1);
    return made == 1;
  };
  CHECK(is_fused());
  dim = -1;
  CHECK(is_fused());
  SUBCASE("a sum is another thing") {
    reduction = at::Reduction::Sum;
  }
  SUBCASE("so are classes of different weights") {
    has_weights = true;
  }
  SUBCASE("another one sees the gradient of the logarithms") {
    is_seen = true;
  }
  SUBCASE("an argument is another one by then") {
    changes = true;
  }
  SUBCASE("the logarithms are of columns") {
    dim = 0;
  }
  CHECK_FALSE(is_fused());
}

TEST_CASE("gradients that change before the sum is done are left where they are") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor&) {
    const at::Tensor gradient = x.clone();
    const at::Tensor first = at::select_backward(gradient, {8, 3, 6}, 1, 0);
    gradient.mul_(2);
    return first + at::select_backward(gradient, {8, 3, 6}, 1, 1);
  });
  const StepProgram passed = write_gradients_of_parts_once(recorded.program);
  CHECK(count(passed, "rondo::gradients_of_parts") == 0);
  recorded.check_same(passed);
}

TEST_CASE("gradients of parts that are added up in place") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor&) {
    const at::Tensor sum = at::select_backward(x, {8, 3, 6}, 1, 0);
    sum.add_(at::select_backward(x.sin(), {8, 3, 6}, 1, 2));
    sum.add_(at::select_backward(x.cos(), {8, 3, 6}, 1, 1));
    return sum;
  });
  const StepProgram passed = write_gradients_of_parts_once(recorded.program);
  CHECK(count(passed, "rondo::gradients_of_parts") == 1);
  CHECK(count(passed, "aten::add_") == 0);
  recorded.check_same(passed);
}

TEST_CASE("what follows from shapes alone is computed once; what is written into is not") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor ones = torch::ones_like(x);
    const at::Tensor written = torch::zeros({6});
    written.add_(1);
    state.add_(written);
    return (x + ones + torch::arange(6)).sum();
  });
  const StepProgram passed = fold_constants(recorded.program);
  CHECK(count(passed, "aten::ones_like") == 0);
  CHECK(count(passed, "aten::arange") == 0);
  CHECK(count(passed, "aten::zeros") == count(recorded.program, "aten::zeros"));
  recorded.check_same(passed);
}

TEST_CASE("what follows from constants is computed once; random numbers and changed ones are not") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor third = torch::ones({}).div(3.0).to(at::kDouble).to(at::kFloat);
    const at::Tensor noise = torch::dropout(torch::ones({6}), 0.5, true);
    const at::Tensor changed = torch::zeros({6});
    const at::Tensor of_changed = changed.cos();
    changed.add_(1);
    state.add_(of_changed + changed.cos());
    return (x * third + noise).sum();
  });
  const StepProgram passed = fold_constants(recorded.program);
  CHECK(count(passed, "aten::div") == 0);
  CHECK(count(passed, "aten::_to_copy") == 0);
  CHECK(count(passed, "aten::bernoulli_") == count(recorded.program, "aten::bernoulli_"));
  CHECK(count(passed, "aten::cos") == 2);
  recorded.check_same(passed);
}

TEST_CASE(
    "of constants in a row the last one is kept; operators of others are not run beforehand") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor&) {
    static const auto scale = c10::Dispatcher::singleton()
                                  .findSchemaOrThrow("rondo_passes_test::scale", "")
                                  .typed<at::Tensor(const at::Tensor&)>();
    at::Tensor bias = torch::ones({6});
    for (int i = 0; i < 5; ++i) {
      bias = bias.cos();
    }
    return (x * scale.call(torch::ones({})) + bias).sum();
  });
  const StepProgram passed = fold_constants(recorded.program);
  CHECK(count(passed, "aten::cos") == 0);
  CHECK(count(passed, "rondo_passes_test::scale") == 1);
  const auto is_constant = [](const Slot& slot) {
    return slot.value.defined() && slot.sizes == std::vector<int64_t>{6} &&
           slot.kind == SlotKind::Constant;
  };
  CHECK(std::count_if(passed.slots.begin(), passed.slots.end(), is_constant) == 1);
  recorded.check_same(passed);
}

TEST_CASE("the gradient of a loss divided by a number begins with a constant") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor weight = state.detach().clone().set_requires_grad(true);
    const at::Tensor loss = (x * weight).sum() / 4.0;
    state.add_(torch::autograd::grad({loss}, {weight})[0]);
    return loss.detach();
  });
  const StepProgram passed = fold_constants(recorded.program);
  CHECK(count(passed, "aten::div") == count(recorded.program, "aten::div") - 1);
  recorded.check_same(passed);
}

TEST_CASE("a pass that is left out leaves its instructions in, and the others are counted") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor&) {
    x.sin();
    return x.cos().sum();
  });
  const CleanedUp all = clean_up(recorded.program);
  const CleanedUp some = clean_up(recorded.program, {"dead_code"});
  CHECK(count(all.program, "aten::sin") == 0);
  CHECK(count(some.program, "aten::sin") == 1);
  const auto applied = [](const CleanedUp& cleaned_up, const std::string& name) {
    const auto found = std::find_if(cleaned_up.applied.begin(),
                                    cleaned_up.applied.end(),
                                    [&](const auto& pass) { return pass.first == name; });
    REQUIRE(found != cleaned_up.applied.end());
    return found->second;
  };
  CHECK(applied(all, "dead_code") == 1);
  CHECK(applied(some, "dead_code") == 0);
  CHECK(all.applied.size() == clean_up_passes().size());
}

TEST_CASE("each instruction knows the closures that need it") {
  Recorded recorded([](const at::Tensor& x, const at::Tensor&) { return x.sum(); },
                    [](BodyRequests& requests, const at::Tensor& y) {
                      requests.defer({{y.exp()}, {}, {}});
                      requests.defer({{y.sin(), y}, {}, {}});
                    });
  const StepProgram program = remove_dead_code(recorded.program);
  REQUIRE(program.closures.size() == 2);
  const std::vector<DueSet> users = find_users(program);
  REQUIRE(users.size() == program.instructions.size());
  for (size_t i = 0; i < users.size(); ++i) {
    const std::string name = operator_name(program.instructions[i].op);
    CAPTURE(name);
    CHECK(users[i] == (name == "aten::exp" ? 1 : name == "aten::sin" ? 2 : kAlwaysDue));
  }
}
