#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rondo {

/// Numbers >= 0 at places, whose sum is known, so that a place can be drawn with a chance in
/// proportion to its number. Everything takes a time that grows with the logarithm of the places.
class PriorityTree {
 public:
  explicit PriorityTree(int64_t places);

  void set(int64_t place, double number);

  double at(int64_t place) const { return tree_[static_cast<size_t>(leaves_ + place)]; }

  double sum() const { return tree_[1]; }

  /// The largest number that was ever set; 1 before.
  double most() const { return most_; }

  /// Makes `most` at least this.
  void raise_most(double number) { most_ = number > most_ ? number : most_; }

  /// The place in which `share` of the sum falls. \param share  in [0, 1)
  int64_t find(double share) const;

 private:
  int64_t leaves_;  // a power of two
  std::vector<double> tree_;
  double most_ = 1.0;
};

}  // namespace rondo
