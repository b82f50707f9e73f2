#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace rondo {

/// How long a run will still take, from what it took so far. Times are seconds.
class RemainingTime {
 public:
  /// Training has come to `share` of the run, in [0, 1], after `seconds` of training. Measuring
  /// begins with the first call.
  void train(double share, double seconds);

  /// A validation took so long; `label` tells different ones apart.
  void validation(const std::string& label, double seconds);

  /// Empty until training has advanced since measuring began.
  std::optional<double> seconds() const;

 private:
  struct Place {
    double share;
    double seconds;
  };

  struct Validations {
    int64_t count = 0;
    double first_share = 0.0;
    double last_share = 0.0;
    double first_seconds = 0.0;  // often longer than the others
    double other_seconds = 0.0;  // of the others together
  };

  double seconds_of(const Validations& done) const;

  std::optional<Place> begin_;
  Place now_{};
  std::map<std::string, Validations> validations_;
};

}  // namespace rondo
