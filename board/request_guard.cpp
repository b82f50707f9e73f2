#include "board/request_guard.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace rondo {

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

/// "localhost" of "localhost:8080", "::1" of "[::1]:8080".
std::string without_port(const std::string& host) {
  if (host.rfind('[', 0) == 0) {
    const size_t end = host.find(']');
    return end == std::string::npos ? "" : host.substr(1, end - 1);
  }
  return host.substr(0, host.find(':'));
}

bool is_any_address(const std::string& host) {
  return host == "0.0.0.0" || host == "::";
}

/// Takes as long for each wrong token.
bool are_equal(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0U : 1U;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ b[i]));
  }
  return difference == 0;
}

/// The value of a cookie in "a=1; b=2"; "" when there is none.
std::string cookie_in(std::string_view cookies, const std::string& name) {
  while (!cookies.empty()) {
    const size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view one = cookies.substr(0, end);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.size() > name.size() && one.substr(0, name.size()) == name && one[name.size()] == '=') {
      return std::string(one.substr(name.size() + 1));
    }
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
  }
  return "";
}

}  // namespace

bool is_loopback(const std::string& host) {
  const bool is_address = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "::1" || (is_address && host.rfind("127.", 0) == 0);
}

std::string random_token() {
  std::array<uint8_t, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error(fmt::format("cannot get random numbers from the system: {}", std::strerror(errno)));
  }
  std::string token;
  for (const uint8_t byte : bytes) {
    token += fmt::format("{:02x}", byte);
  }
  return token;
}

RequestGuard::RequestGuard(std::string host, int port, std::string token)
    : host_(lower(std::move(host))),
      cookie_(fmt::format("rondo_board_{}", port)),
      token_(std::move(token)) {}

std::optional<Refusal> RequestGuard::refusal(const GuardedRequest& request) const {
  if (request.method != "GET" && request.method != "HEAD") {
    return Refusal{405, "the board is read-only: only GET and HEAD"};
  }
  if (!is_own_name(request.host)) {
    return Refusal{403,
                   fmt::format("\"{}\" is not a name of this server; see --host", request.host)};
  }
  const bool is_own_origin = lower(request.origin) == "http://" + lower(request.host) ||
                             lower(request.origin) == "https://" + lower(request.host);
  if (!request.origin.empty() && !is_own_origin) {
    return Refusal{403, fmt::format("a page of {} asked", request.origin)};
  }
  const bool is_foreign = request.fetch_site == "cross-site" || request.fetch_site == "same-site";
  if (is_foreign && request.path != "/") {  // a link to the board can stand anywhere
    return Refusal{403, "a page of another site asked"};
  }
  if (!token_.empty() && !has_token(request)) {
    return Refusal{401, "open the address that `rondo board` printed, which has the token"};
  }
  return std::nullopt;
}

bool RequestGuard::is_own_name(const std::string& host) const {
  const std::string name = lower(without_port(host));
  return is_loopback(name) || name == host_ || (is_any_address(host_) && !name.empty());
}

bool RequestGuard::has_token(const GuardedRequest& request) const {
  return are_equal(request.token, token_) || are_equal(request.authorization, "Bearer " + token_) ||
         are_equal(cookie_in(request.cookies, cookie_), token_);
}

std::string RequestGuard::cookie_for(const GuardedRequest& request) const {
  if (token_.empty() || !are_equal(request.token, token_)) {
    return "";
  }
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Lax", cookie_, token_);
}

}  // namespace rondo
