#include "callbacks/builtin/notify_webhook.h"

#include <fmt/format.h>

#include "core/json.h"
#include "core/registry.h"
#include "core/require.h"
#include "core/secret_option.h"
#include "remote/remote_error.h"
#include "remote/transport.h"

namespace rondo {

namespace {

/// "https://host", without the path, which is the secret of a webhook.
std::string server_of(const std::string& url) {
  return url.substr(0, url.find('/', url.find("://") + 3));
}

bool is_web_address(const std::string& url) {
  return url.rfind("https://", 0) == 0 || url.rfind("http://", 0) == 0;
}

bool can_retry(int status) {
  constexpr int kTooManyRequests = 429;
  constexpr int kFirstServerError = 500;
  return status == kTooManyRequests || status >= kFirstServerError;
}

}  // namespace

NotifyWebhook::NotifyWebhook(const Options& options)
    : PostedNotification("NotifyWebhook", options.retries, options.timeout),
      options_(options),
      url_(secret_option("NotifyWebhook.url", options.url)) {
  detail::require(is_web_address(url_),
                  "NotifyWebhook.url",
                  "an address that begins with https:// or http://",
                  url_.empty() ? "nothing" : "another text");
  transport_ = make_transport(policy(), /*follows=*/false);
}

NotifyWebhook::~NotifyWebhook() {
  stop();
}

void NotifyWebhook::post(const std::string& text) {
  const std::string server = server_of(url_);
  const HttpRequest request{
      "POST",
      url_,
      {{"content-type", "application/json"}},
      fmt::format("{{{}: {}}}", json_string(options_.field), json_string(text))};
  with_retries(policy(), [&] {
    int status = 0;
    try {
      status = transport_->send(request).status;
    } catch (const RemoteError& error) {
      throw RemoteError("cannot reach the webhook at " + server, error.can_retry);
    }
    if (status < 200 || status >= 300) {
      throw RemoteError(fmt::format("the webhook at {} answered with status {}", server, status),
                        can_retry(status));
    }
  });
}

void register_notify_webhook(Registry<Callback>& registry) {
  registry
      .add<NotifyWebhook>(
          "NotifyWebhook",
          "Posts to a webhook (Slack, Mattermost, Discord) when a fit is done, when "
          "it failed, and for each alert.")
      .key("url", &NotifyWebhook::Options::url, "the webhook's address, or \"env:NAME\"")
      .required()
      .key("field",
           &NotifyWebhook::Options::field,
           "JSON member that holds the message; \"content\" for Discord")
      .key("retries", &NotifyWebhook::Options::retries, "further tries of a message, >= 0")
      .key("timeout",
           &NotifyWebhook::Options::timeout,
           "seconds that the end of the run waits for messages, >= 0");
}

}  // namespace rondo
