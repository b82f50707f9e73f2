#pragma once

// Every scheduler.

#include "optim/schedules/curves.h"
#include "optim/schedules/cycles.h"
#include "optim/schedules/decays.h"
#include "optim/schedules/lambda_lr.h"
#include "optim/schedules/products.h"
#include "optim/schedules/reduce_lr_on_plateau.h"
#include "optim/schedules/sequential_lr.h"
#include "optim/schedules/stairs.h"
