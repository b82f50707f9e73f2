#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace rondo::test {

/// One choice of each kind, by number.
using Choices = std::vector<size_t>;

/// Whether value `a` of kind `i` and value `b` of kind `j` exclude each other; i < j.
using Excludes = std::function<bool(size_t i, size_t a, size_t j, size_t b)>;

/// Rows of choices in which each two values of two kinds meet at least once, except those that
/// exclude each other: pairwise testing. The same rows in each call.
/// Source: Cohen et al. 1997, The AETG system (the greedy choice of rows).
/// \param sizes  how many values each kind has
std::vector<Choices> covering_array(const std::vector<size_t>& sizes, const Excludes& excludes);

}  // namespace rondo::test
