#pragma once

// Every built-in model, and wrappers for plain modules and for files. A model that is a torch
// module itself derives from ModuleModel: "models/module_model.h".
#include "models/builtin/autoencoder.h"
#include "models/builtin/cnn.h"
#include "models/builtin/deep_resnet.h"
#include "models/builtin/diffusion.h"
#include "models/builtin/forecaster.h"
#include "models/builtin/gpt.h"
#include "models/builtin/lstm.h"
#include "models/builtin/mlp.h"
#include "models/builtin/mobile_net.h"
#include "models/builtin/resnet.h"
#include "models/builtin/script_model.h"
#include "models/builtin/table_mlp.h"
#include "models/builtin/u_net.h"
#include "models/builtin/vit.h"
#include "models/forward_error.h"
#include "models/from_module.h"
#include "models/losses/losses.h"
