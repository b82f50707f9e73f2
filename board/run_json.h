#pragma once

#include <string>
#include <utility>
#include <vector>

#include "board/series.h"
#include "record/run_record.h"

namespace rondo {

/// Members of a JSON object: `"key":value,…`; the values are JSON already.
std::string json_members(const std::vector<std::pair<const char*, std::string>>& members);

/// `[a,b]`; the elements are JSON already.
std::string json_list(const std::vector<std::string>& elements);

/// `["a","b"]`
std::string json_texts(const std::vector<std::string>& texts);

/// The object that `/api/runs` has for a run.
/// \param is_partial  only both ends of a long record were read
std::string run_summary_json(const RunRecord& run, const std::string& id, bool is_partial);

/// The object that `/api/run` answers.
/// \param more  further members
std::string run_json(const RunRecord& run, const std::string& id, const std::string& more);

std::string alert_members(const RecordAlert& alert);

/// An object of `/api/series`.
std::string series_json(const Series& series, const std::string& id, const std::string& metric);

/// What `/api/diff` answers.
std::string diff_json(const RunRecord& a, const RunRecord& b);

}  // namespace rondo
