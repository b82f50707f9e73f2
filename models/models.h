#pragma once

// Every model and every way to make one.
#include "models/from_module.h"
#include "models/mlp.h"
#include "models/module_model.h"
