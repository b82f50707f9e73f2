#pragma once

#include <string>
#include <vector>

#include "core/factory.h"
#include "data/dataset.h"
#include "models/model.h"

namespace rondo::test {

/// A small model with twelve samples of its shape.
struct ModelOnData {
  std::string name;  ///< as a config has it
  Factory<Model> (*model)(double dropout);
  Factory<DataSource> (*data)();
  bool is_basic = false;  ///< its parts are those of many; the others have few parts of their own
};

/// At least one for each model that a config can name; a test of trainer/equality says so.
const std::vector<ModelOnData>& every_model();

}  // namespace rondo::test
