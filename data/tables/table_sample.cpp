#include "data/tables/table_sample.h"

#include <algorithm>
#include <map>

#include "core/error.h"

namespace rondo {

namespace {

constexpr size_t kSampleBytes = 1 << 18;
constexpr size_t kSampleRecords = 200;

}  // namespace

TableSample sample_of(const std::string& file,
                      std::string_view text,
                      const RecordRules& rules,
                      int64_t skip_lines) {
  const bool is_cut = text.size() > kSampleBytes;
  RecordReader reader(file, text.substr(0, kSampleBytes), rules);
  reader.skip_lines(skip_lines);
  TableSample sample;
  try {
    std::vector<TableField> fields;
    while (sample.records.size() < kSampleRecords && reader.next(fields)) {
      TableSample::Record& record = sample.records.emplace_back();
      for (const TableField& field : fields) {
        record.emplace_back(field.text);
      }
      sample.lines_before.push_back(reader.line() - 1);
    }
  } catch (const DataError&) {
    return sample;  // a quote that the cut left open, or one that the whole reading will report
  }
  if (is_cut && sample.records.size() > 1 && sample.records.size() < kSampleRecords) {
    sample.records.pop_back();  // it may be cut
  }
  return sample;
}

size_t TableSample::usual_width() const {
  std::map<size_t, size_t> counts;
  for (size_t i = records.size() > 1 ? 1 : 0; i < records.size(); ++i) {
    ++counts[records[i].size()];
  }
  const auto most = std::max_element(
      counts.begin(), counts.end(), [](auto a, auto b) { return a.second < b.second; });
  return most == counts.end() ? 0 : most->first;
}

}  // namespace rondo
