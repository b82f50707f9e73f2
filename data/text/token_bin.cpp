#include "data/text/token_bin.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/data_dir.h"
#include "data/internal/rows.h"
#include "data/register.h"

namespace rondo {

namespace {

int64_t token_bytes(const TokenBin::Options& options) {
  return options.dtype == "uint32" ? 4 : 2;
}

std::filesystem::path checked_path(const TokenBin::Options& options) {
  detail::require(!options.file.empty(), "TokenBin: file", "given", "\"\"");
  check_windows("TokenBin", options.context, options.stride);
  detail::require(options.dtype == "uint16" || options.dtype == "uint32",
                  "TokenBin: dtype",
                  "\"uint16\" or \"uint32\"",
                  options.dtype);
  return find_data_file(options.data_dir, {"TokenBin", {options.file}, options.folder, ""});
}

}  // namespace

TokenBin::TokenBin(const Options& options) : TokenBin(options, checked_path(options)) {}

TokenBin::TokenBin(const Options& options, const std::filesystem::path& path)
    : file_(path),
      is_wide_(options.dtype == "uint32"),
      windows_(static_cast<int64_t>(file_.size()) / token_bytes(options),
               options.context,
               options.stride) {
  const auto bytes = static_cast<int64_t>(file_.size());
  const int64_t rest = bytes % token_bytes(options);
  if (rest != 0) {
    throw DataError(fmt::format("{}: offset {}: expected whole tokens of {} bytes, got {} bytes",
                                path.string(),
                                bytes - rest,
                                token_bytes(options),
                                rest));
  }
  if (windows_.size() == 0) {
    throw DataError(fmt::format("{}: it has {} tokens; one window and its target need {}",
                                path.string(),
                                bytes / token_bytes(options),
                                options.context + 1));
  }
}

Sample TokenBin::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

Batch TokenBin::get_batch(const std::vector<int64_t>& indices) const {
  return is_wide_ ? windows_.gather(static_cast<const uint32_t*>(file_.data()), indices)
                  : windows_.gather(static_cast<const uint16_t*>(file_.data()), indices);
}

void register_token_bin(Registry<DataSource>& registry) {
  using Options = TokenBin::Options;
  registry.add<TokenBin>("TokenBin", "A memory-mapped file of token numbers as windows.")
      .key("file", &Options::file, "name or path of the tokens")
      .required()
      .key("context", &Options::context, at_least(1), "tokens of a window")
      .key("dtype", &Options::dtype, one_of({"uint16", "uint32"}), "type of a token, little-endian")
      .key("stride",
           &Options::stride,
           at_least(1),
           "tokens from one window to the next; context when absent")
      .key("data_dir", &Options::data_dir, "directory of the file; else RONDO_DATA")
      .key("folder", &Options::folder, "folder of data_dir that is searched too");
}

}  // namespace rondo
