#pragma once

#include <algorithm>
#include <utility>

#include "optim/internal/verbs.h"

// Weight decay as Composer's decoupled optimizers count it: relative to the learning rate at the
// start, so that it is a share of the weights and falls as lr does.

namespace rondo::rules {

/// The share of its weights that an update keeps.
template <class N>
N kept_share(const N& lr, const N& initial_lr, const N& weight_decay) {
  return 1.0 - select(initial_lr, lr / initial_lr, filled(lr, 1.0)) * weight_decay;
}

/// Options with what `initial_lr` is where it is 0: the learning rate, of groups their own.
template <class Options>
Options with_initial_lr(Options options) {
  options.initial_lr = options.initial_lr != 0 ? options.initial_lr : options.lr;
  for (auto& group : options.params) {
    const auto find = [&](const char* name) {
      return std::find_if(group.numbers.begin(), group.numbers.end(), [&](const auto& number) {
        return number.first == name;
      });
    };
    if (const auto lr = find("lr");
        lr != group.numbers.end() && find("initial_lr") == group.numbers.end()) {
      group.numbers.emplace_back("initial_lr", double{lr->second});
    }
  }
  return options;
}

}  // namespace rondo::rules
