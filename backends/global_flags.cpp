#include "backends/global_flags.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/InferenceMode.h>

#include "core/fingerprint.h"
#include "core/torch_compat.h"

namespace rondo {

void add_global_flags(Fingerprint& fingerprint) {
  const at::Context& context = at::globalContext();
  uint64_t bits = 0;
  const auto add = [&bits](bool flag) { bits = bits << 1 | uint64_t{flag}; };
  add(at::GradMode::is_enabled());
  add(c10::InferenceMode::is_enabled());
  add(context.deterministicAlgorithms());
  add(context.deterministicAlgorithmsWarnOnly());
  add(context.deterministicCuDNN());
  add(context.benchmarkCuDNN());
  add(context.userEnabledMkldnn());
  for (const c10::DeviceType device : {c10::kCPU, c10::kCUDA}) {
    const bool is_on = compat::autocast_enabled(device);
    add(is_on);
    bits = bits << 8 | (is_on ? static_cast<uint64_t>(compat::autocast_dtype(device)) : 0);
  }
  fingerprint.add(bits);
  fingerprint.add(static_cast<uint64_t>(c10::get_default_dtype_as_scalartype()));
  fingerprint.add(static_cast<uint64_t>(context.float32MatmulPrecision()));
  fingerprint.add(static_cast<uint64_t>(at::get_num_threads()));
}

}  // namespace rondo
