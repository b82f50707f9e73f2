#include "optim/register.h"

#include <type_traits>
#include <vector>

#include "optim/internal/update_operator.h"
#include "optim/operators.h"
#include "optim/optimizers.h"
#include "optim/schedulers.h"

namespace rondo {

namespace {

template <class... T>
struct Optimizers {
  static void add_to(Registry<Optimizer>& registry) {
    (T::table().template add_to<T>(registry), ...);
  }

  static std::vector<const detail::UpdateOperator*> operators() {
    std::vector<const detail::UpdateOperator*> all;
    (add_operator<T>(all), ...);
    return all;
  }

 private:
  template <class One>
  static void add_operator(std::vector<const detail::UpdateOperator*>& all) {
    if constexpr (std::is_base_of_v<RuleOptimizer, One>) {
      all.push_back(&One::update_operator());
    }
  }
};

/// Every optimizer that rondo brings.
using Builtin = Optimizers<AdaBelief,
                           Adadelta,
                           Adafactor,
                           Adagrad,
                           Adam,
                           AdamW,
                           Adamax,
                           ASGD,
                           DecoupledAdamW,
                           DecoupledSGDW,
                           LAMB,
                           LARS,
                           Lion,
                           Muon,
                           NAdam,
                           RAdam,
                           RMSprop,
                           Rprop,
                           Sgd>;

/// Every scheduler that rondo brings, but for those that consist of others.
template <class... T>
struct Schedulers {
  static void add_to(Registry<Scheduler>& registry) {
    (T::table().template add_to<T>(registry), ...);
  }
};

}  // namespace

void register_builtin_optimizers(Registry<Optimizer>& registry) {
  Builtin::add_to(registry);
}

std::vector<const detail::UpdateOperator*> detail::builtin_update_operators() {
  return Builtin::operators();
}

void register_optimizer_operators() {
  for (const detail::UpdateOperator* op : detail::builtin_update_operators()) {
    detail::define_update_operator(*op);
  }
}

void register_builtin_schedulers(Registry<Scheduler>& registry) {
  Schedulers<ConstantLR,
             CosineAnnealingLR,
             CosineAnnealingWarmRestarts,
             CosineDecayLR,
             CyclicLR,
             ExponentialLR,
             InverseExponentialTimeDecayLR,
             InverseSquareRootDecayLR,
             LinearLR,
             MultiplicativeLR,
             MultiStepLR,
             OneCycleLR,
             PiecewiseConstantLR,
             PolynomialLR,
             ReduceLROnPlateau,
             StepLR,
             WarmupStableDecayLR>::add_to(registry);
  register_schedule_products(registry);
  register_sequential_lr(registry);
}

}  // namespace rondo
