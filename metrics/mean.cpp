#include "metrics/mean.h"

#include "core/error.h"
#include "metrics/register.h"

namespace rondo {

namespace {

enum MeanSums { Total, Samples };

}  // namespace

Mean::Mean(const Options& options)
    : SumsMetric({{"total"}, {"samples"}}), output_(options.output) {}

void Mean::update(const Outputs& outputs, const Batch& batch) {
  const at::Tensor& value = outputs[output_];
  if (value.dim() != 0) {
    throw ShapeError("Mean: output \"" + output_ + "\" must have no dimensions, got " +
                     std::to_string(value.dim()));
  }
  const auto samples = static_cast<double>(batch.size());
  sum(Total).add_(value.detach().to(at::kDouble), samples);
  sum(Samples).add_(samples);
}

double Mean::compute() const {
  return number(Total) / number(Samples);
}

void register_mean(Registry<Metric>& registry) {
  registry.add<Mean>("Mean", "Mean of an output that is one number, by samples.")
      .key("output", &Mean::Options::output, "the output, whose name is that of the metric");
}

}  // namespace rondo
