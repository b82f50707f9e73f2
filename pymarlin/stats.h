#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "trainer/pymarlin_arguments.h"

namespace rondo::pymarlin {

/// Where stats go. Every function may be left out.
class Writer {
 public:
  virtual ~Writer() = default;

  virtual void log_scalar(const std::string& /*name*/, double /*value*/, int64_t /*step*/) {}

  virtual void log_multi(const std::string& /*group*/,
                         const std::map<std::string, double>& /*values*/,
                         int64_t /*step*/) {}

  virtual void flush() {}

  virtual void finish() {}
};

/// Stats of two tiers: frequent ones are written every `log_steps` optimizer steps, long ones after
/// a validation, at the end of an epoch and at the end of training. A name that is updated again
/// before it is written is replaced.
class Stats {
 public:
  explicit Stats(StatInitArguments arguments)
      : arguments_(std::move(arguments)), excluded_(arguments_.exclude_list) {}

  const StatInitArguments& arguments() const { return arguments_; }

  void add_writer(std::shared_ptr<Writer> writer) { writers_.push_back(std::move(writer)); }

  void update(const std::string& name, double value, bool frequent = false);
  void update_multi(const std::string& group,
                    const std::map<std::string, double>& values,
                    bool frequent = false);

  /// Writes the frequent ones and forgets them; \param force  at any step
  void log_stats(int64_t step, bool force = false);
  void log_long_stats(int64_t step);
  void finish();

  /// Whether norms of this parameter are written: not where `exclude_list` finds something in its
  /// name.
  bool logs_model_of(const std::string& parameter) const;

  /// Writes norms by name now: "weight_norm/<parameter>", "grad_norm/<parameter>".
  void log_model(int64_t step, const std::map<std::string, double>& norms);

 private:
  struct Tier {
    std::map<std::string, double> scalars;
    std::map<std::string, std::map<std::string, double>> groups;
  };

  void write(Tier& tier, int64_t step);

  StatInitArguments arguments_;
  std::regex excluded_;
  std::vector<std::shared_ptr<Writer>> writers_;
  Tier frequent_;
  Tier long_;
};

/// A line on standard output for each: "step = 3, loss : 0.5".
std::shared_ptr<Writer> stdout_writer();

}  // namespace rondo::pymarlin
