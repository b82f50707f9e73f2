#include "data/tensor_dataset.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/state_dict.h"

using namespace rondo;

TEST_SUITE_BEGIN("data/tensor_dataset");

TEST_CASE("samples and batches are rows of the tensors") {
  const at::Tensor x = at::rand({5, 2, 3});
  const at::Tensor y = at::arange(5);
  const TensorDataset data({{{"x", x}, {"y", y}}});
  CHECK(data.size() == 5);
  CHECK(equal_bytes(data.get(3)["x"], x[3]));
  CHECK(data.get(3)["y"].dim() == 0);
  const Batch batch = data.get_batch({4, 0, 4});
  CHECK(equal_bytes(batch["x"], x.index_select(0, torch::tensor({4, 0, 4}))));
  CHECK(equal_bytes(batch["y"], torch::tensor({4, 0, 4})));
}

TEST_CASE("tensors that are views, need gradients or hold no sample are taken by value") {
  const at::Tensor base = at::rand({4, 6});
  const TensorDataset data({{{"x", base.t()}}});
  CHECK(equal_bytes(data.get(5)["x"], base.t()[5].contiguous()));
  CHECK(!TensorDataset({{{"x", at::rand({2}).requires_grad_()}}}).get(0)["x"].requires_grad());
  CHECK(TensorDataset({{{"x", at::empty({0, 3})}}}).get_batch({})["x"].size(1) == 3);
}

TEST_CASE("tensors without samples or of different lengths, and wrong indices, are refused") {
  CHECK_THROWS_AS(TensorDataset({}), UsageError);
  CHECK_THROWS_AS(TensorDataset({{{"x", at::ones({})}}}), UsageError);
  CHECK_THROWS_AS(TensorDataset({{{"x", at::Tensor()}}}), UsageError);
  CHECK_THROWS_AS(TensorDataset({{{"x", at::ones({2})}, {"y", at::ones({3})}}}), UsageError);
  const TensorDataset data({{{"x", at::ones({2})}}});
  CHECK_THROWS_AS(data.get(2), UsageError);
  CHECK_THROWS_AS(data.get(-1), UsageError);
}

TEST_CASE("from_tensors describes a data set") {
  const Factory<DataSource> factory = from_tensors({{"x", at::ones({2})}});
  CHECK(factory.name() == "TensorDataset");
  CHECK(dynamic_cast<const Dataset&>(*factory.make()).size() == 2);
}

TEST_SUITE_END();
