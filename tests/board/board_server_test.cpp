// The board over HTTP, with httplib's client.

#include "board/board_server.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <httplib.h>
#include <sys/file.h>

#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "board/made_runs.h"
#include "board/page.h"
#include "board/polled_often.h"
#include "core/error.h"
#include "core/file_descriptor.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("board/board_server");

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

/// A server at a free port.
class Served {
 public:
  explicit Served(const fs::path& root, const std::string& host = "127.0.0.1")
      : index_(polled_often(root)),
        server_(index_, {host, 0}),
        thread_([this] { server_.serve(); }) {}

  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  ~Served() {
    server_.stop();
    thread_.join();
  }

  std::string url() const { return server_.url(); }

  int port() const {
    const std::string address = url();
    return std::stoi(address.substr(address.rfind(':') + 1));
  }

  httplib::Client client() const {
    httplib::Client client("127.0.0.1", port());
    client.set_read_timeout(120);
    return client;
  }

  /// The status of an answer; the body is an object of JSON with an error unless it is 200.
  int status(const std::string& path, const httplib::Headers& headers = {}) const {
    const auto answer = client().Get(path.c_str(), headers);
    REQUIRE(answer);
    CHECK((answer->status < 400 || answer->status == 416 ||
           answer->body.rfind("{\"error\":", 0) == 0));
    return answer->status;
  }

 private:
  RunIndex index_;
  BoardServer server_;
  std::thread thread_;
};

std::string path_with(size_t bytes) {
  const std::string path = "/api/run?id=";
  return path + std::string(bytes - path.size(), 'x');
}

}  // namespace

TEST_CASE("the page comes with headers that forbid foreign code") {
  const TempDir dir;
  write_run(dir / "a", 0.1, 1);
  const Served board(dir.path());
  CHECK(board.url() == "http://127.0.0.1:" + std::to_string(board.port()) + "/");
  const auto page = board.client().Get("/");
  REQUIRE(page);
  CHECK(page->status == 200);
  CHECK(page->body == board_page());
  CHECK(page->get_header_value("Content-Type") == "text/html; charset=utf-8");
  CHECK(page->get_header_value("Content-Security-Policy").rfind("default-src 'none'", 0) == 0);
  CHECK(page->get_header_value("X-Content-Type-Options") == "nosniff");
  CHECK(page->get_header_value("Cache-Control") == "no-store");
  const auto runs = board.client().Get("/api/runs");
  REQUIRE(runs);
  CHECK(runs->status == 200);
  CHECK(runs->get_header_value("Content-Type") == "application/json");
  CHECK(runs->body.find("\"id\":\"a\"") != std::string::npos);
}

TEST_CASE("parameters are decoded, and names of runs that are unknown find nothing") {
  const TempDir dir;
  write_run(dir / "runs/group/a&b c", 0.1, 1);
  write_text(dir / "record.jsonl", session_line("outside"));
  const Served board(dir / "runs");
  CHECK(board.status("/api/run?id=group%2Fa%26b%20c") == 200);
  for (const char* path : {"/api/run?id=..",
                           "/api/run?id=group%2F..%2F..",
                           "/api/run?id=%00",
                           "/api/run?id=/etc",
                           "/api/../../record.jsonl",
                           "/..%2f..%2frecord.jsonl",
                           "/%2e%2e/record.jsonl",
                           "/record.jsonl",
                           "//",
                           "/board/page.html"}) {
    CAPTURE(path);
    CHECK(board.status(path) == 404);
  }
  CHECK(board.status("/api/series?run=group/a%26b%20c&metric=loss&points=x") == 400);
}

TEST_CASE("requests for other names, from other sites, and that would write are refused") {
  const TempDir dir;
  write_run(dir / "a", 0.1, 1);
  const Served board(dir.path());
  const std::string own = "localhost:" + std::to_string(board.port());
  CHECK(board.status("/api/runs", {{"Host", own}}) == 200);
  CHECK(board.status("/api/runs", {{"Host", "evil.example"}}) == 403);
  CHECK(board.status("/", {{"Host", "evil.example"}}) == 403);
  CHECK(board.status("/api/runs", {{"Host", own}, {"Origin", "http://" + own}}) == 200);
  CHECK(board.status("/api/runs", {{"Origin", "http://evil.example"}}) == 403);
  CHECK(board.status("/metrics", {{"Origin", "null"}}) == 403);
  CHECK(board.status("/api/runs", {{"Sec-Fetch-Site", "cross-site"}}) == 403);
  CHECK(board.client().Post("/api/runs", "x", "text/plain")->status == 405);
  CHECK(board.client().Delete("/api/run?id=a")->status == 405);
  CHECK(board.client().Head("/api/runs")->status == 200);
  CHECK(board.client().Head("/api/runs")->body.empty());
  CHECK(fs::exists(dir / "a/record.jsonl"));
}

TEST_CASE("long addresses, large bodies and ranges are refused, and the server lives on") {
  const TempDir dir;
  write_run(dir / "a", 0.1, 1);
  const Served board(dir.path());
  CHECK(board.status(path_with(7900)) == 404);
  CHECK(board.status(path_with(8001)) == 414);
  CHECK(board.status("/api/runs", {{"Range", "bytes=5-9"}}) == 416);
  CHECK(board.status("/api/runs", {{"Range", "bytes=999999999-"}}) == 416);
  const auto large = board.client().Post("/api/runs", std::string(1 << 20, 'x'), "text/plain");
  CHECK((!large || large->status >= 400));
  CHECK(board.status("/api/runs") == 200);
}

TEST_CASE("other machines need the token, which the page keeps as a cookie") {
  const TempDir dir;
  write_run(dir / "a", 0.1, 1);
  const Served board(dir.path(), "0.0.0.0");
  const std::string url = board.url();
  const std::string token = url.substr(url.find("?token=") + 7);
  REQUIRE(token.size() == 32);
  CHECK(board.status("/") == 401);
  CHECK(board.status("/api/runs") == 401);
  CHECK(board.status("/api/events") == 401);
  CHECK(board.status("/?token=" + std::string(32, '0')) == 401);
  const auto first = board.client().Get(("/?token=" + token).c_str());
  REQUIRE(first);
  CHECK(first->status == 303);
  CHECK(first->get_header_value("Location") == "/");
  const std::string cookie = first->get_header_value("Set-Cookie");
  const std::string pair = cookie.substr(0, cookie.find(';'));
  CHECK(board.status("/", {{"Cookie", pair}}) == 200);
  CHECK(board.status("/api/runs", {{"Cookie", pair}}) == 200);
  CHECK(board.status("/metrics", {{"Authorization", "Bearer " + token}}) == 200);
  CHECK(board.status("/api/runs?token=" + token) == 200);
}

TEST_CASE("a change of a record is told, and its series has the new point") {
  const TempDir dir;
  write_text(dir / "a/record.jsonl", session_line("a") + numbers_line(1, "\"loss\":4"));
  const Served board(dir.path());
  std::string seen;
  board.client().Get("/api/events", [&](const char* bytes, size_t size) {
    if (seen.empty()) {
      append_text(dir / "a/record.jsonl", numbers_line(2, "\"loss\":3"));
    }
    seen.append(bytes, size);
    return seen.find("data: ") == std::string::npos ||
           seen.find("\n\n", seen.find("data: ")) == std::string::npos;
  });
  CHECK(seen.rfind(": ", 0) == 0);
  CHECK(seen.find("event: runs\nid: ") != std::string::npos);
  CHECK(seen.find("data: {\"changed\":[\"a\"]}\n\n") != std::string::npos);
  const auto series = board.client().Get("/api/series?run=a&metric=loss");
  REQUIRE(series);
  CHECK(series->body.find("\"x\":[1,2],\"y\":[4,3]") != std::string::npos);
}

TEST_CASE("a client that comes back hears what it missed") {
  const TempDir dir;
  write_run(dir / "a", 0.1, 1);
  write_run(dir / "b", 0.1, 1);
  const Served board(dir.path());
  for (const httplib::Headers& headers :
       {httplib::Headers{{"Last-Event-ID", "1"}}, httplib::Headers{{"Last-Event-ID", "999"}}}) {
    std::string seen;
    board.client().Get("/api/events", headers, [&](const char* bytes, size_t size) {
      seen.append(bytes, size);
      return seen.find("data: ") == std::string::npos;
    });
    CHECK(seen.find("\"changed\":[") != std::string::npos);
  }
}

TEST_CASE("Prometheus gets the last values of runs that are running") {
  const TempDir dir;
  const fs::path record = dir / "a\"b/record.jsonl";
  write_text(record, session_line("a") + numbers_line(7, "\"val/loss\":0.5,\"x\":\"nan\""));
  write_run(dir / "done", 0.1, 1);
  const rondo::detail::FileDescriptor writer(::open(record.c_str(), O_RDONLY));
  REQUIRE(::flock(writer.get(), LOCK_EX) == 0);
  const Served board(dir.path());
  const auto answer = board.client().Get("/metrics");
  REQUIRE(answer);
  CHECK(answer->body.find("rondo_update{run=\"a\\\"b\"} 7\n") != std::string::npos);
  CHECK(answer->body.find("rondo_metric{run=\"a\\\"b\",metric=\"val/loss\"} 0.5\n") !=
        std::string::npos);
  CHECK(answer->body.find("metric=\"x\"} NaN\n") != std::string::npos);
  CHECK(answer->body.find("done") == std::string::npos);
}

TEST_CASE("a port that is taken and a host elsewhere are usage errors") {
  const TempDir dir;
  RunIndex index(polled_often(dir.path()));
  const Served board(dir.path());
  CHECK_THROWS_WITH_AS(BoardServer(index, {"127.0.0.1", board.port()}),
                       doctest::Contains(std::to_string(board.port()).c_str()),
                       UsageError);
  CHECK_THROWS_AS(BoardServer(index, {"203.0.113.1", 0}), UsageError);
}

TEST_CASE("a server that is stopped before it serves returns at once") {
  const TempDir dir;
  RunIndex index(polled_often(dir.path()));
  BoardServer server(index, {"127.0.0.1", 0});
  server.stop();
  server.serve();
}

TEST_SUITE_END();
