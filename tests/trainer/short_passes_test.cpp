#include "trainer/short_passes.h"

#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/tensor_dataset.h"
#include "loops/sample_stream.h"

TEST_SUITE_BEGIN("trainer/short_passes");

using namespace rondo;

namespace {

DataLoader loader_of(int64_t samples, int64_t batch_size, bool drop_last = false) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.drop_last = drop_last;
  options.prefetch = 0;
  return DataLoader("train", from_tensors({{"x", torch::arange(samples)}}), options);
}

/// The sizes of the batches of a pass.
std::vector<int64_t> batches_of(const DataLoader& loader) {
  std::vector<int64_t> sizes;
  const std::unique_ptr<BatchStream> stream = loader.stream({}, 1);
  while (const std::optional<Batch> batch = stream->next()) {
    sizes.push_back(batch->size());
  }
  return sizes;
}

}  // namespace

TEST_CASE("two whole groups are left of a long pass, and its end") {
  const DataLoader loader = loader_of(4 * 3 * 10 + 4 + 3, 4);
  const DataLoader shortened = with_short_passes(loader, 3);
  CHECK(batches_of(shortened) == std::vector<int64_t>{4, 4, 4, 4, 4, 4, 4, 3});
  CHECK(shortened.label() == "train");
  CHECK(batches_of(with_short_passes(loader_of(41, 4), 1)) == std::vector<int64_t>{4, 4, 1});
}

TEST_CASE("a short batch that is dropped stays so") {
  const DataLoader loader = loader_of(4 * 3 * 10 + 4 + 3, 4, true);
  CHECK(batches_of(with_short_passes(loader, 3)) == std::vector<int64_t>(7, 4));
}

TEST_CASE("a shortened loader outlives the one that it was made from") {
  std::optional<DataLoader> loader(loader_of(41, 4));
  const DataLoader shortened = with_short_passes(*loader, 1);
  loader.reset();
  CHECK(batches_of(shortened).size() == 3);
}

TEST_CASE("a pass that has nothing to shorten is left as it is") {
  const DataLoader whole = loader_of(4 * 3 * 10, 4);
  CHECK(with_short_passes(whole, 3).is_same(whole));
  const DataLoader brief = loader_of(4 * 3 * 2 + 1, 4);
  CHECK(with_short_passes(brief, 3).is_same(brief));
  const DataLoader iterable = test::stream_loader({41});
  CHECK(with_short_passes(iterable, 3).is_same(iterable));
}

TEST_SUITE_END();
