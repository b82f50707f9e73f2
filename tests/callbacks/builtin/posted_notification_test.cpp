// Notifications over the network, with servers of this process.

#include "callbacks/builtin/posted_notification.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <string>
#include <vector>

#include "callbacks/builtin/notify_mail.h"
#include "callbacks/builtin/notify_webhook.h"
#include "core/error.h"
#include "support/message_server.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr const char* kSecret = "T00/B00/secret";

std::string webhook_of(const MessageServer& server) {
  return fmt::format("http://127.0.0.1:{}/services/{}", server.port(), kSecret);
}

/// Trains two updates. \return what was warned of, also at the Trainer's end
std::vector<std::string> warnings_of_fit(const Factory<Callback>& callback) {
  const TempDir dir;
  std::vector<std::string> warnings;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 2;
  options.callbacks = {callback};
  {
    Trainer trainer(options, quiet_log(&warnings));
    trainer.alert(AlertLevel::Error, "say \"it\"");
    CHECK(trainer.fit(tiny_loader("train")).steps == 2);
  }
  return warnings;
}

bool tells(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(text) != std::string::npos;
  });
}

/// Whether this rondo was built with libcurl.
bool can_post() {
  try {
    const NotifyWebhook webhook({"http://127.0.0.1/"});
    return true;
  } catch (const NotSupportedError& error) {
    MESSAGE("skipped: " << error.what());
    return false;
  }
}

NotifyMail::Options mail_options(const MessageServer& server) {
  NotifyMail::Options options;
  options.server = fmt::format("smtp://127.0.0.1:{}", server.port());
  options.to = {"anna@example.org", "ben@example.org"};
  options.from = "rondo@example.org";
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/posted_notification");

TEST_CASE("messages are sent in order, and an error of one does not stop the next") {
  std::vector<std::string> sent;
  MessageQueue queue([&](const std::string& text) {
    if (text == "b") {
      throw IoError("planted", 0);
    }
    sent.push_back(text);
  });
  for (const char* text : {"a", "b", "c"}) {
    queue.push(text);
  }
  REQUIRE(queue.wait(std::chrono::minutes(1)));
  CHECK(sent == std::vector<std::string>{"a", "c"});
  CHECK(queue.take_failures() == std::vector<std::string>{"planted"});
  CHECK(queue.take_failures().empty());
}

TEST_CASE("of more than 100 waiting messages the oldest is dropped, and that is told") {
  std::promise<void> goes_on;
  std::promise<void> has_begun;
  std::vector<std::string> sent;
  MessageQueue queue([&](const std::string& text) {
    if (text == "first") {
      has_begun.set_value();
      goes_on.get_future().wait();
    }
    sent.push_back(text);
  });
  queue.push("first");
  has_begun.get_future().wait();
  for (int i = 0; i < 101; ++i) {
    queue.push(std::to_string(i));
  }
  goes_on.set_value();
  REQUIRE(queue.wait(std::chrono::minutes(1)));
  CHECK(sent.size() == 101);
  CHECK(sent[1] == "1");
  CHECK(queue.take_failures().size() == 1);
}

TEST_CASE("a queue that ends lets the message in flight give up") {
  std::promise<void> has_begun;
  {
    std::shared_ptr<const std::atomic<bool>> gives_up;
    MessageQueue queue([&](const std::string&) {
      has_begun.set_value();
      while (!*gives_up) {
        std::this_thread::yield();
      }
    });
    gives_up = queue.gives_up();
    queue.push("never sent");
    has_begun.get_future().wait();
    CHECK_FALSE(queue.wait(std::chrono::milliseconds(1)));
  }
}

TEST_CASE("a webhook gets each message as JSON, again when its server was busy") {
  if (!can_post()) {
    return;
  }
  const MessageServer server(MessageServer::Http, {503});
  const auto warnings = warnings_of_fit(use<NotifyWebhook>({webhook_of(server), "content"}));
  CHECK_FALSE(tells(warnings, "nobody was notified"));
  const std::vector<std::string> bodies = server.received();
  REQUIRE(bodies.size() == 3);
  CHECK(bodies[0] == bodies[1]);
  CAPTURE(bodies[0]);
  CHECK(bodies[0].rfind(R"({"content": "alert at update 0: say \"it\"\u000arun: )", 0) == 0);
  CHECK(bodies[2].rfind(R"({"content": "training reached update 2: done\u000arun: )", 0) == 0);
}

TEST_CASE("a webhook that refuses is a warning, which does not have its address") {
  if (!can_post()) {
    return;
  }
  const MessageServer server(MessageServer::Http, {404, 404});
  const auto warnings = warnings_of_fit(use<NotifyWebhook>({webhook_of(server)}));
  CHECK(tells(warnings, "answered with status 404"));
  CHECK_FALSE(tells(warnings, "secret"));
  CHECK(server.received().size() == 2);
}

TEST_CASE("a webhook that nobody answers for is a warning, which does not have its address") {
  if (!can_post()) {
    return;
  }
  std::string url;
  { url = webhook_of(MessageServer(MessageServer::Http)); }
  const auto warnings = warnings_of_fit(use<NotifyWebhook>({url, "text", 0}));
  CHECK(tells(warnings, "cannot reach the webhook at http://127.0.0.1:"));
  CHECK_FALSE(tells(warnings, "secret"));
}

TEST_CASE("the address of a webhook can be in the environment") {
  ::unsetenv("RONDO_TEST_WEBHOOK");
  CHECK_THROWS_WITH_AS(
      NotifyWebhook({"env:RONDO_TEST_WEBHOOK"}),
      "NotifyWebhook.url is \"env:RONDO_TEST_WEBHOOK\", but the environment variable "
      "RONDO_TEST_WEBHOOK is not set",
      UsageError);
  CHECK_THROWS_AS(NotifyWebhook({"hooks.example.org"}), UsageError);
  CHECK_THROWS_AS(NotifyWebhook({}), UsageError);
  if (!can_post()) {
    return;
  }
  const MessageServer server(MessageServer::Http);
  ::setenv("RONDO_TEST_WEBHOOK", webhook_of(server).c_str(), 1);
  warnings_of_fit(use<NotifyWebhook>({"env:RONDO_TEST_WEBHOOK"}));
  CHECK(server.received().size() == 2);
  ::unsetenv("RONDO_TEST_WEBHOOK");
}

TEST_CASE("a mail has its subject, its receivers and the message") {
  if (!can_post()) {
    return;
  }
  const MessageServer server(MessageServer::Smtp);
  const auto warnings = warnings_of_fit(use<NotifyMail>(mail_options(server)));
  CHECK_FALSE(tells(warnings, "nobody was notified"));
  const std::vector<std::string> mails = server.received();
  REQUIRE(mails.size() == 2);
  CHECK(mails[0].find("\r\nTo: anna@example.org, ben@example.org\r\n") != std::string::npos);
  CHECK(mails[0].find("\r\nSubject: rondo: alert at update 0: say \"it\"\r\n") !=
        std::string::npos);
  CHECK(mails[1].find("\r\n\r\ntraining reached update 2: done\r\nrun: ") != std::string::npos);
}

TEST_CASE("an address cannot add to the header of a mail") {
  const MessageServer server(MessageServer::Smtp);
  NotifyMail::Options options = mail_options(server);
  options.to = {"anna@example.org\r\nBcc: all@example.org"};
  CHECK_THROWS_AS(NotifyMail{options}, UsageError);
  options.to = {};
  CHECK_THROWS_AS(NotifyMail{options}, UsageError);
  options = mail_options(server);
  options.server = "mail.example.org";
  CHECK_THROWS_AS(NotifyMail{options}, UsageError);
}

TEST_SUITE_END();
