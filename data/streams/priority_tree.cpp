#include "data/streams/priority_tree.h"

#include <algorithm>

namespace rondo {

namespace {

int64_t power_of_two(int64_t least) {
  int64_t power = 1;
  while (power < least) {
    power *= 2;
  }
  return power;
}

}  // namespace

PriorityTree::PriorityTree(int64_t places)
    : leaves_(power_of_two(places)), tree_(static_cast<size_t>(2 * leaves_), 0.0) {}

void PriorityTree::set(int64_t place, double number) {
  auto node = static_cast<size_t>(leaves_ + place);
  tree_[node] = number;
  most_ = std::max(most_, number);
  for (node /= 2; node >= 1; node /= 2) {  // summed again, so that errors do not add up
    tree_[node] = tree_[2 * node] + tree_[2 * node + 1];
  }
}

int64_t PriorityTree::find(double share) const {
  double rest = share * sum();
  size_t node = 1;
  while (node < static_cast<size_t>(leaves_)) {
    node *= 2;
    const bool is_right = rest >= tree_[node] && tree_[node + 1] > 0;
    if (is_right) {
      rest -= tree_[node];
      ++node;
    }
  }
  return static_cast<int64_t>(node) - leaves_;
}

}  // namespace rondo
