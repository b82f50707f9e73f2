#pragma once

// The one place where LibTorch versions differ. Include it from .cpp files only.

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/Storage.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

namespace rondo::compat {

#if TORCH_VERSION_MAJOR >= 2 && TORCH_VERSION_MINOR >= 4

inline bool autocast_enabled(c10::DeviceType device) {
  return at::autocast::is_autocast_enabled(device);
}

inline void set_autocast(c10::DeviceType device, bool on) {
  at::autocast::set_autocast_enabled(device, on);
}

inline at::ScalarType autocast_dtype(c10::DeviceType device) {
  return at::autocast::get_autocast_dtype(device);
}

inline void set_autocast_dtype(c10::DeviceType device, at::ScalarType dtype) {
  at::autocast::set_autocast_dtype(device, dtype);
}

#else

inline bool autocast_enabled(c10::DeviceType device) {
  return device == c10::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}

inline void set_autocast(c10::DeviceType device, bool on) {
  device == c10::kCPU ? at::autocast::set_cpu_enabled(on) : at::autocast::set_enabled(on);
}

inline at::ScalarType autocast_dtype(c10::DeviceType device) {
  return device == c10::kCPU ? at::autocast::get_autocast_cpu_dtype()
                             : at::autocast::get_autocast_gpu_dtype();
}

inline void set_autocast_dtype(c10::DeviceType device, at::ScalarType dtype) {
  device == c10::kCPU ? at::autocast::set_autocast_cpu_dtype(dtype)
                      : at::autocast::set_autocast_gpu_dtype(dtype);
}

#endif

#if TORCH_VERSION_MAJOR >= 2 && TORCH_VERSION_MINOR >= 2

/// Whether new tensors are filled with NaN while algorithms are deterministic.
inline void fill_new_tensors(bool on) {
  at::globalContext().setDeterministicFillUninitializedMemory(on);
}

#else

inline void fill_new_tensors(bool) {}

#endif

#if TORCH_VERSION_MAJOR >= 2

/// Whether the softmax kernels of LibTorch sum up sixteen numbers side by side, not eight.
inline bool sums_sixteen_lanes() {
  return at::get_cpu_capability() == "AVX512";
}

inline void* mutable_data(const c10::Storage& storage) {
  return storage.unsafeGetStorageImpl()->mutable_data();
}

/// The memory of a storage, to be moved out of it.
inline c10::DataPtr& mutable_data_ptr(const c10::Storage& storage) {
  return storage.unsafeGetStorageImpl()->mutable_data_ptr();
}

/// While it lives, backward passes of this thread run on it, on every device.
class BackwardOnThisThread {
 public:
  BackwardOnThisThread() : before_(state().get_multithreading_enabled()) {
    state().set_multithreading_enabled(false);
  }

  BackwardOnThisThread(const BackwardOnThisThread&) = delete;
  BackwardOnThisThread& operator=(const BackwardOnThisThread&) = delete;

  ~BackwardOnThisThread() { state().set_multithreading_enabled(before_); }

 private:
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }

  bool before_;
};

struct WarningSink final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

using WarningHandlerGuard = c10::WarningUtils::WarningHandlerGuard;

#else

inline bool sums_sixteen_lanes() {
  return false;
}

inline void* mutable_data(const c10::Storage& storage) {
  return storage.unsafeGetStorageImpl()->data();
}

/// The memory of a storage, to be moved out of it.
inline c10::DataPtr& mutable_data_ptr(const c10::Storage& storage) {
  return storage.unsafeGetStorageImpl()->data_ptr();
}

/// LibTorch 1.13 has no such switch: a backward pass on another device than the CPU runs elsewhere.
struct BackwardOnThisThread {
  BackwardOnThisThread() {}
};

struct WarningSink final : c10::WarningHandler {
  void process(const c10::SourceLocation&, const std::string&, bool) override {}
};

using WarningHandlerGuard = c10::Warning::WarningHandlerGuard;

#endif

/// While it lives, LibTorch's warnings of this thread are dropped.
class NoWarnings {
 public:
  NoWarnings() : guard_(&sink_) {}

  NoWarnings(const NoWarnings&) = delete;
  NoWarnings& operator=(const NoWarnings&) = delete;

 private:
  WarningSink sink_;
  WarningHandlerGuard guard_;
};

}  // namespace rondo::compat
