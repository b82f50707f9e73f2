#pragma once

// Every optimizer.

#include "optim/adam.h"
#include "optim/sgd.h"
