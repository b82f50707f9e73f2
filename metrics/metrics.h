#pragma once

// Every metric.
#include "metrics/accuracy.h"
#include "metrics/class_scores.h"
#include "metrics/mean.h"
#include "metrics/ranking.h"
#include "metrics/regression_error.h"
#include "metrics/token_loss.h"
