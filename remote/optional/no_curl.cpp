#include "core/error.h"
#include "remote/digests.h"
#include "remote/mail.h"
#include "remote/transport.h"

namespace rondo {

namespace {

[[noreturn]] void refuse() {
  throw NotSupportedError(
      "this rondo was built without libcurl: install libcurl4-openssl-dev and libssl-dev, "
      "and build it with -DRONDO_WITH_CURL=ON");
}

}  // namespace

struct Sha256::Context {};

Sha256::Sha256() {
  refuse();
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view) {
  refuse();
}

std::string Sha256::finish() {
  refuse();
}

std::string hmac_sha256(std::string_view, std::string_view) {
  refuse();
}

void require_mail() {
  refuse();
}

void send_mail(const MailServer&, const Mail&, const RetryPolicy&) {
  refuse();
}

std::unique_ptr<HttpTransport> make_transport(const RetryPolicy&, bool) {
  refuse();
}

}  // namespace rondo
