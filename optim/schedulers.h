#pragma once

// Every scheduler.

#include "optim/lr_schedulers.h"
#include "optim/sequential_lr.h"
