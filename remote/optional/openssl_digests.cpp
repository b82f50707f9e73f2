#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "core/error.h"
#include "remote/digests.h"

namespace rondo {

namespace {

constexpr size_t kBytes = 32;

void check(int result) {
  if (result != 1) {
    throw Error("OpenSSL does not compute SHA-256: a mode that forbids it may be in force");
  }
}

}  // namespace

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest{EVP_MD_CTX_new(),
                                                                 &EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  check(EVP_DigestInit_ex(context_->digest.get(), EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  check(EVP_DigestUpdate(context_->digest.get(), bytes.data(), bytes.size()));
}

std::string Sha256::finish() {
  std::string bytes(kBytes, '\0');
  check(EVP_DigestFinal_ex(
      context_->digest.get(), reinterpret_cast<unsigned char*>(bytes.data()), nullptr));
  return bytes;
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string bytes(kBytes, '\0');
  const unsigned char* const done = HMAC(EVP_sha256(),
                                         key.data(),
                                         static_cast<int>(key.size()),
                                         reinterpret_cast<const unsigned char*>(message.data()),
                                         message.size(),
                                         reinterpret_cast<unsigned char*>(bytes.data()),
                                         nullptr);
  check(done != nullptr ? 1 : 0);
  return bytes;
}

}  // namespace rondo
