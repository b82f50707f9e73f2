#include "optim/optimizer.h"

#include <ATen/record_function.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <functional>
#include <set>

#include "core/error.h"
#include "core/memory_block.h"
#include "optim/adam.h"
#include "optim/schedules/curves.h"
#include "optim/sgd.h"
#include "parameters.h"
#include "support/sign_sgd.h"

using namespace rondo;
using namespace rondo::test;

namespace {

NamedTensors layers() {
  NamedTensors made = parameters(1, at::kFloat, {{3, 2}, {3}, {2, 3}, {2}});
  made[0].first = "in.weight";
  made[1].first = "in.bias";
  made[2].first = "out.weight";
  made[3].first = "out.bias";
  return made;
}

std::vector<std::string> names_in(const ParamGroup& group) {
  std::vector<std::string> names;
  for (const Parameter& parameter : group.params) {
    names.push_back(parameter.name);
  }
  return names;
}

const char* block_of(const at::Tensor& tensor) {
  return MemoryBlock::extent_around(tensor.storage().data_ptr()).begin;
}

std::string message_of_attach(std::vector<ParamGroupOptions> groups) {
  SignSgd optimizer({0.1, std::move(groups)});
  try {
    optimizer.attach(layers());
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// A loss whose gradient in every parameter depends on `x`.
at::Tensor loss_of(const NamedTensors& params, double x) {
  at::Tensor loss = at::zeros({});
  for (const NamedTensor& parameter : params) {
    loss = loss + (parameter.second * x).sin().sum();
  }
  return loss;
}

/// Names of the operators that the dispatcher sees while `work` runs.
std::vector<std::string> operators_of(const std::function<void()>& work) {
  static thread_local std::vector<std::string> names;
  names.clear();
  const auto handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction& call) {
                                   names.push_back(call.name());
                                   return std::unique_ptr<at::ObserverContext>();
                                 }).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  return names;
}

}  // namespace

TEST_SUITE_BEGIN("optim/optimizer");

TEST_CASE("an optimizer of tensor work runs through the same base") {
  const NamedTensors params = layers();
  SignSgd optimizer({0.5});
  optimizer.attach(params);
  const at::Tensor before = params[0].second.detach().clone();
  loss_of(params, 0.01).backward();
  optimizer.step();
  CHECK(at::allclose(params[0].second, before - 0.5));
  CHECK(optimizer.groups()[0].params[0].state("velocity").sum().item<float>() > 0.0);
  CHECK(params[0].second.requires_grad());
  optimizer.zero_grad();
  CHECK_FALSE(params[0].second.grad().defined());
}

TEST_CASE("globs pick parameters for groups; the first that matches wins; the rest come first") {
  SignSgd optimizer({0.1, {{{"*.bias"}, "biases", {{"lr", 0.2}}}, {{"out.*"}, "head", {}}}});
  optimizer.attach(layers());
  REQUIRE(optimizer.groups().size() == 3);
  CHECK(names_in(optimizer.groups()[0]) == std::vector<std::string>{"in.weight"});
  CHECK(optimizer.groups()[0].tag == "");
  CHECK(names_in(optimizer.groups()[1]) == std::vector<std::string>{"in.bias", "out.bias"});
  CHECK(optimizer.groups()[1].tag == "biases");
  CHECK(optimizer.groups()[1]["lr"].item<double>() == 0.2);
  CHECK(names_in(optimizer.groups()[2]) == std::vector<std::string>{"out.weight"});
  CHECK(optimizer.groups()[2]["lr"].item<double>() == 0.1);
}

TEST_CASE("biases and norms can be spared of weight decay, but for those that a group picks") {
  AdamW::Options options;
  options.weight_decay = 0.1;
  options.params = {{{"out.bias"}, "head", {}}};
  options.decay_biases_and_norms = false;
  AdamW optimizer(options);
  optimizer.attach(layers());
  REQUIRE(optimizer.groups().size() == 3);
  CHECK(names_in(optimizer.groups()[0]) == std::vector<std::string>{"in.weight", "out.weight"});
  CHECK(names_in(optimizer.groups()[1]) == std::vector<std::string>{"out.bias"});
  CHECK(names_in(optimizer.groups()[2]) == std::vector<std::string>{"in.bias"});
  CHECK(optimizer.groups()[0]["weight_decay"].item<double>() == 0.1);
  CHECK(optimizer.groups()[1]["weight_decay"].item<double>() == 0.1);
  CHECK(optimizer.groups()[2]["weight_decay"].item<double>() == 0.0);
  const ConstantLR decay({0.2, {}, {"weight_decay"}});
  decay.write({}, optimizer);
  CHECK(optimizer.groups()[0]["weight_decay"].item<double>() == 0.2);
  CHECK(optimizer.groups()[2]["weight_decay"].item<double>() == 0.0);
}

TEST_CASE("a group scales its learning rate, and what a scheduler makes of it") {
  AdamW::Options options;
  options.lr = 0.1;
  options.params = {{{"*.bias"}, "", {{"adjust_learning_rate", 0.5}}}};
  AdamW optimizer(options);
  optimizer.attach(layers());
  CHECK(optimizer.groups()[0]["lr"].item<double>() == 0.1);
  CHECK(optimizer.groups()[1]["lr"].item<double>() == 0.05);
  const ConstantLR constant({0.2});
  constant.write({}, optimizer);
  CHECK(optimizer.groups()[0]["lr"].item<double>() == 0.2);
  CHECK(optimizer.groups()[1]["lr"].item<double>() == 0.1);
}

TEST_CASE("when groups pick everything there is no group of the rest") {
  SignSgd optimizer({0.1, {{{"in.*"}, "a", {}}, {{"*"}, "b", {}}}});
  optimizer.attach(layers());
  REQUIRE(optimizer.groups().size() == 2);
  CHECK(optimizer.groups()[0].tag == "a");
}

TEST_CASE("globs that match nothing, or only what is taken, are an error that names them") {
  CHECK(message_of_attach({{{"*.wieght"}, "", {}}}).find("*.wieght") != std::string::npos);
  CHECK(message_of_attach({{{"*"}, "", {}}, {{"in.bias"}, "", {}}}).find("in.bias") !=
        std::string::npos);
  CHECK(message_of_attach({{{"*.bias", "nothing"}, "", {}}}) == "");
}

TEST_CASE("a group without globs, or with a number that does not exist, is an error at once") {
  CHECK_THROWS_AS(SignSgd({0.1, {{{}, "", {}}}}), UsageError);
  try {
    SignSgd({0.1, {{{"*"}, "", {{"lrr", 0.1}}}}});
    FAIL("accepted");
  } catch (const UsageError& error) {
    CHECK(std::string(error.what()).find("\"lrr\"") != std::string::npos);
    CHECK(std::string(error.what()).find("\"lr\"") != std::string::npos);
  }
}

TEST_CASE("what requires no gradient is left out, and a tied tensor is taken once") {
  NamedTensors params = layers();
  params[1].second.requires_grad_(false);
  params.emplace_back("tied", params[0].second);
  SignSgd optimizer({0.1});
  optimizer.attach(params);
  CHECK(names_in(optimizer.groups()[0]) ==
        std::vector<std::string>{"in.weight", "out.weight", "out.bias"});
}

TEST_CASE("parameters lie in one block, seen by all that share them, their state in another") {
  const NamedTensors params = layers();
  std::vector<at::Tensor> values;
  for (const NamedTensor& parameter : params) {
    values.push_back(parameter.second.detach().clone());
  }
  const at::Tensor alias = params[0].second.detach();
  SignSgd optimizer({0.1, {{{"*.bias"}, "", {}}}});
  optimizer.attach(params);
  const char* const block = block_of(params[0].second);
  const char* const block_of_state = block_of(optimizer.groups()[0].params[0].state("velocity"));
  CHECK(block != nullptr);
  CHECK(block_of_state != nullptr);
  CHECK(block_of_state != block);
  for (ParamGroup& group : optimizer.groups()) {
    for (Parameter& parameter : group.params) {
      CHECK(block_of(parameter.value) == block);
      CHECK(block_of(parameter.state("velocity")) == block_of_state);
    }
  }
  for (size_t i = 0; i < params.size(); ++i) {
    CHECK(at::equal(params[i].second, values[i]));
  }
  loss_of(params, 0.5).backward();
  optimizer.step();
  CHECK_FALSE(at::equal(alias, values[0]));
  CHECK(at::equal(alias, params[0].second));
}

TEST_CASE("memory that a user lent stays where it is, and is trained there") {
  std::vector<float> lent(6, 1.0F);
  const at::Tensor weight = at::from_blob(lent.data(), {6}).requires_grad_(true);
  SignSgd optimizer({0.1, {}});
  optimizer.attach({{"weight", weight}});
  (weight * weight).sum().backward();
  optimizer.step();
  CHECK(weight.data_ptr() == lent.data());
  CHECK(lent[3] == doctest::Approx(0.9));
}

TEST_CASE("attaching nothing, attaching twice and stepping before it are errors") {
  SignSgd optimizer({0.1});
  CHECK_THROWS_AS(optimizer.step(), UsageError);
  CHECK_THROWS_AS(optimizer.attach({{"frozen", at::ones({2})}}), UsageError);
  optimizer.attach(layers());
  CHECK_THROWS_AS(optimizer.attach(layers()), UsageError);
}

TEST_CASE("unknown numbers and states are errors that name the known ones") {
  SignSgd optimizer({0.1});
  optimizer.attach(layers());
  CHECK_THROWS_AS(optimizer.groups()[0]["momentum"], UsageError);
  CHECK_THROWS_AS(optimizer.groups()[0].params[0].state("speed"), UsageError);
}

TEST_CASE("a sparse parameter is refused, naming it") {
  const at::Tensor sparse = at::eye(3).to_sparse().requires_grad_(true);
  SignSgd optimizer({0.1, {}});
  try {
    optimizer.attach({{"table", sparse}});
    FAIL("attached");
  } catch (const NotSupportedError& error) {
    CHECK(std::string(error.what()).find("table") != std::string::npos);
  }
}

TEST_CASE("a sparse gradient is refused, naming the parameter") {
  const NamedTensors params = layers();
  Sgd optimizer({0.1});
  optimizer.attach(params);
  params[0].second.mutable_grad() = at::ones({3, 2}).to_sparse();
  CHECK_THROWS_AS(optimizer.step(), NotSupportedError);
  CHECK_THROWS_AS(optimizer.keep_grads(), NotSupportedError);
}

TEST_CASE("kept gradients add up to the same bits as plain accumulation") {
  const NamedTensors kept = layers();
  const NamedTensors plain = layers();
  SignSgd optimizer({0.1});
  optimizer.attach(kept);
  for (int group = 0; group < 3; ++group) {
    optimizer.zero_grad();
    for (const NamedTensor& parameter : plain) {
      parameter.second.mutable_grad().reset();
    }
    for (int batch = 0; batch < 4; ++batch) {
      const double x = 0.1 + group + 0.3 * batch;
      loss_of(kept, x).backward();
      loss_of(plain, x).backward();
      if (batch < 3) {
        optimizer.keep_grads();
      }
    }
    for (size_t i = 0; i < kept.size(); ++i) {
      CHECK(equal_bytes(kept[i].second.grad(), plain[i].second.grad()));
    }
  }
}

TEST_CASE("kept gradients stay in the same memory, one allocation, in parameter order") {
  const NamedTensors params = layers();
  SignSgd optimizer({0.1, {{{"*.bias"}, "", {}}}});
  optimizer.attach(params);
  loss_of(params, 0.5).backward();
  optimizer.keep_grads();
  std::vector<void*> memory;
  for (const at::Tensor& grad : optimizer.grads()) {
    memory.push_back(grad.data_ptr());
  }
  CHECK(memory.size() == 4);
  CHECK(std::is_sorted(memory.begin(), memory.end()));
  CHECK(block_of(optimizer.grads()[0]) != nullptr);
  CHECK(block_of(optimizer.grads()[0]) == block_of(optimizer.grads()[3]));
  loss_of(params, 0.7).backward();
  optimizer.keep_grads();
  optimizer.zero_grad();
  CHECK(optimizer.grads().empty());
  loss_of(params, 0.9).backward();
  CHECK(params[0].second.grad().data_ptr() != memory[0]);
  optimizer.keep_grads();
  for (size_t i = 0; i < memory.size(); ++i) {
    CHECK(params[i].second.grad().data_ptr() == memory[i]);
  }
}

TEST_CASE("a step that is being recorded sees the copies alone, the first time as later") {
  const NamedTensors params = layers();
  SignSgd optimizer({0.1});
  optimizer.attach(params);
  std::vector<std::vector<std::string>> seen;
  for (int group = 0; group < 2; ++group) {
    optimizer.zero_grad();
    loss_of(params, 0.5).backward();
    seen.push_back(operators_of([&] { optimizer.keep_grads(); }));
    loss_of(params, 0.7).backward();
    CHECK(operators_of([&] { optimizer.keep_grads(); }).empty());
  }
  CHECK(seen[0] == std::vector<std::string>(4, "aten::copy_"));
  CHECK(seen[1] == seen[0]);
}

TEST_CASE("binding shows the kept gradients without touching them") {
  const NamedTensors params = layers();
  SignSgd optimizer({0.1});
  optimizer.attach(params);
  optimizer.bind_grads(true);
  CHECK(optimizer.grads().empty());
  loss_of({params[0], params[1]}, 0.5).backward();
  optimizer.keep_grads();
  const at::Tensor kept = params[0].second.grad().clone();
  optimizer.bind_grads(false);
  CHECK(optimizer.grads().empty());
  optimizer.bind_grads(true);
  CHECK(optimizer.grads().size() == 2);
  CHECK(equal_bytes(params[0].second.grad(), kept));
  CHECK_FALSE(params[2].second.grad().defined());
}

TEST_CASE("the captured state is all that a step reads or writes, under names of their own") {
  const NamedTensors params = layers();
  Sgd optimizer({0.1, 0.9});
  optimizer.attach(params);
  loss_of(params, 0.5).backward();
  optimizer.keep_grads();
  const NamedTensors captured = optimizer.captured_state();
  std::set<std::string> names;
  for (const NamedTensor& tensor : captured) {
    names.insert(tensor.first);
  }
  CHECK(names.size() == captured.size());
  CHECK(captured.size() == 4 + 4 + 2 * 4 + 4);  // parameters, numbers, buffers and steps, gradients
  for (const char* name : {"param/in.weight",
                           "group/0/lr",
                           "state/out.bias/momentum_buffer",
                           "state/out.bias/step",
                           "grad/in.bias"}) {
    CAPTURE(name);
    CHECK(names.count(name) == 1);
  }
}

TEST_SUITE_END();
