#pragma once

// Every model and every way to make one.
#include "models/cnn.h"
#include "models/from_module.h"
#include "models/gpt.h"
#include "models/lstm.h"
#include "models/mlp.h"
#include "models/module_model.h"
#include "models/resnet.h"
#include "models/script_model.h"
