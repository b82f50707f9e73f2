#pragma once

// Every built-in model, and models of plain modules and of files. A model that is a torch module
// itself derives from ModuleModel: "models/module_model.h".
#include "models/cnn.h"
#include "models/forward_error.h"
#include "models/from_module.h"
#include "models/gpt.h"
#include "models/lstm.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "models/script_model.h"
#include "models/table_mlp.h"
