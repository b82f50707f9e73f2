#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/state_dict.h"
#include "remote/remote_store.h"

namespace rondo {

/// A checkpoint that a user named, as a file of this machine: an address such as "s3://bucket/a.pt"
/// is downloaded, and the file goes with the object. A name that ends with ".symlink", or that is
/// not there while one with that ending is, is a text with the name of another one (Composer's
/// links).
class FetchedCheckpoint {
 public:
  /// \param scratch  directory for downloads
  /// \throws CheckpointError  when there is no such object, naming it
  FetchedCheckpoint(const std::filesystem::path& named,
                    const std::filesystem::path& scratch,
                    const OpenRemoteStore& open);
  FetchedCheckpoint(const FetchedCheckpoint&) = delete;
  FetchedCheckpoint& operator=(const FetchedCheckpoint&) = delete;
  ~FetchedCheckpoint();

  const std::filesystem::path& file() const { return file_; }

 private:
  bool fetch(const std::string& name,
             const std::filesystem::path& scratch,
             const OpenRemoteStore& open);

  std::filesystem::path file_;
  bool is_download_ = false;
};

/// What the checkpoint of that name is told by from an earlier or later one, after links: see
/// `RemoteStore::version`; "" when there is none, it cannot be reached, or its store does not know.
std::string version_of_checkpoint(const std::filesystem::path& named,
                                  const OpenRemoteStore& open = open_remote_store);

/// Reads a checkpoint that a user named.
StateDict read_named_checkpoint(const std::filesystem::path& named,
                                const std::filesystem::path& scratch,
                                const OpenRemoteStore& open = open_remote_store);

/// The addresses under a glob of addresses, "s3://bucket/runs/*.pt"; wildcards stand in the last
/// part.
std::vector<std::string> matching_addresses(const std::string& glob,
                                            const OpenRemoteStore& open = open_remote_store);

}  // namespace rondo
