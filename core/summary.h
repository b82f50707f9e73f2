#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace rondo {

/// Logs a number from within a model's forward, as `Trainer::log_metrics` does from a hook: on log
/// steps, under this name and the open scopes.
/// \param value  0-dim
/// \throws UsageError  outside of a step, or for another shape
/// \capture safe
void summarize_scalar(const std::string& name, const at::Tensor& value);

/// The same for a tensor. Logs a 0-dim tensor as 1-dim, with a warning.
/// \throws UsageError  outside of a step
/// \capture safe
void summarize_tensor(const std::string& name, const at::Tensor& value);

/// Where the summaries of a thread go.
class SummarySink {
 public:
  virtual ~SummarySink() = default;

  virtual void log(const std::string& name, const at::Tensor& value) = 0;
  virtual void warn(const std::string& message) = 0;
};

/// Sends the summaries of this thread to a sink, which outlives it. Scopes nest.
class SummaryScope {
 public:
  explicit SummaryScope(SummarySink& sink);
  SummaryScope(const SummaryScope&) = delete;
  SummaryScope& operator=(const SummaryScope&) = delete;
  ~SummaryScope();

 private:
  SummarySink* outer_;
};

}  // namespace rondo
