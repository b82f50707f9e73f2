#pragma once

// The bodies of a training step that rondo has, and what one of your own works with.

#include "loops/step_context.h"
#include "loops/steps/distillation.h"
#include "loops/steps/sam.h"
#include "loops/steps/standard_step.h"
#include "loops/train_step.h"
