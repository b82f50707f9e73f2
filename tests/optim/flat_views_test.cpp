#include "optim/internal/flat_views.h"

#include <doctest/doctest.h>
#include <torch/types.h>

using namespace rondo;

TEST_SUITE_BEGIN("optim/flat_views");

TEST_CASE("the views share one allocation, in order, without overlap, on cache lines") {
  const std::vector<at::Tensor> values = {at::rand({3, 5}),
                                          at::rand({7}, at::kDouble),
                                          at::rand({}),
                                          at::rand({0, 2}),
                                          at::rand({2, 2}).to(at::kBFloat16)};
  const std::vector<at::Tensor> views = rondo::detail::flat_views_like(values);
  REQUIRE(views.size() == values.size());
  const char* end = static_cast<const char*>(views[0].storage().data_ptr().get());
  for (size_t i = 0; i < views.size(); ++i) {
    CAPTURE(i);
    CHECK(views[i].sizes() == values[i].sizes());
    CHECK(views[i].dtype() == values[i].dtype());
    CHECK(views[i].is_alias_of(views[0]));
    CHECK_FALSE(views[i].requires_grad());
    if (views[i].numel() == 0) {
      continue;
    }
    const char* begin = static_cast<const char*>(views[i].data_ptr());
    CHECK(begin >= end);
    CHECK(reinterpret_cast<uintptr_t>(begin) % 64 == 0);
    end = begin + views[i].nbytes();
  }
  CHECK(end <= static_cast<const char*>(views[0].storage().data_ptr().get()) +
                   views[0].storage().nbytes());
  for (size_t i = 0; i < views.size(); ++i) {
    views[i].copy_(values[i]);
  }
  for (size_t i = 0; i < views.size(); ++i) {
    CHECK(at::equal(views[i], values[i]));
  }
}

TEST_CASE("dense strides are taken over, others become contiguous") {
  const at::Tensor channels_last =
      at::rand({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor every_second = at::rand({6, 4}).slice(0, 0, 6, 2);
  const auto views = rondo::detail::flat_views_like({channels_last, every_second});
  CHECK(views[0].strides() == channels_last.strides());
  CHECK(views[1].is_contiguous());
  CHECK(rondo::detail::flat_views_like({}).empty());
}

TEST_SUITE_END();
