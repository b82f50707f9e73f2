#pragma once

#include <string>

#include "core/state_dict.h"
#include "data/tables/table.h"

namespace rondo {

struct TableFit;

/// How the files of a table were written, for other files that are read with what was learnt from
/// it. What these files leave open stays "auto", and so does the encoding: words are UTF-8 in
/// memory, whatever a file has.
/// \param asked  what the options said
TableFormat learnt_format(const Table& table, const TableFormat& asked);

/// `asked`, where what it leaves open is as training had it.
/// \throws ConfigError  naming both values of a key that contradicts what was learnt
TableFormat with_learnt(const TableFormat& asked, const TableFormat& learnt);

/// \throws ConfigError  naming both orders, when `date_order` contradicts that of a column of dates
void require_learnt_date_order(const std::string& date_order, const TableFit& fit);

/// What of a format is learnt, as a checkpoint holds it, and back.
/// \throws CheckpointError  for another state
StateDict to_state(const TableFormat& learnt);
TableFormat format_from(const StateDict& state);

}  // namespace rondo
