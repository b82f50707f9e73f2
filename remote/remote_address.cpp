#include "remote/remote_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/error.h"

namespace rondo {

namespace {

constexpr std::string_view kMark = "://";

/// What other programs call stores that rondo does not read, and what to do instead.
struct Refused {
  const char* scheme;
  const char* advice;
};

constexpr std::array<Refused, 9> kRefused = {{
    {"azure", "mount the container (blobfuse2) and name the folder, or copy with azcopy"},
    {"abfss", "mount the container (blobfuse2) and name the folder, or copy with azcopy"},
    {"wasbs", "mount the container (blobfuse2) and name the folder, or copy with azcopy"},
    {"dbfs", "on Databricks name the mounted folder /dbfs/..."},
    {"hdfs", "copy with `hdfs dfs`, or use its S3 gateway as s3:// with AWS_ENDPOINT_URL"},
    {"hf", "name the file as https://huggingface.co/<repository>/resolve/main/<file>"},
    {"wandb", "download the artifact with its own program"},
    {"mlflow", "download the artifact with its own program"},
    {"sftp", "copy with scp or rsync, or mount the folder with sshfs"},
}};

/// Keys of signed addresses.
constexpr std::array<std::string_view, 8> kSecretKeys = {"x-amz-signature",
                                                         "x-amz-security-token",
                                                         "x-goog-signature",
                                                         "signature",
                                                         "sig",
                                                         "token",
                                                         "access_token",
                                                         "key"};

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return result;
}

void refuse_secrets(const RemoteAddress& address) {
  const std::string where = fmt::format("the address {}://", address.scheme);
  if (address.authority.find('@') != std::string::npos && address.scheme != "oci") {
    throw UsageError(
        where +
        "... holds a user or password, which would stand in logs and saved configurations: give "
        "credentials by the environment");
  }
  std::string_view rest = address.query;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::string key = lower(pair.substr(0, pair.find('=')));
    if (std::find(kSecretKeys.begin(), kSecretKeys.end(), key) != kSecretKeys.end()) {
      throw UsageError(fmt::format(
          "{}{}/... is signed (its query has \"{}\"), which would stand in logs and saved "
          "configurations: download the file first, or name it as s3:// with credentials from the "
          "environment",
          where,
          address.authority,
          key));
    }
  }
}

void refuse_scheme(const std::string& scheme) {
  const auto refused = std::find_if(
      kRefused.begin(), kRefused.end(), [&](const Refused& one) { return scheme == one.scheme; });
  throw UsageError(fmt::format(
      "{}:// is not read by rondo: {}; it reads file://, http://, https://, s3://, gs:// and "
      "oci://",
      scheme,
      refused != kRefused.end() ? refused->advice
                                : "an S3-compatible server is s3:// with AWS_ENDPOINT_URL"));
}

}  // namespace

bool is_remote(std::string_view text) {
  const size_t mark = text.find(kMark);
  return mark != std::string_view::npos && mark > 0 &&
         std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(mark), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-';
         });
}

RemoteAddress parse_remote_address(std::string_view text) {
  if (!is_remote(text)) {
    throw UsageError(fmt::format(
        "expected an address such as \"s3://bucket/prefix\" or \"file:///folder\", got \"{}\"",
        text));
  }
  const size_t mark = text.find(kMark);
  RemoteAddress address;
  address.scheme = lower(text.substr(0, mark));
  std::string_view rest = text.substr(mark + kMark.size());
  const bool is_web = address.scheme == "http" || address.scheme == "https";
  if (const size_t query = rest.find('?'); is_web && query != std::string_view::npos) {
    address.query = rest.substr(query + 1);
    rest = rest.substr(0, query);
  }
  address.authority = rest.substr(0, rest.find('/'));
  rest.remove_prefix(std::min(rest.size(), address.authority.size() + 1));
  address.path = rest;
  const bool is_bucket =
      address.scheme == "s3" || address.scheme == "gs" || address.scheme == "oci";
  if (!is_web && !is_bucket && address.scheme != "file") {
    refuse_scheme(address.scheme);
  }
  refuse_secrets(address);
  if (address.authority.empty() == (is_web || is_bucket)) {
    throw UsageError(
        address.scheme == "file"
            ? fmt::format("\"{}\": a file's address has three slashes, file:///folder", text)
            : fmt::format("\"{}\" names no {}", text, is_web ? "host" : "bucket"));
  }
  return address;
}

AddressAndName split_address(std::string_view text) {
  parse_remote_address(text);  // refuses secrets, which would be in messages otherwise
  const size_t mark = text.find(kMark);
  const size_t query = text.find('?');
  const size_t slash = text.rfind('/', query);
  if (mark == std::string_view::npos || slash == std::string_view::npos ||
      slash < mark + kMark.size()) {
    throw UsageError(fmt::format("\"{}\" names no file", text));
  }
  return {std::string(text.substr(0, slash + 1)), std::string(text.substr(slash + 1))};
}

}  // namespace rondo
