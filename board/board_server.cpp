#include "board/board_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <exception>
#include <thread>

#include "board/board_answers.h"
#include "board/page.h"
#include "board/request_guard.h"
#include "board/run_json.h"
#include "core/error.h"
#include "core/host_name.h"
#include "core/json_text.h"

namespace rondo {

namespace {

constexpr int kThreads = 64;
constexpr int kMostListeners = 40;  // to events: each has a thread
constexpr size_t kMostBody = 1024;  // no request has one
constexpr size_t kMostAddress = 8000;
constexpr auto kHeartbeat = std::chrono::seconds(15);

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' "
    "data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

GuardedRequest guarded(const httplib::Request& request) {
  GuardedRequest facts;
  facts.method = request.method;
  facts.path = request.path;
  facts.host = request.get_header_value("Host");
  facts.origin = request.get_header_value("Origin");
  facts.fetch_site = request.get_header_value("Sec-Fetch-Site");
  facts.token = request.get_param_value("token");
  facts.authorization = request.get_header_value("Authorization");
  facts.cookies = request.get_header_value("Cookie");
  return facts;
}

void set_safe_headers(httplib::Response& response) {
  response.set_header("Content-Security-Policy", kPolicy);
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Cross-Origin-Resource-Policy", "same-origin");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cache-Control", "no-store");
}

/// As it is: httplib would compress a text, which takes longer than to send it to this machine.
/// \param owner  of the bytes
void set_bytes(httplib::Response& response,
               std::shared_ptr<const std::string> owner,
               std::string_view bytes,
               const std::string& type) {
  if (bytes.empty()) {
    response.set_content("", type);
    return;
  }
  response.set_content_provider(
      bytes.size(),
      type,
      [owner = std::move(owner), bytes](size_t offset, size_t size, httplib::DataSink& sink) {
        return offset + size <= bytes.size() && sink.write(bytes.data() + offset, size);
      });
}

void set_error(httplib::Response& response, int status, const std::string& text) {
  const auto body =
      std::make_shared<const std::string>(fmt::format("{{\"error\":{}}}", json_string(text)));
  response.status = status;
  set_bytes(response, body, *body, "application/json");
}

uint64_t number_of(const std::string& text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// A host as an address has it: of this machine where it stands for all names.
std::string name_in_address(const std::string& host) {
  if (host == "0.0.0.0" || host == "::") {
    const std::string own = host_name();
    return own.empty() ? "localhost" : own;
  }
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

class BoardServer::Implementation {
 public:
  Implementation(RunIndex& index, const BoardServerOptions& options)
      : index_(index),
        answers_(index),
        token_(is_loopback(options.host) ? "" : random_token()),
        port_(bind(options)),
        guard_(options.host, port_, token_),
        url_(fmt::format("http://{}:{}/{}",
                         name_in_address(options.host),
                         port_,
                         token_.empty() ? "" : "?token=" + token_)) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_keep_alive_max_count(100);
    server_.set_keep_alive_timeout(2);
    server_.set_payload_max_length(kMostBody);
    server_.set_pre_routing_handler([this](const auto& request, auto& response) {
      answer(request, response);
      return httplib::Server::HandlerResponse::Handled;  // there are no other handlers
    });
  }

  const std::string& url() const { return url_; }

  void serve() {
    is_serving_ = true;
    if (!is_stopping_) {
      server_.listen_after_bind();
    }
    is_serving_ = false;
  }

  void stop() {
    is_stopping_ = true;
    index_.close();  // those that wait for events leave
    while (is_serving_ && !server_.is_running()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    server_.stop();
  }

 private:
  int bind(const BoardServerOptions& options) {
    // httplib's own choice lets a second program of the user share the port.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    const int port = options.port == 0
                         ? server_.bind_to_any_port(options.host)
                         : (server_.bind_to_port(options.host, options.port) ? options.port : -1);
    if (port <= 0) {
      throw UsageError(fmt::format(
          "cannot listen at {}:{}: the port is taken, or the host is not this machine's; choose "
          "another with --port or --host",
          options.host,
          options.port));
    }
    return port;
  }

  void answer(const httplib::Request& request, httplib::Response& response) {
    set_safe_headers(response);
    try {
      respond(request, response);
    } catch (const std::exception& error) {
      set_error(response, 500, error.what());
    }
  }

  void respond(const httplib::Request& request, httplib::Response& response) {
    const GuardedRequest facts = guarded(request);
    if (const std::optional<Refusal> refusal = guard_.refusal(facts)) {
      set_error(response, refusal->status, refusal->text);
      return;
    }
    if (request.target.size() > kMostAddress) {
      set_error(response, 414, fmt::format("an address has at most {} bytes", kMostAddress));
      return;
    }
    if (!request.ranges.empty()) {
      response.status = 416;
      return;
    }
    const std::string cookie = guard_.cookie_for(facts);
    if (!cookie.empty()) {
      response.set_header("Set-Cookie", cookie);
    }
    if (request.path == "/" && !cookie.empty()) {
      response.set_redirect("/", 303);  // the token leaves the address
    } else if (request.path == "/") {
      set_bytes(response, nullptr, board_page(), "text/html; charset=utf-8");
    } else if (request.path == "/favicon.ico") {
      response.status = 204;
    } else if (request.path == "/api/events") {
      send_events(request, response);
    } else {
      const BoardAnswer answer = answers_.answer(request.path, request.params);
      if (answer.status != 200) {
        response.status = answer.status;
      }
      set_bytes(response, answer.body, *answer.body, answer.type);
    }
  }

  /// Changes of runs as server-sent events. A client that comes back names the last one it had.
  void send_events(const httplib::Request& request, httplib::Response& response) {
    if (listeners_ >= kMostListeners) {
      set_error(response, 503, fmt::format("{} pages listen already", kMostListeners));
      return;
    }
    const std::string last = request.has_header("Last-Event-ID")
                                 ? request.get_header_value("Last-Event-ID")
                                 : request.get_param_value("since");
    uint64_t since = last.empty() ? index_.newest_change() : number_of(last);
    ++listeners_;
    bool is_first = true;
    response.set_chunked_content_provider(
        "text/event-stream",
        [this, since, is_first](size_t, httplib::DataSink& sink) mutable {
          const std::string text = is_first ? ": rondo board\n\n" : next_event(since);
          is_first = false;
          return !is_stopping_ && sink.is_writable() && sink.write(text.data(), text.size());
        },
        [this](bool) { --listeners_; });
  }

  /// Waits for an event; a comment when nothing happens for a while.
  std::string next_event(uint64_t& since) {
    index_.pause();  // what came right after the last event comes with this one
    const RunChanges changes = index_.wait_for_change(since, kHeartbeat);
    since = changes.newest;
    if (changes.ids.empty()) {
      return ": still here\n\n";
    }
    return fmt::format("event: runs\nid: {}\ndata: {{\"changed\":{}}}\n\n",
                       changes.newest,
                       json_texts(changes.ids));
  }

  RunIndex& index_;
  BoardAnswers answers_;
  httplib::Server server_;
  std::string token_;
  int port_;
  RequestGuard guard_;
  std::string url_;
  std::atomic<int> listeners_{0};
  std::atomic<bool> is_serving_{false};
  std::atomic<bool> is_stopping_{false};
};

BoardServer::BoardServer(RunIndex& index, const BoardServerOptions& options)
    : implementation_(std::make_unique<Implementation>(index, options)) {}

BoardServer::~BoardServer() = default;

const std::string& BoardServer::url() const {
  return implementation_->url();
}

void BoardServer::serve() {
  implementation_->serve();
}

void BoardServer::stop() {
  implementation_->stop();
}

}  // namespace rondo
