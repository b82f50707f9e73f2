#pragma once

// Every built-in model, and wrappers for plain modules and for files. A model that is a torch
// module itself derives from ModuleModel: "models/module_model.h".
#include "models/autoencoder.h"
#include "models/cnn.h"
#include "models/deep_resnet.h"
#include "models/diffusion.h"
#include "models/forecaster.h"
#include "models/forward_error.h"
#include "models/from_module.h"
#include "models/gpt.h"
#include "models/losses/losses.h"
#include "models/lstm.h"
#include "models/mlp.h"
#include "models/mobile_net.h"
#include "models/resnet.h"
#include "models/script_model.h"
#include "models/table_mlp.h"
#include "models/u_net.h"
#include "models/vit.h"
