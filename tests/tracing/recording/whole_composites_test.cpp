#include <doctest/doctest.h>
#include <torch/nn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>

#include "core/state_dict.h"
#include "support/step_probe.h"
#include "tracing/error_text.h"

TEST_SUITE_BEGIN("tracing/recording/whole_composites");

using namespace rondo;
using namespace rondo::test;

namespace {

StepProbe one_hot_training(int64_t classes) {
  return descent([=](const auto& x, const auto& label, const auto& w, const auto& b) {
    const at::Tensor target = torch::one_hot(label, classes).to(at::kFloat);
    return (torch::addmm(b, x, w) - target).square().mean();
  });
}

}  // namespace

TEST_CASE("one_hot with a number of classes is replayed, though it looks at the labels") {
  CHECK(traced_against_eager([] { return one_hot_training(3); }) == "");
}

TEST_CASE("a replay whose label is out of range fails as LibTorch's one_hot does") {
  const auto training = [] {
    StepProbe probe = one_hot_training(3);
    probe.batch = [](int step) {
      Batch batch = random_batch(step);
      batch["label"][0] = step < 5 ? 0 : 3;
      return batch;
    };
    return probe;
  };
  for (const std::string mode : {"eager", "traced"}) {
    const auto backend = backend_of(mode);
    const std::string text = error_text([&] { run_probe(training, *backend, 8); });
    CHECK(text.find("smaller than num_classes") != std::string::npos);
  }
}

TEST_CASE("one_hot without a number of classes reads the labels: what it reads is compared") {
  const auto training = [] {
    return descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
      return plain_loss(x, label, w, b) * torch::one_hot(label).size(1);
    });
  };
  const auto eager = backend_of("eager");
  const auto traced = backend_of("traced");
  const ProbeRun got = run_probe(training, *traced, 8);
  CHECK(first_difference(run_probe(training, *eager, 8).bytes, got.bytes) == "");
  CHECK(got.reports[0].mode == "guarded");
}

TEST_CASE(
    "products and transforms of complex numbers, whose gradients are conjugates, are replayed") {
  CHECK(traced_against_eager([] {
          return descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
            const at::Tensor logits = torch::addmm(b, x, w);
            const at::Tensor number = torch::complex(logits, logits.flip(0));
            const at::Tensor filtered = at::fft_ifft(at::fft_fft(number) * number.conj(), {}, 0);
            return filtered.abs().mean() + torch::imag(number.conj()).mean() +
                   number.matmul(number.t().conj()).abs().mean() + plain_loss(x, label, w, b);
          });
        }) == "");
}

TEST_CASE("the imaginary part of a conjugate has the layout that its readers get") {
  CHECK(traced_against_eager([] {
          return descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
            const at::Tensor logits = torch::addmm(b, x, w);
            const at::Tensor number = torch::complex(logits, logits.flip(0));
            return torch::imag(number.conj()).sum() + torch::imag(number.conj().t()).sum() +
                   plain_loss(x, label, w, b);
          });
        }) == "");
}

TEST_CASE("a write into a conjugate is refused: it would miss what was conjugated") {
  const std::string message = capture_error([] {
    return descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
      const at::Tensor number = torch::complex(x, x.flip(0));
      number.conj().mul_(2.0);
      return plain_loss(torch::real(number), label, w, b);
    });
  });
  CHECK(message.find("wrote into a conjugate") != std::string::npos);
}

TEST_CASE("a batch norm without a momentum averages over all batches in replays too") {
  const auto training = [] {
    const auto options = [](int64_t features) {
      return torch::nn::BatchNorm1dOptions(features).momentum(c10::nullopt).affine(false);
    };
    torch::nn::Sequential norms(
        torch::nn::BatchNorm1d(options(6)), torch::nn::Tanh(), torch::nn::BatchNorm1d(options(6)));
    StepProbe probe =
        descent([=](const auto& x, const auto& label, const auto& w, const auto& b) mutable {
          return plain_loss(norms->forward(x), label, w, b);
        });
    for (const auto& buffer : norms->named_buffers()) {
      probe.state.emplace_back(buffer.key(), buffer.value());
    }
    return probe;
  };
  CHECK(traced_against_eager(training) == "");
  const auto traced = backend_of("traced");
  CHECK(run_probe(training, *traced, 8).reports[0].guards.empty());
}

TEST_CASE("a tensor whose bytes stand for their negatives is refused") {
  const std::string message = capture_error([] {
    return descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
      return plain_loss(at::_neg_view(x).clone(), label, w, b);
    });
  });
  CHECK(message.find("resolve_neg") != std::string::npos);
}

TEST_SUITE_END();
