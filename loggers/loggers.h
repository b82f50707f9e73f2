#pragma once

// Every logger.

#include "loggers/csv_logger.h"
#include "loggers/in_memory_logger.h"
#include "loggers/jsonl_logger.h"
#include "loggers/progress_logger.h"
#include "loggers/record_logger.h"
#include "loggers/tensorboard_logger.h"
