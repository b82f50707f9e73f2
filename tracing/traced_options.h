#pragma once

#include <c10/core/Device.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tracing/checks/verify_policy.h"
#include "tracing/graphs/device_graphs.h"
#include "tracing/plan/instruments.h"

namespace rondo {

/// How the traced backend runs what it recorded.
struct TracedOptions {
  VerifyPolicy verify;
  bool explains = false;                    ///< keeps what it takes to explain a NaN
  bool interprets = false;                  ///< with TorchScript's interpreter, not as a plan
  std::vector<std::string> without_passes;  ///< names of passes to leave out
  bool exact = true;                        ///< only what gives the bytes of eager
  Instruments instruments;                  ///< what is measured of each step
  bool throws_on_refusal = false;           ///< else steps that cannot be replayed run as written
  c10::Device device = c10::kCPU;           ///< where steps run
  std::shared_ptr<DeviceGraphs> graphs;     ///< of another device than the CPU; null on it

  bool is_without(const std::string& pass) const {
    return std::find(without_passes.begin(), without_passes.end(), pass) != without_passes.end();
  }
};

}  // namespace rondo
