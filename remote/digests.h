#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace rondo {

/// SHA-256 of bytes that come in pieces. \throws NotSupportedError  in a build without OpenSSL
class Sha256 {
 public:
  Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  ~Sha256();

  void update(std::string_view bytes);

  /// The 32 bytes, once.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// The 32 bytes of HMAC-SHA256.
std::string hmac_sha256(std::string_view key, std::string_view message);

/// Lower-case hexadecimal digits of bytes.
std::string to_hex(std::string_view bytes);

/// In hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
std::string sha256_hex_of_file(const std::filesystem::path& file);

}  // namespace rondo
