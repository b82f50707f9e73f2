#include "support/generated_data.h"

#include "core/random.h"
#include "data/tensor_dataset.h"

#include <torch/types.h>
#include <torch/utils.h>

namespace rondo::test {

at::Tensor uniform(at::IntArrayRef sizes) {
  KeyedRandom random(5);
  at::Tensor values = at::empty(sizes);
  float* const data = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    data[i] = static_cast<float>(random.uniform());
  }
  return values;
}

at::Tensor integers(at::IntArrayRef sizes, uint64_t bound, uint64_t seed) {
  KeyedRandom random(seed);
  at::Tensor values = at::empty(sizes, at::kLong);
  int64_t* const data = values.data_ptr<int64_t>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    data[i] = static_cast<int64_t>(random.below(bound));
  }
  return values;
}

Factory<DataSource> images(int64_t channels, int64_t size) {
  return from_tensors(
      {{"image", uniform({12, channels, size, size})}, {"label", integers({12}, 10, 3)}});
}

}  // namespace rondo::test
