#include "callbacks/builtin/notify_mail.h"

#include <algorithm>
#include <cctype>

#include "core/registry.h"
#include "core/require.h"
#include "core/secret_option.h"

namespace rondo {

namespace {

/// One address, which cannot add a line to the header of the mail.
bool is_address(const std::string& text) {
  const size_t at = text.find('@');
  return at != std::string::npos && at > 0 && at + 1 < text.size() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isprint(c) != 0 && c != ' ' && c != '<' && c != '>' && c != ',';
         });
}

bool is_server(const std::string& url) {
  return url.rfind("smtp://", 0) == 0 || url.rfind("smtps://", 0) == 0;
}

}  // namespace

NotifyMail::NotifyMail(const Options& options)
    : PostedNotification("NotifyMail", options.retries, options.timeout),
      server_({options.server,
               secret_option("NotifyMail.user", options.user),
               secret_option("NotifyMail.password", options.password)}),
      mail_({options.from, options.to, {}, {}}) {
  detail::require(is_server(options.server),
                  "NotifyMail.server",
                  "an address that begins with smtp:// or smtps://",
                  options.server);
  detail::require(is_address(options.from), "NotifyMail.from", "an address", options.from);
  detail::require(!options.to.empty(), "NotifyMail.to", "at least one address", "none");
  for (const std::string& to : options.to) {
    detail::require(is_address(to), "NotifyMail.to", "addresses", to);
  }
  require_mail();
}

NotifyMail::~NotifyMail() {
  stop();
}

void NotifyMail::post(const std::string& text) {
  Mail mail = mail_;
  std::string first_line = text.substr(0, text.find('\n'));
  first_line.erase(std::remove(first_line.begin(), first_line.end(), '\r'), first_line.end());
  mail.subject = "rondo: " + first_line;
  mail.text = text;
  send_mail(server_, mail, policy());
}

void register_notify_mail(Registry<Callback>& registry) {
  using Options = NotifyMail::Options;
  registry
      .add<NotifyMail>("NotifyMail",
                       "Sends an e-mail when a fit is done, when it failed, and for each alert.")
      .key("server", &Options::server, "\"smtp://host:port\" or \"smtps://host:port\"")
      .required()
      .key("to", &Options::to, "addresses")
      .required()
      .key("from", &Options::from, "address")
      .required()
      .key("user", &Options::user, "for the login, or \"env:NAME\"; empty: no login")
      .key("password", &Options::password, "for the login, or \"env:NAME\"")
      .key("retries", &Options::retries, "further tries of a mail, >= 0")
      .key("timeout", &Options::timeout, "seconds that the end of the run waits for mails, >= 0");
}

}  // namespace rondo
