#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tables/record_reader.h"

namespace rondo {

/// The begin of a table, record by record, with the number of the line before each.
struct TableSample {
  using Record = std::vector<std::string>;

  std::vector<Record> records;
  std::vector<int64_t> lines_before;

  /// The number of fields that most records have; the first one counts only when it is alone.
  size_t usual_width() const;
};

/// \param file  for messages
TableSample sample_of(const std::string& file,
                      std::string_view text,
                      const RecordRules& rules,
                      int64_t skip_lines);

}  // namespace rondo
