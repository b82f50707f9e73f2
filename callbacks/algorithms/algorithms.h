#pragma once

// Every algorithm that a run can be given, and what one of your own derives from.

#include "callbacks/algorithm.h"
#include "callbacks/algorithms/channels_last.h"
#include "callbacks/algorithms/col_out.h"
#include "callbacks/algorithms/cut_mix.h"
#include "callbacks/algorithms/cut_out.h"
#include "callbacks/algorithms/gradient_clipping.h"
#include "callbacks/algorithms/gyro_dropout.h"
#include "callbacks/algorithms/label_smoothing.h"
#include "callbacks/algorithms/layer_freezing.h"
#include "callbacks/algorithms/mix_up.h"
#include "callbacks/algorithms/no_op_model.h"
#include "callbacks/algorithms/progressive_resizing.h"
#include "callbacks/algorithms/rand_augment.h"
#include "callbacks/algorithms/selective_backprop.h"
#include "callbacks/algorithms/seq_length_warmup.h"
#include "callbacks/algorithms/stochastic_depth.h"
#include "callbacks/algorithms/surgeries.h"
#include "callbacks/core/algorithms_callback.h"
