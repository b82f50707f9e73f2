#include "core/operator_facts.h"

#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace rondo {

namespace {

struct Table {
  std::mutex mutex;
  std::map<std::string, OperatorFacts> by_op;  // addresses of entries stay
};

Table& table() {
  static Table all;
  return all;
}

}  // namespace

int64_t TensorShape::elements() const {
  return is_defined
             ? std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<int64_t>())
             : 0;
}

int64_t TensorShape::bytes() const {
  return elements() * static_cast<int64_t>(c10::elementSize(dtype));
}

std::string OperatorFacts::name() const {
  return schema.substr(0, schema.find('('));
}

void register_operator_facts(OperatorFacts facts) {
  const std::string name = facts.name();
  if (name.find("::") == std::string::npos || name == facts.schema) {
    throw UsageError(
        "OperatorFacts.schema: expected \"namespace::name(arguments) -> returns\", got \"" +
        facts.schema + '"');
  }
  const std::lock_guard<std::mutex> lock(table().mutex);
  if (!table().by_op.emplace(name, std::move(facts)).second) {
    throw UsageError("OperatorFacts: " + name + " has some; register them once");
  }
}

const OperatorFacts* find_operator_facts(const std::string& op) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  const auto found = table().by_op.find(op);
  return found == table().by_op.end() ? nullptr : &found->second;
}

}  // namespace rondo
