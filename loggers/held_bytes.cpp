#include "loggers/held_bytes.h"

#include <variant>

namespace rondo {

namespace {

struct Held {
  size_t operator()(const Histogram& histogram) const {
    return sizeof(double) * (histogram.edges.size() + histogram.counts.size());
  }

  size_t operator()(const Picture& picture) const { return picture.pixels.size(); }

  size_t operator()(const std::string& text) const { return text.size(); }

  size_t operator()(const TextTable& table) const {
    size_t bytes = 0;
    for (const std::vector<std::string>& row : table.rows) {
      for (const std::string& cell : row) {
        bytes += sizeof cell + cell.size();
      }
    }
    return bytes;
  }

  size_t operator()(const at::Tensor& tensor) const {
    return tensor.defined() ? tensor.nbytes() : 0;
  }

  size_t operator()(double) const { return 0; }

  size_t operator()(int64_t) const { return 0; }
};

}  // namespace

size_t held_bytes(const Metrics& values) {
  size_t bytes = 0;
  for (const Metrics::Item& item : values.items()) {
    bytes += sizeof item + item.first.size() + std::visit(Held(), item.second);
  }
  return bytes;
}

size_t held_bytes(const Media& media) {
  return sizeof media + media.name.size() + std::visit(Held(), media.value);
}

}  // namespace rondo
