#pragma once

#include <map>
#include <string>
#include <string_view>

namespace rondo {

/// Who signs. Never shown to anybody.
struct Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  ///< "" when there is none
};

/// What a signature is about. Its text never has the secret in it.
struct SignedRequest {
  std::string method;
  std::string path;                            ///< encoded as it is sent, such as "/bucket/a%20b"
  std::map<std::string, std::string> query;    ///< not encoded
  std::map<std::string, std::string> headers;  ///< names in lower case, with "host"
  std::string payload_hash;                    ///< SHA-256 of the body in hexadecimal digits
};

/// Where and when, as in "20130524/us-east-1/s3".
struct SignatureScope {
  std::string time;  ///< "20130524T000000Z"
  std::string region;
  std::string service = "s3";
};

/// The `authorization` header of AWS Signature Version 4.
/// Source: AWS, "Signature Calculations for the Authorization Header" in the API reference of S3.
std::string authorization_v4(const SignedRequest& request,
                             const SignatureScope& scope,
                             const Credentials& credentials);

/// The signature alone, 64 hexadecimal digits, of the headers that the request has.
std::string signature_v4(const SignedRequest& request,
                         const SignatureScope& scope,
                         std::string_view secret_key);

/// The 32 bytes that sign a day's requests.
std::string signing_key_v4(const SignatureScope& scope, std::string_view secret_key);

/// Bytes as they stand in an address: unreserved characters as they are, others as %XX.
std::string uri_encoded(std::string_view text, bool keeps_slashes);

/// "a=b&c=" with names in order, both encoded.
std::string query_text(const std::map<std::string, std::string>& query);

}  // namespace rondo
