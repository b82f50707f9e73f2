#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remote/credentials.h"
#include "remote/retry.h"

namespace rondo {

/// Objects by name under an address such as "s3://bucket/runs/one". An object is there whole or not
/// at all. For one thread. All throw RemoteError naming the object, and UsageError where there are
/// no credentials.
class RemoteStore {
 public:
  virtual ~RemoteStore() = default;

  /// Replaces an object by the content of a file.
  virtual void upload(const std::filesystem::path& file, const std::string& name) = 0;

  /// Replaces an object by some bytes.
  virtual void put(const std::string& name, std::string_view bytes) = 0;

  /// \return the content of a small object; nothing when there is none
  virtual std::optional<std::string> read(const std::string& name) = 0;

  /// Writes an object into a file, whole and verified or not at all. \return false when there is
  /// none
  virtual bool download(const std::string& name, const std::filesystem::path& file) = 0;

  /// What an object is told by from an earlier or later one of that name, such as its ETag. "" when
  /// there is no such object, or the store does not know.
  virtual std::string version(const std::string& /*name*/) { return ""; }

  /// Every name under the address, sorted.
  virtual std::vector<std::string> list() = 0;

  /// Harmless when there is no such object.
  virtual void remove(const std::string& name) = 0;

  /// Asks for what uploads will need: that the bucket is there, and that it can be written to.
  virtual void check_access() = 0;

  /// As users read it.
  virtual std::string address_of(const std::string& name) const = 0;
};

/// Hears of bytes of an object that have come, and of how many there are, where the server says so;
/// at the end with the two alike.
using DownloadProgress =
    std::function<void(const std::string& address, int64_t bytes, std::optional<int64_t> of_bytes)>;

struct RemoteSettings {
  RetryPolicy retry = {};
  Environment environment = process_environment();
  std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;
  DownloadProgress on_download = {};  ///< may be null
  size_t part_size = 16U << 20;       ///< bytes of a part; larger files are sent in several
};

/// A store for an address: "file:///folder", "s3://bucket/prefix", "gs://...", "oci://...", and to
/// read from only "http(s)://host/folder". Nothing is asked of a server yet.
/// \throws UsageError         for an address that cannot be read (`parse_remote_address`)
/// \throws NotSupportedError  in a build without libcurl, for all but files
std::unique_ptr<RemoteStore> open_remote_store(const std::string& address,
                                               RemoteSettings settings = {});

/// The same, as a seam for tests and for stores of a program's own.
using OpenRemoteStore = std::function<std::unique_ptr<RemoteStore>(const std::string& address,
                                                                   RemoteSettings settings)>;

}  // namespace rondo
