#include "callbacks/core/flat_rooms.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

namespace rondo {

namespace {

/// Those of its dtype, one behind the other.
void copy_out(const std::vector<at::Tensor>& values, const at::Tensor& flat) {
  auto* next = static_cast<char*>(flat.data_ptr());
  for (const at::Tensor& value : values) {
    if (value.scalar_type() == flat.scalar_type()) {
      const at::Tensor plain = value.contiguous().cpu();
      std::memcpy(next, plain.data_ptr(), plain.nbytes());
      next += plain.nbytes();
    }
  }
}

/// The same back.
void copy_back(const at::Tensor& flat, const std::vector<at::Tensor>& values) {
  const auto* next = static_cast<const char*>(flat.data_ptr());
  for (const at::Tensor& value : values) {
    if (value.scalar_type() != flat.scalar_type()) {
      continue;
    }
    const bool is_plain = value.is_contiguous() && value.is_cpu();
    const at::Tensor plain = is_plain ? value : at::empty(value.sizes(), value.scalar_type());
    std::memcpy(plain.data_ptr(), next, plain.nbytes());
    next += plain.nbytes();
    if (!is_plain) {
      value.copy_(plain);
    }
  }
}

}  // namespace

void FlatRooms::each_dtype(const std::vector<at::Tensor>& values,
                           const std::function<void(at::Tensor&)>& work) {
  for (size_t i = 0; i < values.size(); ++i) {
    const at::ScalarType dtype = values[i].scalar_type();
    const auto is_alike = [&](const at::Tensor& value) { return value.scalar_type() == dtype; };
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(values.begin(), first, is_alike)) {
      continue;
    }
    int64_t count = 0;
    for (const at::Tensor& value : values) {
      count += is_alike(value) ? value.numel() : 0;
    }
    at::Tensor& flat = room_for(dtype, count);
    copy_out(values, flat);
    work(flat);
    copy_back(flat, values);
  }
}

at::Tensor& FlatRooms::room_for(at::ScalarType dtype, int64_t count) {
  Rooms& rooms = rooms_[dtype];
  const auto found = std::find_if(rooms.views.begin(),
                                  rooms.views.end(),
                                  [&](const at::Tensor& view) { return view.numel() == count; });
  if (found != rooms.views.end()) {
    return *found;
  }
  if (!rooms.memory.defined() || rooms.memory.numel() < count) {
    rooms.views.clear();
    rooms.memory = at::empty({count}, dtype);
  }
  return rooms.views.emplace_back(rooms.memory.narrow(0, 0, count));
}

}  // namespace rondo
