#include "loops/gathered_outputs.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <utility>
#include <vector>

namespace rondo {

namespace {

void put(std::string& bytes, int64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

int64_t take_number(const char*& next) {
  int64_t number = 0;
  std::memcpy(&number, next, sizeof number);
  next += sizeof number;
  return number;
}

/// Read by processes of the same version, in memory that they wrote.
std::string to_bytes(const Outputs& outputs, int64_t batch_idx) {
  std::string bytes;
  put(bytes, batch_idx);
  put(bytes, static_cast<int64_t>(outputs.items().size()));
  for (const TensorMap::Item& item : outputs.items()) {
    const at::Tensor plain = item.second.contiguous();
    put(bytes, static_cast<int64_t>(item.first.size()));
    bytes += item.first;
    put(bytes, static_cast<int64_t>(plain.scalar_type()));
    put(bytes, plain.dim());
    for (const int64_t size : plain.sizes()) {
      put(bytes, size);
    }
    bytes.append(static_cast<const char*>(plain.data_ptr()), plain.nbytes());
  }
  return bytes;
}

std::pair<int64_t, Outputs> from_bytes(const std::string& bytes) {
  const char* next = bytes.data();
  const int64_t batch_idx = take_number(next);
  Outputs outputs;
  for (int64_t left = take_number(next); left > 0; --left) {
    const auto length = static_cast<size_t>(take_number(next));
    const std::string name(next, length);
    next += length;
    const auto dtype = static_cast<at::ScalarType>(take_number(next));
    std::vector<int64_t> sizes(static_cast<size_t>(take_number(next)));
    for (int64_t& size : sizes) {
      size = take_number(next);
    }
    const at::Tensor tensor = at::empty(sizes, dtype);
    if (tensor.nbytes() > 0) {
      std::memcpy(tensor.data_ptr(), next, tensor.nbytes());
    }
    next += tensor.nbytes();
    outputs.set(name, tensor);
  }
  return {batch_idx, std::move(outputs)};
}

}  // namespace

GatheredOutputs::GatheredOutputs(Communicator& communicator, Take take)
    : communicator_(communicator), take_(std::move(take)) {}

void GatheredOutputs::add(const Outputs& outputs, int64_t batch_idx) {
  if (communicator_.world_size() == 1) {
    take_(outputs, batch_idx);
  } else {
    exchange(to_bytes(outputs, batch_idx));
  }
}

// A process without batches sends nothing, until nobody has any.
void GatheredOutputs::finish() {
  while (communicator_.world_size() > 1 && exchange("")) {
  }
}

/// \return whether a process had a batch
bool GatheredOutputs::exchange(const std::string& own) {
  bool has_any = false;
  for (const std::string& bytes : communicator_.all_gather(own)) {
    if (!bytes.empty()) {
      waiting_.insert(from_bytes(bytes));
      has_any = true;
    }
  }
  give();
  return has_any;
}

void GatheredOutputs::give() {
  while (!waiting_.empty() && waiting_.begin()->first == next_) {
    take_(waiting_.begin()->second, next_);
    waiting_.erase(waiting_.begin());
    ++next_;
  }
}

}  // namespace rondo
