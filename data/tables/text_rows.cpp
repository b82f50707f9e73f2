#include "data/tables/text_rows.h"

namespace rondo {

std::string quoted_cell(const std::string& text) {
  std::string cell = "\"";
  for (const char c : text) {
    cell += c == '\n' || c == '\r' ? ' ' : c;
    if (c == '"') {
      cell += '"';
    }
  }
  return cell + "\"";
}

}  // namespace rondo
