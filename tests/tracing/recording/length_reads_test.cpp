#include <doctest/doctest.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/step_probe.h"

TEST_SUITE_BEGIN("tracing/recording/length_reads");

using namespace rondo;
using namespace rondo::test;

namespace {

using Lengths = std::vector<int64_t>;
using LengthLoss = std::function<at::Tensor(
    const at::Tensor& x, const at::Tensor& lengths, const at::Tensor& w, const at::Tensor& b)>;

/// A descent whose batches bring lengths: other ones from step 6 on.
StepProbe with_lengths(const LengthLoss& loss, const Lengths& first, const Lengths& then) {
  const at::Tensor w = torch::randn({6, 3}).set_requires_grad(true);
  const at::Tensor b = torch::randn({3}).set_requires_grad(true);
  const at::Tensor lr = torch::full({}, 0.05, at::kDouble);
  StepProbe probe;
  probe.state = {{"w", w}, {"b", b}, {"lr", lr}};
  probe.batch = [=](int step) {
    Batch batch = random_batch(step);
    batch.set("lengths", torch::tensor(step < 6 ? first : then));
    return batch;
  };
  probe.body = [=](Backend&, const Batch& batch) {
    w.mutable_grad().reset();
    b.mutable_grad().reset();
    const at::Tensor value = loss(batch["x"], batch["lengths"], w, b);
    value.backward();
    descend({w, b}, lr);
    return Outputs{{"loss", value}};
  };
  return probe;
}

/// Each list of lengths is recorded, and then replayed.
std::string guarded_against_eager(const LengthLoss& loss,
                                  const Lengths& first,
                                  const Lengths& then) {
  return traced_against_eager([&] { return with_lengths(loss, first, then); }, 14, 4);
}

at::Tensor ctc(const at::Tensor& x,
               const at::Tensor& lengths,
               const at::Tensor& w,
               const at::Tensor& b) {
  const at::Tensor row = (x.matmul(w) + b).unsqueeze(1);
  return at::ctc_loss(at::cat({row, row * 0.5}, 1).log_softmax(2),
                      at::ones({2, 3}, at::kLong),
                      at::full({2}, 8, at::kLong),
                      lengths);
}

at::Tensor packed(const at::Tensor& x, const at::Tensor& lengths) {
  return std::get<0>(at::_pack_padded_sequence(x.view({4, 2, 6}), lengths, false));
}

}  // namespace

// Of all of them maximum and sum stay, so that no size gives the change away.

TEST_CASE("a CTC loss follows the lengths of its batch") {
  CHECK(guarded_against_eager(&ctc, {3, 2}, {2, 3}) == "");
}

TEST_CASE("a split follows the places in its batch") {
  const auto loss =
      [](const at::Tensor& x, const at::Tensor& places, const auto& w, const auto& b) {
        const std::vector<at::Tensor> parts = (x.matmul(w) + b).tensor_split(places, 0);
        return parts[0].square().sum() + parts[1].sum() + parts[2].square().sum() * 2;
      };
  CHECK(guarded_against_eager(loss, {2, 5}, {3, 5}) == "");
}

TEST_CASE("padded sequences are packed by the lengths of their batch") {
  const auto loss =
      [](const at::Tensor& x, const at::Tensor& lengths, const auto& w, const auto& b) {
        return (packed(x * w.sum(), lengths).matmul(w) + b).square().mean();
      };
  CHECK(guarded_against_eager(loss, {4, 2}, {4, 3}) == "");
}

TEST_CASE("a recurrent layer follows the batch sizes of packed sequences") {
  const auto loss = [](const at::Tensor& x, const at::Tensor& sizes, const auto& w, const auto& b) {
    const auto output = std::get<0>(at::gru(x.slice(0, 0, 6),
                                            sizes,
                                            at::zeros({1, 2, 1}),
                                            {w.t(), b.unsqueeze(1)},
                                            /*has_biases=*/false,
                                            /*num_layers=*/1,
                                            /*dropout=*/0.0,
                                            /*train=*/true,
                                            /*bidirectional=*/false));
    const auto padded = std::get<0>(at::_pad_packed_sequence(output, sizes, false, 1.0, 4));
    return (padded * at::arange(8).view({4, 2, 1})).sum();
  };
  CHECK(guarded_against_eager(loss, {2, 2, 1, 1}, {2, 2, 2}) == "");
}

TEST_CASE("lengths that the step makes itself cost no guard") {
  const auto make = [] {
    return with_lengths(
        [](const at::Tensor& x, const at::Tensor&, const auto& w, const auto& b) {
          return ctc(x, torch::tensor({3, 2}), w, b);
        },
        {1},
        {1});
  };
  CHECK(traced_against_eager(make) == "");
}

TEST_SUITE_END();
