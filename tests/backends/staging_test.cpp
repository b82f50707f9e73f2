#include "backends/staging.h"

#include <doctest/doctest.h>
#include <torch/nn/functional.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <sys/mman.h>

#include <functional>
#include <memory>
#include <string>

#include "support/step_probe.h"
#include "tracing/make_backend.h"

TEST_SUITE_BEGIN("backends/staging");

using namespace rondo;
using namespace rondo::test;
namespace F = torch::nn::functional;

// As a data set's get_batch makes them that cuts a tensor into pieces.
TEST_CASE("batches that are slices of one tensor are one step") {
  const at::Generator numbers = at::detail::createCPUGenerator(5);
  const at::Tensor all = at::randn({200, 6}, numbers, at::TensorOptions());
  const at::Tensor labels = at::randint(3, {200}, numbers, at::TensorOptions().dtype(at::kLong));
  const auto make = [&] {
    StepProbe probe = descent(
        [](const at::Tensor& x, const at::Tensor& label, const at::Tensor& w, const at::Tensor& b) {
          at::Tensor turned = x.narrow(0, 1, 6);
          turned = turned.as_strided({6, 6}, {1, 6}, turned.storage_offset());
          return F::cross_entropy(torch::addmm(b, x, w), label) + turned.mm(w).mean();
        });
    probe.batch = [&](int step) {
      return Batch{{"x", all.narrow(0, 8 * step, 8)}, {"label", labels.narrow(0, 8 * step, 8)}};
    };
    return probe;
  };
  CHECK(traced_against_eager(make, 12, 2) == "");
  BackendOptions options;
  options.executor = "interpreter";
  const auto interpreter = make_backend(options, TextLog(LogLevel::Error));
  CHECK(first_difference(run_probe(make, *interpreter, 12).bytes,
                         run_probe(make, *backend_of("eager"), 12).bytes) == "");
}

TEST_CASE("neighbours cut from one tensor, and of two dtypes, share their memory in every step") {
  const at::Tensor tokens = at::arange(400);
  const auto make = [&] {
    StepProbe probe;
    probe.batch = [&](int step) {
      return Batch{{"tokens", tokens.narrow(0, 9 * step, 8)},
                   {"next", tokens.narrow(0, 9 * step + 1, 8)},
                   {"bytes", tokens.narrow(0, 9 * step + 3, 1).view(at::kByte)}};
    };
    probe.body = [](Backend&, const Batch& batch) {
      return Outputs{{"sum", (batch["tokens"] * batch["next"]).sum() + batch["bytes"].sum()}};
    };
    return probe;
  };
  CHECK(traced_against_eager(make, 12, 2) == "");
}

TEST_CASE("what is written elsewhere into a data set while a step is verified stays") {
  const auto make = [] {
    const at::Tensor all = at::zeros({200, 6});
    const at::Tensor lr = at::full({}, 0.1, at::kDouble);
    StepProbe probe;
    probe.state = {{"lr", lr}};
    probe.batch = [all](int step) { return Batch{{"x", all.narrow(0, 8 * step, 8)}}; };
    auto loaded = std::make_shared<int>(0);
    probe.body = [=](Backend& backend, const Batch& batch) {
      // A loader's thread would do so: rows of the batch after the next one.
      backend.host_call("load", {lr}, [=](const std::vector<at::Tensor>&) {
        ++*loaded;
        all.narrow(0, 8 * (*loaded + 1), 8).fill_(*loaded);
      });
      return Outputs{{"sum", (batch["x"] * lr).sum()}};
    };
    return probe;
  };
  CHECK(traced_against_eager(make, 12, 2) == "");
}

TEST_CASE("batches may lie in memory that is read-only") {
  constexpr size_t kBytes = 200 * 6 * sizeof(float);
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  const at::Tensor all = torch::from_blob(memory, {200, 6});
  all.copy_(at::arange(1200).view({200, 6}));
  REQUIRE(::mprotect(memory, kBytes, PROT_READ) == 0);
  const auto make = [&] {
    StepProbe probe;
    probe.batch = [&](int step) { return Batch{{"x", all.narrow(0, 8 * step, 8)}}; };
    probe.body = [](Backend&, const Batch& batch) {
      return Outputs{{"sum", (batch["x"] * 0.5).sum()}};
    };
    return probe;
  };
  CHECK(traced_against_eager(make, 12, 2) == "");
  ::munmap(memory, kBytes);
}

TEST_CASE("a change in place of what backward needs is an error, also between slices") {
  const at::Tensor all = at::ones({200, 6});
  const auto make = [&] {
    const at::Tensor w = torch::ones({8, 6}).set_requires_grad(true);
    StepProbe probe;
    probe.state = {{"w", w}};
    probe.batch = [&](int step) {
      return Batch{{"x", all.narrow(0, 8 * step, 8)}, {"y", all.narrow(0, 8 * step + 1, 8)}};
    };
    probe.body = [=](Backend&, const Batch& batch) {
      const at::Tensor loss = (batch["x"] * w).sum();
      batch["y"].zero_();
      loss.backward();
      return Outputs{{"loss", loss}};
    };
    return probe;
  };
  for (const char* mode : {"eager", "traced"}) {
    const auto backend = backend_of(mode);
    CHECK_THROWS_AS(run_probe(make, *backend, 3), c10::Error);
  }
}

TEST_CASE("entries that lie apart in one tensor, at any distance, and empty ones are one step") {
  const at::Tensor all = at::arange(2000, at::kFloat);
  const auto make = [&] {
    StepProbe probe;
    probe.batch = [&](int step) {
      return Batch{{"x", all.narrow(0, 48 * step, 48)},
                   {"y", all.narrow(0, 1000 + 8 * step, 8)},
                   {"none", all.narrow(0, 48 * step + 2, 0)}};
    };
    probe.body = [](Backend&, const Batch& batch) {
      return Outputs{{"sum", batch["x"].sum() * batch["y"].sum() + batch["none"].sum()}};
    };
    return probe;
  };
  CHECK(traced_against_eager(make, 12, 2) == "");
}

TEST_CASE("a batch in the memory of state is refused where the step writes it, else taken") {
  // `write` gets the state and the batch's x.
  const auto probe_of = [](const std::function<void(const at::Tensor&, const at::Tensor&)>& write,
                           int64_t first_row) {
    return [=] {
      const at::Tensor pool = at::arange(1200, at::kFloat).view({200, 6}).clone();
      const at::Tensor state = pool.narrow(0, 0, 120);
      StepProbe probe;
      probe.state = {{"pool", state}};
      probe.batch = [=](int step) { return Batch{{"x", pool.narrow(0, first_row + 8 * step, 8)}}; };
      probe.body = [=](Backend&, const Batch& batch) {
        const at::Tensor before = batch["x"].clone();
        write(state, batch["x"]);
        return Outputs{{"sum", before.sum() + state.sum()}};
      };
      return probe;
    };
  };
  const auto write_state = [](const at::Tensor& state, const at::Tensor&) { state.add_(1); };
  const auto write_batch = [](const at::Tensor&, const at::Tensor& x) { x.add_(1); };
  const auto read = [](const at::Tensor&, const at::Tensor&) {};
  for (const auto& message :
       {capture_error(probe_of(write_state, 0)), capture_error(probe_of(write_batch, 0))}) {
    CHECK(message.find("state pool") != std::string::npos);
    CHECK(message.find("batch entry x") != std::string::npos);
  }
  CHECK(traced_against_eager(probe_of(read, 0), 8, 2) == "");
  CHECK(traced_against_eager(probe_of(write_state, 120), 8, 2) == "");
}

TEST_CASE("a batch that is the state itself is refused where the step writes it") {
  const auto make = [] {
    const at::Tensor pool = at::ones({8});
    StepProbe probe;
    probe.state = {{"pool", pool}};
    probe.batch = [=](int step) { return Batch{{"x", step < 4 ? pool : at::zeros({8})}}; };
    probe.body = [=](Backend&, const Batch& batch) {
      pool.add_(1);
      return Outputs{{"sum", batch["x"].sum()}};
    };
    return probe;
  };
  CHECK(capture_error(make).find("share memory") != std::string::npos);
}

TEST_SUITE_END();
