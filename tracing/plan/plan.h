#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/executor.h"
#include "tracing/kernels/kernel.h"
#include "tracing/plan/plan_memory.h"
#include "tracing/plan/trial.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// How an instruction is run.
enum class Lowering {
  Nothing,   ///< views and allocations: their tensors are there before the first run
  Own,       ///< a kernel of rondo's own
  Out,       ///< LibTorch's operator, writing into the arena
  InPlace,   ///< LibTorch's operator, writing its arguments
  Guard,     ///< LibTorch's operator, whose answer on the host is compared
  Adopting,  ///< LibTorch's operator, whose result is taken over where it was allocated
  Copying,   ///< LibTorch's operator, whose result is copied to its place: the kernel failed
};

const char* to_string(Lowering lowering);

inline constexpr size_t kNeverUsed = static_cast<size_t>(-1);

/// How often a kernel is compared on the data of steps, where no `probe` has shown it to agree on
/// random numbers: equal bytes may be luck once.
inline constexpr int kTrials = 3;

/// One instruction of a plan.
struct PlannedInstruction {
  size_t index = 0;  ///< in the program
  Lowering lowering = Lowering::Nothing;
  DueSet users = kAlwaysDue;  ///< closures that need it: left out when none of them is due
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Trial> trial;  ///< until the kernel has passed often enough
  int trials = 0;                ///< that are left
  std::vector<SlotId> releases;  ///< adopted memory that nothing needs behind it, left out or not
  size_t chain = 1;  ///< instructions from here on that can be run together, see chains.h
};

/// Memory of a plan.
struct PlannedStorage {
  Home home = Home::Arena;
  int64_t bytes = 0;
  size_t first = kNeverUsed;  ///< the first instruction of the program that touches it
  size_t last = 0;            ///< the last one; behind the end when it outlives the step
  size_t memory = 0;          ///< whose place it has: its own number, or of one that dies for it
};

/// A program with a place in memory for each of its tensors and a kernel for each of its
/// instructions.
struct Plan {
  StepProgram program;
  std::vector<Lowering> lowerings;       ///< one an instruction of the program
  std::vector<PlannedStorage> storages;  ///< one a storage of the program
  std::unique_ptr<PlanMemory> memory;
  std::vector<PlannedInstruction> instructions;  ///< without those that need nothing
  int64_t written_over = 0;                      ///< arguments in whose place a result is
  int64_t chains = 0;                            ///< that can be run part by part
};

/// Name by which `backend.without_passes` switches off writing a result over an argument after its
/// last use.
inline constexpr const char* kInPlacePass = "results_in_place";

struct PlanOptions {
  bool exact = true;     ///< only kernels that give the operators' bytes
  bool chains = true;    ///< run element-wise instructions together
  bool in_place = true;  ///< write results over arguments that nothing needs any more
};

/// Options with the passes named in `without_passes` off; names that are not the plan's own are
/// ignored.
PlanOptions plan_options(bool exact, const std::vector<std::string>& without_passes);

/// \param program  cleaned up
Plan make_plan(StepProgram program, const PlanOptions& options = {});

/// The plan for people to read: its memory, and how each instruction is run.
std::string to_text(const Plan& plan);

}  // namespace rondo
