#include "core/summary.h"

#include <fmt/format.h>

#include "core/error.h"

namespace rondo {

namespace {

// Of the step that this thread is in; a model knows no Trainer that it could ask.
thread_local SummarySink* current_sink = nullptr;

SummarySink& sink_for(const char* function, const std::string& name) {
  if (current_sink == nullptr) {
    throw UsageError(fmt::format("{}: \"{}\" is summarized outside of a step", function, name));
  }
  return *current_sink;
}

}  // namespace

void summarize_scalar(const std::string& name, const at::Tensor& value) {
  SummarySink& sink = sink_for("summarize_scalar", name);
  if (value.dim() != 0) {
    throw UsageError(
        fmt::format("summarize_scalar: \"{}\" has {} dimensions; use summarize_tensor for it",
                    name,
                    value.dim()));
  }
  sink.log(name, value.detach());
}

void summarize_tensor(const std::string& name, const at::Tensor& value) {
  SummarySink& sink = sink_for("summarize_tensor", name);
  if (value.dim() == 0) {
    sink.warn(fmt::format(
        "summarize_tensor: \"{}\" has no dimensions and is logged with one; use summarize_scalar",
        name));
  }
  sink.log(name, value.dim() == 0 ? value.detach().reshape({1}) : value.detach());
}

SummaryScope::SummaryScope(SummarySink& sink) : outer_(current_sink) {
  current_sink = &sink;
}

SummaryScope::~SummaryScope() {
  current_sink = outer_;
}

}  // namespace rondo
