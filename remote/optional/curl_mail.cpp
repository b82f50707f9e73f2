#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <memory>

#include "core/no_sigpipe.h"
#include "remote/mail.h"
#include "remote/remote_error.h"

namespace rondo {

namespace {

constexpr long kMostSeconds = 60;

using Curl = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using Addresses = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

struct Upload {
  std::string bytes;
  size_t sent = 0;
};

size_t read_message(char* to, size_t size, size_t count, void* user) {
  auto& upload = *static_cast<Upload*>(user);
  const size_t bytes = std::min(size * count, upload.bytes.size() - upload.sent);
  std::memcpy(to, upload.bytes.data() + upload.sent, bytes);
  upload.sent += bytes;
  return bytes;
}

int look_on(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const RetryPolicy*>(user)->is_over() ? 1 : 0;
}

/// In the form of RFC 5322, in UTC and whatever the locale.
std::string date_now() {
  constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths = {
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} +0000",
                     kDays.at(static_cast<size_t>(parts.tm_wday)),
                     parts.tm_mday,
                     kMonths.at(static_cast<size_t>(parts.tm_mon)),
                     1900 + parts.tm_year,
                     parts.tm_hour,
                     parts.tm_min,
                     parts.tm_sec);
}

Addresses addresses_of(const Mail& mail) {
  Addresses all(nullptr, &curl_slist_free_all);
  for (const std::string& address : mail.to) {
    curl_slist* const longer = curl_slist_append(all.get(), ("<" + address + ">").c_str());
    if (longer == nullptr) {
      throw std::bad_alloc();
    }
    all.release();
    all.reset(longer);
  }
  return all;
}

bool can_retry(CURLcode code) {
  return code != CURLE_LOGIN_DENIED && code != CURLE_PEER_FAILED_VERIFICATION &&
         code != CURLE_USE_SSL_FAILED && code != CURLE_URL_MALFORMAT &&
         code != CURLE_UNSUPPORTED_PROTOCOL && code != CURLE_ABORTED_BY_CALLBACK;
}

void send_once(const MailServer& server, const Mail& mail, const RetryPolicy& policy) {
  const Curl curl(curl_easy_init(), &curl_easy_cleanup);
  if (curl == nullptr) {
    throw RemoteError("libcurl cannot be started", false);
  }
  Upload upload{message_of(mail, date_now())};
  const Addresses to = addresses_of(mail);
  const std::string from = "<" + mail.from + ">";
  CURL* const handle = curl.get();
  curl_easy_setopt(handle, CURLOPT_URL, server.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_TIMEOUT, kMostSeconds);
  curl_easy_setopt(handle, CURLOPT_USE_SSL, server.user.empty() ? CURLUSESSL_TRY : CURLUSESSL_ALL);
  if (!server.user.empty()) {
    curl_easy_setopt(handle, CURLOPT_USERNAME, server.user.c_str());
    curl_easy_setopt(handle, CURLOPT_PASSWORD, server.password.c_str());
  }
  curl_easy_setopt(handle, CURLOPT_MAIL_FROM, from.c_str());
  curl_easy_setopt(handle, CURLOPT_MAIL_RCPT, to.get());
  curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(handle, CURLOPT_READFUNCTION, &read_message);
  curl_easy_setopt(handle, CURLOPT_READDATA, &upload);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, &look_on);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &policy);
  const NoSigpipe no_signal;  // CURLOPT_NOSIGNAL leaves it to the program
  const CURLcode code = curl_easy_perform(handle);
  if (code != CURLE_OK) {
    throw RemoteError(
        fmt::format(
            "the mail server {} did not take a mail: {}", server.url, curl_easy_strerror(code)),
        can_retry(code));
  }
}

}  // namespace

void send_mail(const MailServer& server, const Mail& mail, const RetryPolicy& policy) {
  with_retries(policy, [&] { send_once(server, mail, policy); });
}

void require_mail() {}

}  // namespace rondo
