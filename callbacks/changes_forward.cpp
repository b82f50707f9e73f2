#include "callbacks/changes_forward.h"

namespace rondo {

ForwardScope::ForwardScope(ForwardChanges& changes) : changes_(changes) {
  if (changes_.open_scopes++ > 0) {
    return;
  }
  try {
    for (ChangesForward* const change : changes_.all) {
      change->begin_forward();
    }
  } catch (...) {
    end();
    throw;
  }
}

ForwardScope::~ForwardScope() {
  end();
}

void ForwardScope::end() noexcept {
  if (--changes_.open_scopes > 0) {
    return;
  }
  for (auto change = changes_.all.rbegin(); change != changes_.all.rend(); ++change) {
    (*change)->end_forward();
  }
}

}  // namespace rondo
