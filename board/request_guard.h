#pragma once

#include <optional>
#include <string>

namespace rondo {

/// What decides whether a request is answered. Texts are empty where the request has none.
struct GuardedRequest {
  std::string method;
  std::string path;
  std::string host;           ///< of the header `Host`
  std::string origin;         ///< `Origin`
  std::string fetch_site;     ///< `Sec-Fetch-Site`
  std::string token;          ///< of the address
  std::string authorization;  ///< `Authorization`
  std::string cookies;        ///< `Cookie`
};

/// Why a request is refused.
struct Refusal {
  int status = 403;
  std::string text;
};

/// Refuses what no page of the board asks: other methods than GET and HEAD, names that are not the
/// server's (a foreign page can make its own name mean this machine), requests that another site's
/// page sends, and where a token is wanted, requests without it.
class RequestGuard {
 public:
  /// \param host   where the server listens; "0.0.0.0" and "::" stand for any name
  /// \param port   part of the cookie's name: cookies of one host do not know ports
  /// \param token  "": none is wanted
  RequestGuard(std::string host, int port, std::string token);

  std::optional<Refusal> refusal(const GuardedRequest& request) const;

  /// The value of `Set-Cookie` for a request whose address has the token; "" for others.
  std::string cookie_for(const GuardedRequest& request) const;

 private:
  bool is_own_name(const std::string& host) const;
  bool has_token(const GuardedRequest& request) const;

  std::string host_;
  std::string cookie_;  // its name
  std::string token_;
};

/// Whether only this machine reaches a host, such as "127.0.0.1", "::1" or "localhost".
bool is_loopback(const std::string& host);

/// 128 random bits as hexadecimal digits. \throws Error  when the system gives none
std::string random_token();

}  // namespace rondo
