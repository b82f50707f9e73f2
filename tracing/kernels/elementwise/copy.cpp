#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "core/parallel.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/lanes.h"
#include "tracing/kernels/stored_numbers.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// Copies from one order of elements to another, such as what attention does to its heads: rows that
// lie side by side in both are copied whole, others are turned in tiles of eight by eight.

using HalfLanes = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));

/// Elements that are `to` apart in the copy and `from` apart in the original.
struct Dimension {
  int64_t size;
  int64_t to;
  int64_t from;
};

/// Tiles are `rows.size` times `columns.size` elements; `outer` says where they begin. The elements
/// of a row lie side by side in the copy (columns.to is 1), and those of a row, or of a column, in
/// the original.
struct Tiles {
  std::vector<Dimension> outer;
  Dimension rows;
  Dimension columns;

  int64_t count() const {
    int64_t count = 1;
    for (const Dimension& dimension : outer) {
      count *= dimension.size;
    }
    return count;
  }
};

std::vector<Dimension> merged(const std::vector<Dimension>& dimensions) {
  std::vector<Dimension> fewest;
  for (const Dimension& inner : dimensions) {
    const bool goes_on = !fewest.empty() && fewest.back().to == inner.to * inner.size &&
                         fewest.back().from == inner.from * inner.size;
    if (goes_on) {
      fewest.back() = {fewest.back().size * inner.size, inner.to, inner.from};
    } else {
      fewest.push_back(inner);
    }
  }
  return fewest;
}

/// None where the elements of either lie apart, or there are none. Many that lie side by side in
/// both are left to LibTorch, which copies them with all threads.
std::optional<Tiles> tiles_of(const Slot& copy, const Slot& original) {
  std::vector<Dimension> dimensions;
  for (size_t d = 0; d < copy.sizes.size(); ++d) {
    if (copy.sizes[d] == 0) {
      return std::nullopt;
    }
    if (copy.sizes[d] > 1) {
      dimensions.push_back({copy.sizes[d], copy.strides[d], original.strides[d]});
    }
  }
  std::stable_sort(dimensions.begin(), dimensions.end(), [](const auto& a, const auto& b) {
    return a.to > b.to;
  });
  dimensions = merged(dimensions);
  if (dimensions.empty() || dimensions.back().to != 1) {
    return std::nullopt;
  }
  Tiles tiles{{}, {1, 0, 0}, dimensions.back()};
  dimensions.pop_back();
  auto rows = dimensions.end();
  if (tiles.columns.from != 1) {
    rows = std::find_if(
        dimensions.begin(), dimensions.end(), [](const auto& d) { return d.from == 1; });
    if (rows == dimensions.end()) {
      return std::nullopt;
    }
  } else if (!dimensions.empty()) {
    --rows;
  }
  if (rows == dimensions.end()) {
    return tiles.columns.size < kElementsOfThread ? std::optional(tiles) : std::nullopt;
  }
  tiles.rows = *rows;
  dimensions.erase(rows);
  tiles.outer = std::move(dimensions);
  return tiles;
}

// Turns eight rows of eight elements, which lie `from_step` and `to_step` apart.
RONDO_AVX2 RONDO_INLINE void turn_square(const float* from,
                                         int64_t from_step,
                                         float* to,
                                         int64_t to_step) {
  Lanes rows[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) {
    rows[i] = load(from + i * from_step);
  }
  Lanes halves[kLanes];
  for (int64_t i = 0; i < kLanes; i += 4) {
    turn(rows + i, halves + i);
  }
  for (int64_t i = 0; i < 4; ++i) {
    const Lanes low = __builtin_shufflevector(halves[i], halves[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    const Lanes high =
        __builtin_shufflevector(halves[i], halves[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    std::memcpy(to + i * to_step, &low, sizeof low);
    std::memcpy(to + (i + 4) * to_step, &high, sizeof high);
  }
}

// Elements, then pairs of them, then fours change places.
RONDO_AVX2 RONDO_INLINE void turn_square(const BFloat16Bits* from,
                                         int64_t from_step,
                                         BFloat16Bits* to,
                                         int64_t to_step) {
  HalfLanes rows[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) {
    std::memcpy(&rows[i], from + i * from_step, sizeof rows[i]);
  }
  for (int64_t round = 0; round < 3; ++round) {
    HalfLanes mixed[kLanes];
    for (int64_t i = 0; i < kLanes / 2; ++i) {
      const HalfLanes a = rows[i];
      const HalfLanes b = rows[i + kLanes / 2];
      mixed[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      mixed[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    std::copy_n(mixed, kLanes, rows);
  }
  for (int64_t i = 0; i < kLanes; ++i) {
    std::memcpy(to + i * to_step, &rows[i], sizeof rows[i]);
  }
}

template <class Stored>
class CopyKernel final : public Kernel {
 public:
  CopyKernel(Tiles tiles, Operand original, Operand copy)
      : tiles_(std::move(tiles)), original_(original), copy_(copy) {}

  void run() override {
    const int64_t blocks = (tiles_.rows.size + kRowsOfBlock - 1) / kRowsOfBlock;
    const int64_t elements = kRowsOfBlock * tiles_.columns.size;
    parallel_for_each(tiles_.count() * blocks, elements, [&](int64_t i) {
      copy_block(i / blocks, i % blocks * kRowsOfBlock);
    });
  }

 private:
  static constexpr int64_t kRowsOfBlock = 64;

  void copy_block(int64_t tile, int64_t row) const {
    int64_t to = row * tiles_.rows.to;
    int64_t from = row * tiles_.rows.from;
    for (auto dimension = tiles_.outer.rbegin(); dimension != tiles_.outer.rend(); ++dimension) {
      to += tile % dimension->size * dimension->to;
      from += tile % dimension->size * dimension->from;
      tile /= dimension->size;
    }
    const int64_t rows = std::min(kRowsOfBlock, tiles_.rows.size - row);
    if (tiles_.columns.from == 1) {
      copy_rows(copy_.as<Stored>() + to, original_.as<Stored>() + from, rows);
    } else {
      turn_rows(copy_.as<Stored>() + to, original_.as<Stored>() + from, rows);
    }
  }

  void copy_rows(Stored* to, const Stored* from, int64_t rows) const {
    const size_t bytes = static_cast<size_t>(tiles_.columns.size) * sizeof(Stored);
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(to + row * tiles_.rows.to, from + row * tiles_.rows.from, bytes);
    }
  }

  RONDO_AVX2 void turn_rows(Stored* to, const Stored* from, int64_t rows) const {
    const int64_t whole_rows = rows / kLanes * kLanes;
    const int64_t whole_columns = tiles_.columns.size / kLanes * kLanes;
    for (int64_t row = 0; row < whole_rows; row += kLanes) {
      for (int64_t column = 0; column < whole_columns; column += kLanes) {
        turn_square(from + row + column * tiles_.columns.from,
                    tiles_.columns.from,
                    to + row * tiles_.rows.to + column,
                    tiles_.rows.to);
      }
    }
    copy_one_by_one(to, from, 0, whole_rows, whole_columns);
    copy_one_by_one(to, from, whole_rows, rows, 0);
  }

  void copy_one_by_one(
      Stored* to, const Stored* from, int64_t row, int64_t last_row, int64_t column) const {
    for (; row < last_row; ++row) {
      for (int64_t i = column; i < tiles_.columns.size; ++i) {
        to[row * tiles_.rows.to + i] = from[row * tiles_.rows.from + i * tiles_.columns.from];
      }
    }
  }

  Tiles tiles_;
  Operand original_;
  Operand copy_;
};

bool is_known(const Slot* slot) {
  return slot != nullptr && is_stored(slot->dtype);
}

// What is copied within one storage may be written before it is read.
template <size_t kOriginal>
bool accepts(const StepProgram& program, const Instruction& instruction) {
  const Slot* const original = slot_at(program, instruction.arguments, kOriginal);
  const Slot* const copy = slot_at(program, instruction.results, 0);
  return widest_instruction_set() == InstructionSet::Avx2 && is_known(original) && is_known(copy) &&
         original->dtype == copy->dtype && original->sizes == copy->sizes &&
         original->storage != copy->storage && tiles_of(*copy, *original).has_value();
}

template <size_t kOriginal>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  const Slot& copy = *slot_at(program, instruction.results, 0);
  return with_stored(copy.dtype, [&](auto stored) -> std::unique_ptr<Kernel> {
    return std::make_unique<CopyKernel<decltype(stored)>>(
        *tiles_of(copy, *slot_at(program, instruction.arguments, kOriginal)),
        memory.operand(id_at(instruction.arguments, kOriginal)),
        memory.operand(id_at(instruction.results, 0)));
  });
}

}  // namespace

std::vector<OwnKernel> copy_kernels() {
  return {{"aten::clone", accepts<0>, make<0>}, {"aten::copy_", accepts<1>, make<1>}};
}

}  // namespace rondo
