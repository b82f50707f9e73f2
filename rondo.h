#pragma once

// What a program needs that trains with rondo: the Trainer, and every data set, model, optimizer,
// scheduler, callback and logger. Reaches <ATen/core/Tensor.h>, nothing heavier; models that are
// torch modules include <rondo/module.h>.

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
