#include "remote/mail.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rondo {

std::string message_of(const Mail& mail, const std::string& date) {
  std::string message = fmt::format(
      "Date: {}\r\nFrom: {}\r\nTo: {}\r\nSubject: {}\r\nMIME-Version: 1.0\r\n"
      "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n",
      date,
      mail.from,
      fmt::join(mail.to, ", "),
      mail.subject);
  for (const char c : mail.text) {
    if (c == '\n') {
      message += "\r\n";
    } else if (c != '\r') {
      message += c;
    }
  }
  return message;
}

}  // namespace rondo
