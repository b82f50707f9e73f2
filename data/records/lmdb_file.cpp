#include "data/records/lmdb_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace rondo {

namespace {

constexpr uint64_t kHeader = 16;  // bytes that begin a page
constexpr uint64_t kNode = 8;     // bytes before a node's key
constexpr uint64_t kMeta = 152;   // bytes of a page that begins the file
constexpr uint64_t kNoPage = ~uint64_t{0};
constexpr uint32_t kMagic = 0xBEEFC0DE;
constexpr uint16_t kBranch = 0x01;
constexpr uint16_t kLeaf = 0x02;
constexpr uint16_t kOverflow = 0x04;
constexpr uint16_t kBigData = 0x01;        // the value is on pages of its own
constexpr uint16_t kOtherData = 0x06;      // a database, or several values
constexpr uint16_t kSeveralValues = 0x04;  // MDB_DUPSORT

template <class T>
T number_at(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

}  // namespace

LmdbFile::LmdbFile(const std::filesystem::path& path) : path_(path), file_(path) {
  constexpr uint64_t kLeast = 256;
  constexpr uint64_t kMost = 65536;
  Meta first;
  if (!read_meta(0, first)) {
    fail("it does not begin like an LMDB database of format 1");
  }
  const uint64_t size = first.page_size;
  if (size < kLeast || size > kMost || (size & (size - 1)) != 0) {
    fail(fmt::format("its pages have {} bytes", size));
  }
  Meta second;
  const bool has_second = read_meta(size, second) && second.page_size == size;
  meta_ = has_second && second.transaction > first.transaction ? second : first;
  if (meta_.has_duplicates) {
    fail("its keys have several values each, which is not supported");
  }
}

void LmdbFile::fail(const std::string& what) const {
  throw DataError(path_.string() + ": " + what);
}

bool LmdbFile::read_meta(uint64_t offset, Meta& meta) const {
  if (file_.size() < kMeta || offset > file_.size() - kMeta) {
    return false;
  }
  const char* const at = static_cast<const char*>(file_.data()) + offset + kHeader;
  const char* const main = at + 24 + 48;  // behind the database of free pages
  meta.page_size = number_at<uint32_t>(at + 24);
  meta.has_duplicates = (number_at<uint16_t>(main + 4) & kSeveralValues) != 0;
  meta.root = number_at<uint64_t>(main + 40);
  meta.transaction = number_at<uint64_t>(at + 24 + 2 * 48 + 8);
  return number_at<uint32_t>(at) == kMagic && number_at<uint32_t>(at + 4) == 1;
}

/// One way through the tree of pages.
class LmdbFile::Walk {
 public:
  using Take = std::function<void(std::string_view, std::string_view)>;

  Walk(const LmdbFile& file, const Take& take)
      : file_(file), take_(take), pages_(file.file_.size() / file.meta_.page_size) {}

  void below(uint64_t number, int depth) {
    constexpr int kDeepest = 32;
    const char* const page = page_at(number);
    const auto flags = number_at<uint16_t>(page + 10);
    const bool is_branch = (flags & kBranch) != 0;
    if (depth > kDeepest || ++visited_ > pages_) {
      fail(number, "it is reached twice");
    }
    if (is_branch == ((flags & kLeaf) != 0)) {
      fail(number, "it holds no keys");
    }
    const uint64_t lower = number_at<uint16_t>(page + 12);
    if (lower < kHeader || lower > size()) {
      fail(number, fmt::format("its list of nodes ends at {}", lower));
    }
    for (uint64_t at = kHeader; at + 2 <= lower; at += 2) {
      const uint64_t node = number_at<uint16_t>(page + at);
      if (node + kNode > size()) {
        fail(number, fmt::format("a node begins at {}", node));
      }
      if (is_branch) {
        below(child_of(page + node), depth + 1);
      } else {
        leaf(number, page, node);
      }
    }
  }

 private:
  uint64_t size() const { return file_.meta_.page_size; }

  [[noreturn]] void fail(uint64_t page, const std::string& what) const {
    throw DataError(fmt::format("{}: page {}: {}", file_.path_.string(), page, what));
  }

  const char* page_at(uint64_t number) const {
    if (number >= pages_) {
      fail(number, fmt::format("the file has {} pages", pages_));
    }
    return static_cast<const char*>(file_.file_.data()) + number * size();
  }

  static uint64_t child_of(const char* node) {
    return number_at<uint16_t>(node) | static_cast<uint64_t>(number_at<uint16_t>(node + 2)) << 16U |
           static_cast<uint64_t>(number_at<uint16_t>(node + 4)) << 32U;
  }

  void leaf(uint64_t number, const char* page, uint64_t node) const {
    const char* const at = page + node;
    const uint64_t bytes =
        number_at<uint16_t>(at) | static_cast<uint64_t>(number_at<uint16_t>(at + 2)) << 16U;
    const auto flags = number_at<uint16_t>(at + 4);
    const uint64_t key = number_at<uint16_t>(at + 6);
    const bool is_big = (flags & kBigData) != 0;
    if ((flags & kOtherData) != 0) {
      fail(number, "a value is itself a database, which is not supported");
    }
    const uint64_t here = is_big ? sizeof(uint64_t) : bytes;
    if (node + kNode + key > size() || here > size() - (node + kNode + key)) {
      fail(number, fmt::format("a node at {} of {} + {} bytes", node, key, here));
    }
    const char* const value = at + kNode + key;
    take_({at + kNode, key},
          is_big ? big_value(number_at<uint64_t>(value), bytes) : std::string_view(value, bytes));
  }

  std::string_view big_value(uint64_t first, uint64_t bytes) const {
    const char* const page = page_at(first);
    const uint64_t in_file = (pages_ - first) * size() - kHeader;
    if ((number_at<uint16_t>(page + 10) & kOverflow) == 0 || bytes > in_file) {
      fail(first, fmt::format("a value of {} bytes does not begin here", bytes));
    }
    return {page + kHeader, bytes};
  }

  const LmdbFile& file_;
  const Take& take_;
  uint64_t pages_;
  uint64_t visited_ = 0;
};

void LmdbFile::visit(
    const std::function<void(std::string_view key, std::string_view value)>& take) const {
  if (meta_.root != kNoPage) {
    Walk(*this, take).below(meta_.root, 0);
  }
}

}  // namespace rondo
