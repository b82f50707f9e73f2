#include "tracing/passes/kept_casts.h"

#include <ATen/ops/empty_strided.h>

#include <algorithm>

#include "tracing/program/kernels_only.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

const std::string kPrefix = "cast.";

const void* memory_of(const at::Tensor& tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

uint32_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : tensor._version();
}

/// The whole of a captured tensor in another dtype, made by an instruction for the step alone.
bool is_cast(const StepProgram& program,
             const StorageFacts& facts,
             const Instruction& instruction) {
  if (!has_name(instruction, "aten::_to_copy") ||
      instruction.arguments[0].kind != Argument::Kind::Tensor) {
    return false;
  }
  const Slot& from = slot_of(program, instruction.arguments[0].slots[0]);
  const Slot& to = slot_of(program, instruction.results[0].slots[0]);
  const auto storage = static_cast<size_t>(to.storage);
  return from.kind == SlotKind::Captured && from.dtype != to.dtype && to.offset == 0 &&
         facts.writes[storage].empty() && !facts.escapes[storage];
}

/// The live tensor of a captured slot; undefined when the state has none that is just that.
at::Tensor live_tensor(const CapturedState& state, const at::Tensor& captured) {
  const auto found = std::find_if(state.begin(), state.end(), [&](const auto& named) {
    const at::Tensor& tensor = named.second;
    return tensor.defined() && tensor.is_alias_of(captured) && tensor.sizes() == captured.sizes() &&
           tensor.strides() == captured.strides() &&
           tensor.storage_offset() == captured.storage_offset();
  });
  return found == state.end() ? at::Tensor() : found->second;
}

/// Whether a cast made at the beginning of the group is what the instruction would make: an update
/// comes last, and what comes before it in a group must leave the weights alone.
bool lasts(const StorageFacts& facts,
           const Slot& source,
           size_t index,
           const GroupPosition& position) {
  const std::vector<size_t>& writes = facts.writes[static_cast<size_t>(source.storage)];
  return writes.empty() || (position.is_last && writes.front() > index);
}

/// copy_(kept, source)
Instruction copy_into(SlotId kept, const Instruction& cast) {
  Instruction copy{c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", ""),
                   {Argument::tensor_of(kept), cast.arguments[0], Argument::constant_of(false)},
                   {Argument::tensor_of(kept)},
                   {kept}};
  copy.location = cast.location;
  copy.origin = cast.origin;
  return copy;
}

std::vector<const void*> written_memory(const StepProgram& program) {
  std::vector<bool> is_written(static_cast<size_t>(program.storages), false);
  for (const Instruction& instruction : program.instructions) {
    for (const SlotId slot : instruction.writes) {
      is_written[storage_of(program, slot)] = true;
    }
  }
  std::vector<const void*> memory;
  for (const Slot& slot : program.slots) {
    if (slot.kind == SlotKind::Captured && is_written[static_cast<size_t>(slot.storage)]) {
      memory.push_back(memory_of(slot.value));
    }
  }
  std::sort(memory.begin(), memory.end());
  memory.erase(std::unique(memory.begin(), memory.end()), memory.end());
  return memory;
}

}  // namespace

bool KeptCasts::is_kept(const Slot& slot) {
  return slot.kind == SlotKind::Captured && slot.name.compare(0, kPrefix.size(), kPrefix) == 0;
}

KeptCasts::Use KeptCasts::keep(StepProgram& program,
                               const GroupPosition& position,
                               const CapturedState& state) {
  Use use;
  use.written = written_memory(program);
  if (position.is_first && position.is_last) {
    return use;
  }
  const StorageFacts facts(program);
  std::vector<bool> keep(program.instructions.size(), true);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    Instruction& instruction = program.instructions[i];
    if (instruction.is_opaque) {
      break;  // it may write the weights
    }
    if (!is_cast(program, facts, instruction)) {
      continue;
    }
    const Slot& source = slot_of(program, instruction.arguments[0].slots[0]);
    const at::Tensor live = live_tensor(state, source.value);
    if (!live.defined() || !lasts(facts, source, i, position)) {
      continue;
    }
    const SlotId result = instruction.results[0].slots[0];
    Slot& slot = program.slots[static_cast<size_t>(result)];
    const size_t cast = cast_of(live, slot);
    slot.kind = SlotKind::Captured;
    slot.name = kPrefix + source.name;
    slot.value = casts_[cast].kept;
    if (position.is_first) {
      instruction = copy_into(result, instruction);
      use.made.push_back(cast);
    } else {
      keep[i] = false;
      use.read.push_back(cast);
    }
  }
  keep_instructions(program, keep);
  return use;
}

size_t KeptCasts::cast_of(const at::Tensor& source, const Slot& result) {
  const auto is_it = [&](const Cast& cast) {
    return cast.source.is_same(source) && cast.kept.scalar_type() == result.dtype &&
           cast.kept.sizes() == at::IntArrayRef(result.sizes) &&
           cast.kept.strides() == at::IntArrayRef(result.strides);
  };
  const auto known = std::find_if(casts_.begin(), casts_.end(), is_it);
  if (known != casts_.end()) {
    return static_cast<size_t>(known - casts_.begin());
  }
  const KernelsOnly scope;
  const at::Tensor kept =
      at::empty_strided(result.sizes, result.strides, source.options().dtype(result.dtype));
  kept.copy_(source);  // for who tries kernels before the first replay
  casts_.push_back({source, kept, false, 0});
  return casts_.size() - 1;
}

void KeptCasts::prepare(const Use& use) {
  for (const size_t i : use.read) {
    Cast& cast = casts_[i];
    const uint32_t version = version_of(cast.source);
    if (!cast.is_fresh || cast.version != version) {
      const KernelsOnly scope;
      cast.kept.copy_(cast.source);
      cast.version = version;
    }
    cast.is_fresh = true;
  }
  // A replay that throws leaves nothing that counts as fresh.
  for (Cast& cast : casts_) {
    const bool is_written =
        std::binary_search(use.written.begin(), use.written.end(), memory_of(cast.source));
    cast.is_fresh = cast.is_fresh && !is_written;
  }
  for (const size_t i : use.made) {
    casts_[i].is_fresh = false;
    casts_[i].version = version_of(casts_[i].source);
  }
}

void KeptCasts::finish(const Use& use) {
  for (const size_t i : use.made) {
    casts_[i].is_fresh = true;
  }
}

void KeptCasts::forget() {
  for (Cast& cast : casts_) {
    cast.is_fresh = false;
  }
}

}  // namespace rondo
