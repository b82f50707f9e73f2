#include "record/summary_index.h"

namespace rondo {

struct SummaryIndex::Database {};

SummaryIndex::SummaryIndex(const std::filesystem::path&) {}

SummaryIndex::~SummaryIndex() = default;

std::optional<std::string> SummaryIndex::find(const FileIdentity&) {
  return std::nullopt;
}

void SummaryIndex::add(const FileIdentity&, const std::string&) {}

}  // namespace rondo
