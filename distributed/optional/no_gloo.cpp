#include "core/error.h"
#include "distributed/internal/gloo_link.h"

namespace rondo {

bool has_gloo() {
  return false;
}

std::unique_ptr<PeerLink> make_gloo_link(const GlooPlace&, const KeyStore&) {
  throw NotSupportedError(
      "this rondo was built without gloo, so its ranks share memory of one host only: install "
      "libgloo-dev and build again with -DRONDO_WITH_GLOO=ON");
}

}  // namespace rondo
