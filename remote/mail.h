#pragma once

#include <string>
#include <vector>

#include "remote/retry.h"

namespace rondo {

struct Mail {
  std::string from;             ///< address
  std::vector<std::string> to;  ///< addresses
  std::string subject;          ///< one line
  std::string text;             ///< UTF-8
};

/// Where mail is handed in: "smtp://mail.example.org:587" or "smtps://…".
struct MailServer {
  std::string url;
  std::string user;  ///< "": no login
  std::string password;
};

/// The message of RFC 5322: header, empty line, lines that end with CR LF.
/// \param date  as its header has it
std::string message_of(const Mail& mail, const std::string& date);

/// Hands a mail in over SMTP, by libcurl. With a login the connection is encrypted, or there is
/// none.
/// \throws RemoteError        naming the server, when it does not take the mail
/// \throws NotSupportedError  in a build without libcurl
void send_mail(const MailServer& server, const Mail& mail, const RetryPolicy& policy);

/// \throws NotSupportedError  in a build without libcurl
void require_mail();

}  // namespace rondo
