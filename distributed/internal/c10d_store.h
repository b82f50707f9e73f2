#pragma once

// LibTorch's store, for what builds on it: .cpp files that include key_store.h.

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rondo {

struct C10dStore {
  c10::intrusive_ptr<c10d::Store> store;
};

}  // namespace rondo
