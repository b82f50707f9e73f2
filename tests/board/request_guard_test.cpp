#include "board/request_guard.h"

#include <doctest/doctest.h>

#include <string>

TEST_SUITE_BEGIN("board/request_guard");

using namespace rondo;

namespace {

GuardedRequest request_to(const std::string& host) {
  GuardedRequest request;
  request.method = "GET";
  request.path = "/api/runs";
  request.host = host;
  return request;
}

/// The status of a refusal; 0: none.
int refused(const RequestGuard& guard, const GuardedRequest& request) {
  const auto refusal = guard.refusal(request);
  return refusal ? refusal->status : 0;
}

}  // namespace

TEST_CASE("only names of the server are answered, whatever the port") {
  const RequestGuard guard("127.0.0.1", 7007, "");
  for (const char* host : {"127.0.0.1:7007",
                           "localhost:7007",
                           "LOCALHOST",
                           "localhost:9",
                           "[::1]:7007",
                           "127.0.1.1"}) {
    CAPTURE(host);
    CHECK(refused(guard, request_to(host)) == 0);
  }
  for (const char* host : {"",
                           "evil.example",
                           "evil.example:7007",
                           "localhost.evil.example",
                           "127.evil.example",
                           "127.0.0.1.evil.example",
                           "[evil",
                           "10.0.0.1:7007",
                           "0.0.0.0:7007"}) {
    CAPTURE(host);
    CHECK(refused(guard, request_to(host)) == 403);
  }
  CHECK(refused(RequestGuard("lab.example", 1, ""), request_to("Lab.Example:1")) == 0);
  CHECK(refused(RequestGuard("lab.example", 1, ""), request_to("evil.example:1")) == 403);
}

TEST_CASE("pages of other sites are refused") {
  const RequestGuard guard("127.0.0.1", 7007, "");
  GuardedRequest request = request_to("localhost:7007");
  request.origin = "http://localhost:7007";
  CHECK(refused(guard, request) == 0);
  for (const char* origin : {"http://evil.example",
                             "null",
                             "http://localhost:8000",
                             "http://127.0.0.1:7007",
                             "ftp://localhost:7007"}) {
    CAPTURE(origin);
    request.origin = origin;
    CHECK(refused(guard, request) == 403);
  }
  request.origin.clear();
  for (const char* site : {"cross-site", "same-site"}) {
    request.fetch_site = site;
    CHECK(refused(guard, request) == 403);
  }
  request.path = "/";  // a link
  CHECK(refused(guard, request) == 0);
  request.fetch_site = "same-origin";
  request.path = "/api/runs";
  CHECK(refused(guard, request) == 0);
}

TEST_CASE("only reading is allowed") {
  const RequestGuard guard("127.0.0.1", 7007, "");
  GuardedRequest request = request_to("localhost:7007");
  for (const char* method :
       {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "get"}) {
    CAPTURE(method);
    request.method = method;
    CHECK(refused(guard, request) == 405);
  }
  request.method = "HEAD";
  CHECK(refused(guard, request) == 0);
}

TEST_CASE("a token comes in the address once, then as a cookie, or as a bearer's") {
  const RequestGuard guard("0.0.0.0", 7007, "secret");
  GuardedRequest request = request_to("lab:7007");
  CHECK(refused(guard, request) == 401);
  CHECK(guard.cookie_for(request).empty());
  for (const char* wrong : {"secre", "secrets", "Secret", "xxxxxx"}) {
    request.token = wrong;
    CHECK(refused(guard, request) == 401);
    CHECK(guard.cookie_for(request).empty());
  }
  request.token = "secret";
  CHECK(refused(guard, request) == 0);
  const std::string cookie = guard.cookie_for(request);
  CHECK(cookie.rfind("rondo_board_7007=secret; ", 0) == 0);
  CHECK(cookie.find("HttpOnly") != std::string::npos);
  CHECK(cookie.find("SameSite=Lax") != std::string::npos);
  request.token.clear();
  for (const char* cookies : {"rondo_board_7007=secret",
                              "a=1; rondo_board_7007=secret; b=2",
                              "rondo_board_7008=other;  rondo_board_7007=secret"}) {
    CAPTURE(cookies);
    request.cookies = cookies;
    CHECK(refused(guard, request) == 0);
  }
  for (const char* cookies : {"rondo_board_7008=secret",
                              "xrondo_board_7007=secret",
                              "rondo_board_7007=",
                              ";;=",
                              "secret"}) {
    CAPTURE(cookies);
    request.cookies = cookies;
    CHECK(refused(guard, request) == 401);
  }
  request.cookies.clear();
  request.authorization = "Bearer secret";
  CHECK(refused(guard, request) == 0);
  request.authorization = "Bearer ";
  CHECK(refused(guard, request) == 401);
}

TEST_CASE("tokens are long and differ") {
  CHECK(random_token().size() == 32);
  CHECK(random_token() != random_token());
}

TEST_SUITE_END();
