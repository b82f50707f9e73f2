#include "trainer/short_passes.h"

#include <memory>
#include <utility>
#include <vector>

#include "core/factory.h"
#include "data/dataset.h"

namespace rondo {

namespace {

/// The first samples of a loader's data set.
class FirstSamples final : public Dataset {
 public:
  FirstSamples(DataLoader loader, int64_t size)
      : loader_(std::move(loader)),
        all_(dynamic_cast<const Dataset&>(loader_.source())),
        size_(size) {}

  int64_t size() const override { return size_; }

  Sample get(int64_t index) const override { return all_.get(index); }

  Batch get_batch(const std::vector<int64_t>& indices) const override {
    return all_.get_batch(indices);
  }

 private:
  DataLoader loader_;  // keeps the data set alive
  const Dataset& all_;
  int64_t size_;
};

}  // namespace

DataLoader with_short_passes(const DataLoader& loader, int64_t group_size) {
  // The second group's steps are the first one's once state was made.
  constexpr int64_t kWholeGroups = 2;
  const auto* const all = dynamic_cast<const Dataset*>(&loader.source());
  const int64_t group = group_size * loader.options().batch_size;
  const int64_t rest = all != nullptr ? all->size() % group : 0;
  if (rest == 0 || all->size() / group <= kWholeGroups) {
    return loader;
  }
  const auto make = [loader, size = kWholeGroups * group + rest] {
    return std::make_unique<FirstSamples>(loader, size);
  };
  return DataLoader(loader.label(),
                    Factory<DataSource>("FirstSamples", typeid(FirstSamples), nullptr, make),
                    loader.options());
}

}  // namespace rondo
