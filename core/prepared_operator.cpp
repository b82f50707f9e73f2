#include "core/prepared_operator.h"

#include <map>
#include <mutex>
#include <utility>

namespace rondo {

namespace {

struct Table {
  std::mutex mutex;
  std::map<std::string, PrepareCall> by_op;  // addresses of entries stay
};

Table& table() {
  static Table all;
  return all;
}

}  // namespace

void register_prepared_operator(const std::string& op, PrepareCall prepare) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  table().by_op[op] = std::move(prepare);
}

const PrepareCall* find_prepared_operator(const std::string& op) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  const auto found = table().by_op.find(op);
  return found == table().by_op.end() ? nullptr : &found->second;
}

}  // namespace rondo
