#pragma once

#include <string>
#include <utility>

namespace rondo {

/// A share of zeros as a function of how much of the window of mask updates is over:
/// `to + (from - to) left`, where `left` goes from 1 to 0.
struct SparsitySchedule {
  double from = 0.0;            ///< in [0, 1): at the beginning of the window and before it
  double to = 0.0;              ///< in [0, 1): at its end and after it
  std::string form = "cosine";  ///< "constant" (always `to`), "linear", "cosine" or "polynomial"
  double power = 3.0;           ///< > 0, of "polynomial"

  SparsitySchedule() = default;

  /// Always the same share.
  SparsitySchedule(double constant)  // NOLINT(google-explicit-constructor): reads as a number
      : from(constant), to(constant), form("constant") {}

  SparsitySchedule(double first, double last, std::string course, double exponent = 3.0)
      : from(first), to(last), form(std::move(course)), power(exponent) {}

  /// \param done  share of the window that is over, in [0, 1]
  /// Source: Zhu and Gupta 2017, arXiv:1710.01878, for "polynomial" with power 3
  double at(double done) const;

  bool is_constant() const { return form == "constant" || from == to; }

  /// \throws UsageError  naming the key that is out of its range
  void check() const;
};

}  // namespace rondo
