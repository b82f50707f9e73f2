#include "data/sample_visit.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"

namespace rondo {

namespace {

using Visit = std::function<void(const VisitedSample&)>;

void visit_indexed(const Dataset& data, int64_t size, int64_t most, const Visit& visit) {
  const int64_t count = std::min(size, most);
  for (int64_t i = 0; i < count; ++i) {
    VisitedSample one;
    one.number = i * (size / count) + i * (size % count) / count;
    one.name = data.sample_name(one.number);
    try {
      one.sample = data.get(one.number);
    } catch (const Error&) {
      one.error = std::current_exception();
    }
    visit(one);
  }
}

Sample row_of(const Batch& batch, int64_t row) {
  Sample sample;
  for (const NamedTensor& tensor : batch.items()) {
    sample.set(tensor.first, tensor.second.dim() > 0 ? tensor.second[row] : tensor.second);
  }
  return sample;
}

void visit_stream(const DataLoader& loader, int64_t most, const Visit& visit) {
  int64_t number = 0;
  try {
    const auto stream = loader.stream({}, 0);
    for (std::optional<Batch> batch; number < most && (batch = stream->next());) {
      const int64_t rows = std::min(batch->size(), most - number);
      for (int64_t row = 0; row < rows; ++row, ++number) {
        visit({number, std::to_string(number), row_of(*batch, row), {}});
      }
    }
  } catch (const Error&) {
    visit({number, std::to_string(number), {}, std::current_exception()});
  }
}

}  // namespace

void visit_samples(const DataLoader& loader, int64_t most, const Visit& visit) {
  const DataLoader all = loader.in_order();
  if (const auto* data = dynamic_cast<const Dataset*>(&all.source())) {
    visit_indexed(*data, *all.samples(), most, visit);
  } else {
    visit_stream(all, most, visit);
  }
}

}  // namespace rondo
