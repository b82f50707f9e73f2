#include "tracing/onednn/internal/call.h"

#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace rondo {

bool has_onednn() {
  return true;
}

}  // namespace rondo

namespace rondo::onednn {

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::primitive_attr scratchpad_of_ours() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

/// Grows where it is too small: when a call is made, or first runs on another thread.
void* shared_scratchpad(size_t bytes) {
  constexpr size_t kAlignment = 4096;
  thread_local std::unique_ptr<void, Free> memory;
  thread_local size_t size = 0;
  if (bytes > size) {
    size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    memory.reset(std::aligned_alloc(kAlignment, size));
    if (memory == nullptr) {
      size = 0;
      throw std::bad_alloc();
    }
  }
  return memory.get();
}

}  // namespace

Call::Call(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad, Scratch scratch)
    : stream_(engine()), primitive_(std::move(primitive)) {
  if (scratch == Scratch::Own) {
    add(DNNL_ARG_SCRATCHPAD, inside_of(scratchpad));
  } else if (scratchpad.get_size() > 0) {
    shared_scratchpad_ =
        dnnl::memory(scratchpad, engine(), shared_scratchpad(scratchpad.get_size()));
    add(DNNL_ARG_SCRATCHPAD, shared_scratchpad_);
  }
}

void Call::read(int index, const dnnl::memory::desc& outside, const dnnl::memory::desc& inside) {
  const dnnl::memory given = outside_of(outside);
  if (outside == inside) {
    add(index, given);
    return;
  }
  const dnnl::memory taken = inside_of(inside);
  before_.push_back(copy_of(given, taken));
  add(index, taken);
}

void Call::write(int index, const dnnl::memory::desc& outside, const dnnl::memory::desc& inside) {
  const dnnl::memory wanted = outside_of(outside);
  if (outside == inside) {
    add(index, wanted);
    return;
  }
  const dnnl::memory made = inside_of(inside);
  after_.push_back(copy_of(made, wanted));
  add(index, made);
}

void Call::run(std::initializer_list<const void*> tensors) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    // The library has no memory that is read only.
    tensors_[i].set_data_handle(const_cast<void*>(tensors.begin()[i]));
  }
  if (shared_scratchpad_) {
    const size_t bytes = shared_scratchpad_.get_desc().get_size();
    shared_scratchpad_.set_data_handle(shared_scratchpad(bytes));
  }
  for (const Copy& copy : before_) {
    execute(copy.reorder, copy.arguments);
  }
  execute(primitive_, arguments_);
  for (const Copy& copy : after_) {
    execute(copy.reorder, copy.arguments);
  }
}

void Call::add(int index, dnnl::memory memory) {
  arguments_.push_back({index, memory.get()});
}

dnnl::memory Call::outside_of(const dnnl::memory::desc& outside) {
  return tensors_.emplace_back(outside, engine(), nullptr);
}

dnnl::memory Call::inside_of(const dnnl::memory::desc& inside) {
  bytes_ += static_cast<int64_t>(inside.get_size());
  return memories_.emplace_back(inside, engine());
}

Call::Copy Call::copy_of(const dnnl::memory& from, const dnnl::memory& to) {
  const dnnl::reorder::primitive_desc reorder(
      engine(), from.get_desc(), engine(), to.get_desc(), scratchpad_of_ours());
  const dnnl::memory scratchpad = inside_of(reorder.scratchpad_desc());
  return {dnnl::reorder(reorder),
          {{DNNL_ARG_FROM, from.get()},
           {DNNL_ARG_TO, to.get()},
           {DNNL_ARG_SCRATCHPAD, scratchpad.get()}}};
}

void Call::execute(const dnnl::primitive& primitive, const Arguments& arguments) {
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(
          primitive.get(), stream_.get(), static_cast<int>(arguments.size()), arguments.data()),
      "oneDNN could not run a primitive");
}

}  // namespace rondo::onednn
