#pragma once

// Everything that a program needs to train with rondo: the Trainer, and every data set, model,
// optimizer, scheduler, callback and logger. Of LibTorch it includes nothing heavier than
// <ATen/core/Tensor.h>; models that are torch modules also include <rondo/module.h>.

#include "callbacks/algorithms/algorithms.h"
#include "callbacks/builtin/callbacks.h"
#include "callbacks/core/early_exit_callback.h"
#include "callbacks/core/run_schedule_callback.h"
#include "core/error.h"
#include "core/summary.h"
#include "core/time.h"
#include "data/batch_memory.h"
#include "data/data_loader.h"
#include "data/datasets.h"
#include "loggers/loggers.h"
#include "loops/fit_run.h"
#include "loops/steps/steps.h"
#include "models/models.h"
#include "optim/optimizers.h"
#include "optim/schedulers.h"
#include "sparsity/algorithms.h"
#include "tracing/make_backend.h"
#include "trainer/trainer.h"
