#include "tracing/graphs/mirrored_numbers.h"

#include <ATen/ops/empty.h>

#include <cstring>

#include "tracing/recording/unrecorded.h"

namespace rondo {

namespace {

constexpr int64_t kPlace = 16;  // of each number: as much as the widest dtype takes

}  // namespace

void MirroredNumbers::add(const at::Tensor& number) {
  numbers_.push_back(number);
}

void MirroredNumbers::allocate() {
  const Unrecorded scope;
  memory_ = at::empty({bytes()}, at::TensorOptions(at::kByte).device(device_));
  for (size_t i = 0; i < numbers_.size(); ++i) {
    const at::Tensor& number = numbers_[i];
    const auto place =
        static_cast<int64_t>(i) * kPlace / static_cast<int64_t>(number.element_size());
    copies_.push_back(at::empty({0}, number.options().device(device_))
                          .set_(memory_.storage(), place, number.sizes(), number.strides()));
  }
}

void MirroredNumbers::update(DeviceGraphs& graphs) {
  if (numbers_.empty()) {
    return;
  }
  const Unrecorded scope;
  const at::Tensor host = graphs.host_bytes(bytes());
  auto* const places = static_cast<char*>(host.data_ptr());
  for (size_t i = 0; i < numbers_.size(); ++i) {
    std::memcpy(places + static_cast<int64_t>(i) * kPlace,
                numbers_[i].data_ptr(),
                numbers_[i].element_size());
  }
  memory_.copy_(host, /*non_blocking=*/true);
}

int64_t MirroredNumbers::bytes() const {
  return kPlace * static_cast<int64_t>(numbers_.size());
}

}  // namespace rondo
