#include "core/dataset_facts.h"

#include <cmath>

namespace rondo {

double DatasetFacts::Target::original(double scaled) const {
  const double value = scaled * factor + shift;
  return is_log ? std::copysign(std::expm1(std::fabs(value)), value) : value;
}

}  // namespace rondo
