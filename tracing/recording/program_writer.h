#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "tracing/program/step_program.h"
#include "tracing/recording/origins.h"
#include "tracing/recording/recorded_call.h"
#include "tracing/recording/slot_table.h"

namespace rondo {

/// Appends instructions to a program that is recorded, each with the place in the code that it
/// comes from.
class ProgramWriter {
 public:
  ProgramWriter(StepProgram& program, SlotTable& table) : program_(program), table_(table) {}

  /// The hook that runs from here on.
  void set_location(std::string_view callback, std::string_view hook);

  const Location& location() const { return program_.locations[static_cast<size_t>(location_)]; }

  /// Where the operator stands whose gradient a node of autograd's graph computes.
  /// \param sequence_number  autograd's, of the node
  const Origin& forward_of(int64_t sequence_number) const {
    return program_.origins[static_cast<size_t>(origins_.forward_of(sequence_number))];
  }

  /// Takes arguments, results and writes out of the call.
  void append(RecordedCall& call);

  /// \param source  a slot of the storage that `view` lies in
  void append_as_strided(SlotId source, const at::Tensor& view);

  void drop_instruction(size_t place);

  /// ", in forward of net.0 at Net::forward (net.cpp:41)", of a call that cannot be recorded. The
  /// program is of no use afterwards.
  std::string place_of(const RecordedCall& call);

 private:
  void append(Instruction instruction);
  Instruction as_far_as_read(const RecordedCall& call) const;

  StepProgram& program_;
  SlotTable& table_;
  OriginTracker origins_;
  int32_t location_ = 0;
};

}  // namespace rondo
