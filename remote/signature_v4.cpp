#include "remote/signature_v4.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "remote/digests.h"

namespace rondo {

namespace {

constexpr const char kAlgorithm[] = "AWS4-HMAC-SHA256";

std::string day_of(const SignatureScope& scope) {
  return scope.time.substr(0, 8);
}

std::string text_of(const SignatureScope& scope) {
  return fmt::format("{}/{}/{}/aws4_request", day_of(scope), scope.region, scope.service);
}

std::string signed_headers(const SignedRequest& request) {
  std::string names;
  for (const auto& [name, value] : request.headers) {
    names += (names.empty() ? "" : ";") + name;
  }
  return names;
}

std::string canonical_text(const SignedRequest& request) {
  std::string headers;
  for (const auto& [name, value] : request.headers) {
    headers += fmt::format("{}:{}\n", name, value);
  }
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}",
                     request.method,
                     request.path,
                     query_text(request.query),
                     headers,
                     signed_headers(request),
                     request.payload_hash);
}

}  // namespace

std::string uri_encoded(std::string_view text, bool keeps_slashes) {
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ||
                          c == '.' || c == '_' || c == '~' || (keeps_slashes && c == '/');
    encoded +=
        is_plain ? std::string(1, c)
                 : fmt::format("%{:02X}", static_cast<unsigned int>(static_cast<unsigned char>(c)));
  }
  return encoded;
}

std::string query_text(const std::map<std::string, std::string>& query) {
  std::vector<std::pair<std::string, std::string>> encoded;
  for (const auto& [name, value] : query) {
    encoded.emplace_back(uri_encoded(name, false), uri_encoded(value, false));
  }
  std::sort(encoded.begin(), encoded.end());
  std::string text;
  for (const auto& [name, value] : encoded) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
  }
  return text;
}

std::string signing_key_v4(const SignatureScope& scope, std::string_view secret_key) {
  std::string key = hmac_sha256("AWS4" + std::string(secret_key), day_of(scope));
  key = hmac_sha256(key, scope.region);
  key = hmac_sha256(key, scope.service);
  return hmac_sha256(key, "aws4_request");
}

std::string signature_v4(const SignedRequest& request,
                         const SignatureScope& scope,
                         std::string_view secret_key) {
  const std::string to_sign = fmt::format("{}\n{}\n{}\n{}",
                                          kAlgorithm,
                                          scope.time,
                                          text_of(scope),
                                          sha256_hex(canonical_text(request)));
  return to_hex(hmac_sha256(signing_key_v4(scope, secret_key), to_sign));
}

std::string authorization_v4(const SignedRequest& request,
                             const SignatureScope& scope,
                             const Credentials& credentials) {
  return fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}",
                     kAlgorithm,
                     credentials.access_key,
                     text_of(scope),
                     signed_headers(request),
                     signature_v4(request, scope, credentials.secret_key));
}

}  // namespace rondo
