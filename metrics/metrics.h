#pragma once

// Every metric.
#include "metrics/accuracy.h"
#include "metrics/mean.h"
#include "metrics/mean_squared_error.h"
#include "metrics/perplexity.h"
