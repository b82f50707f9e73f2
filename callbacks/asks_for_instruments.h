#pragma once

#include "tracing/plan/instruments.h"

namespace rondo {

/// A callback that wants something measured of recorded steps. The backend is made for the most
/// timed replays that a callback asks for.
class AsksForInstruments {
 public:
  virtual Instruments instruments() const = 0;

 protected:
  ~AsksForInstruments() = default;
};

}  // namespace rondo
