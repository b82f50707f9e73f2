#pragma once

namespace rondo {

class AlgorithmsCallback;
class DataloaderCallback;
class EarlyExitCallback;
class LoggingCallback;
class PrecisionCallback;
class ReproducibilityCallback;
class RunScheduleCallback;
class SchedulersCallback;
class SparsityCallback;
class TrainStep;

/// The callbacks of the slots that are asked in every batch, found once; never null, owned by the
/// Trainer's map.
struct StepSlots {
  ReproducibilityCallback* reproducibility = nullptr;
  DataloaderCallback* dataloader = nullptr;
  SchedulersCallback* schedulers = nullptr;
  PrecisionCallback* precision = nullptr;
  SparsityCallback* sparsity = nullptr;
  AlgorithmsCallback* algorithms = nullptr;
  TrainStep* step = nullptr;
  LoggingCallback* logging = nullptr;
  EarlyExitCallback* early_exit = nullptr;
  RunScheduleCallback* run_schedule = nullptr;
};

}  // namespace rondo
