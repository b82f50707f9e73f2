#pragma once

// Every loss.
#include "models/losses/class_losses.h"
#include "models/losses/share_losses.h"
#include "models/losses/value_losses.h"
