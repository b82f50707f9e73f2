#pragma once

// Every callback that a run can be given. Those of the Trainer's slots have headers of their own.

#include "callbacks/compute_norm.h"
#include "callbacks/count_params.h"
#include "callbacks/early_stopper.h"
#include "callbacks/global_callbacks.h"
#include "callbacks/keep_best_checkpoints.h"
#include "callbacks/keep_n_checkpoints.h"
#include "callbacks/load_checkpoint_states.h"
#include "callbacks/log_optimizer_param_group.h"
#include "callbacks/memory_monitor.h"
#include "callbacks/metric_stopper.h"
#include "callbacks/notification.h"
#include "callbacks/notify_command.h"
#include "callbacks/runtime_estimator.h"
#include "callbacks/sample_text.h"
#include "callbacks/save_checkpoint_state.h"
#include "callbacks/scoped_flags.h"
#include "callbacks/speed_monitor.h"
#include "callbacks/threshold_stopper.h"
#include "callbacks/validation_callback.h"
