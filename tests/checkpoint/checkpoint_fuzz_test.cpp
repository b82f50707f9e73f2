// Files that nobody wrote in good faith. Of each only a CheckpointError comes out, or a state;
// nothing is written, and memory stays in proportion to the file.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/types.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/archives.h"
#include "checkpoint/heap_meter.h"
#include "checkpoint/internal/bytes.h"
#include "checkpoint/internal/compression.h"
#include "checkpoint/packed.h"
#include "checkpoint/pickled_text.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;
using namespace std::string_literals;

TEST_SUITE_BEGIN("checkpoint/checkpoint_fuzz");

namespace {

std::string sample_bytes(const TempDir& dir) {
  write_checkpoint(*real_file_system(), dir / "sample.pt", sample_state());
  const std::string bytes = bytes_of(dir / "sample.pt");
  std::filesystem::remove(dir / "sample.pt");
  return bytes;
}

template <class Items>
const auto& any_of(const Items& items, std::mt19937& random) {
  return items[random() % std::size(items)];
}

/// Bytes with one to four random changes: bits, bytes, runs that are taken out, doubled or
/// overwritten.
std::string mutated(std::string bytes, std::mt19937& random) {
  const auto below = [&random](size_t limit) { return random() % std::max<size_t>(limit, 1); };
  for (size_t change = 1 + below(4); change > 0 && !bytes.empty(); --change) {
    const size_t at = below(bytes.size());
    const size_t run = 1 + below(std::min<size_t>(bytes.size() - at, 40));
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.erase(at, run);
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size()), run));
        break;
      case 4:
        bytes.replace(at, run, run, static_cast<char>(below(2) * 0xFF));
        break;
      default:
        bytes.resize(at);
        break;
    }
  }
  return bytes;
}

/// Reads files, and checks that each takes memory in proportion to its size and, at its end, that
/// reading wrote nothing into the directory.
class Campaign {
 public:
  explicit Campaign(const TempDir& dir) : dir_(dir) {}

  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

  ~Campaign() { CHECK(real_file_system()->list(dir_.path()) == std::vector<std::string>{"x.pt"}); }

  bool is_refused() const {
    // A byte of a pickle can be a value in a list that just doubled: 196 bytes at most were seen.
    // The decoder of zstd takes 2.7 MB, however small the file is.
    constexpr int64_t kOfAByte = 300;
    constexpr int64_t kAlways = int64_t{4} << 20;
    const std::filesystem::path file = dir_ / "x.pt";
    const HeapMeter heap;
    const bool refused = rondo::test::is_refused(file);
    CHECK(heap.peak() <=
          kOfAByte * static_cast<int64_t>(std::filesystem::file_size(file)) + kAlways);
    return refused;
  }

 private:
  const TempDir& dir_;
};

/// Pieces of pickles, sound ones and others: what they say is up to chance.
std::vector<std::string> fragments() {
  const auto storage = [](const char* type, const char* key, const char* size) {
    return "("s + pickled("storage") + "ctorch\n" + type + "\n" + pickled(key) + pickled("cpu") +
           size + "tQ";
  };
  const auto rebuild = [](const std::string& arguments) {
    return "ctorch._utils\n_rebuild_tensor_v2\n(" + arguments + "tR";
  };
  const std::string tail =
      "\x89"
      "ccollections\nOrderedDict\n)R";
  const std::string floats = storage("FloatStorage", "0", "K\x0c");
  return {"N",
          "\x88",
          "\x89",
          "(",
          ")",
          "]",
          "}",
          "t",
          "\x85",
          "\x86",
          "\x87",
          "a",
          "e",
          "s",
          "u",
          "q\x01",
          "h\x01",
          "q\x02",
          "h\x02",
          "r\xff\xff\xff\xff",
          "j\xff\xff\xff\xff",
          "R",
          "b",
          "Q",
          ".",
          "K\x01",
          "K\x04",
          "M\xff\xff",
          "J\xff\xff\xff\xff",
          "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
          "\x8a\x09\x01\x02\x03\x04\x05\x06\x07\x08\x09",
          "G\x7f\xf0"s + std::string(6, '\0'),
          pickled("a"),
          pickled("b"),
          pickled(""),
          pickled(std::string(100, 'x')),
          "X\xff\xff\xff\x7f",
          "cos\nsystem\n",
          "c__builtin__\neval\n",
          "cposix\nsystem\n",
          "ctorch\nload\n",
          "ctorch\nSize\n",
          "ccollections\nOrderedDict\n",
          "ctorch._utils\n_rebuild_parameter\n",
          "(" + pickled("rm -rf /") + "tR",
          "K\x01K\x02\x86",
          "(K\x01K\x02K\x03t",
          "]q\x03h\x03a",
          "}q\x04(" + pickled("c") + "h\x04u",
          floats,
          storage("BoolStorage", "2", "K\x03"),
          storage("DoubleStorage", "3", "K\x01"),
          storage("FloatStorage", "../../etc/passwd", "K\x0c"),
          storage("FloatStorage", "0", "J\xff\xff\xff\x7f"),
          storage("LongStorage", "0", "K\x06"),
          rebuild(floats + "K\x00K\x03K\x04\x86K\x04K\x01\x86"s + tail),
          rebuild(floats + "K\x00K\x0c\x85K\x01\x85"s + tail),
          rebuild(floats + "K\x0bK\x02\x85K\x01\x85" + tail),
          rebuild(floats + "K\x00J\xff\xff\xff\x7f\x85K\x00\x85"s + tail),
          rebuild(floats + "J\xff\xff\xff\xffK\x01\x85K\x01\x85" + tail)};
}

/// Fields of zip headers that lie: each record's, the directory's, or those at the end.
std::string with_lying_headers(std::string bytes, std::mt19937& random) {
  const std::string signatures[] = {"PK\x03\x04", "PK\x01\x02", "PK\x05\x06"};
  constexpr uint64_t kValues[] = {
      0, 1, 2, 7, 63, 64, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF};
  for (int change = 1 + static_cast<int>(random() % 3); change > 0; --change) {
    std::vector<size_t> headers;
    const std::string& signature = any_of(signatures, random);
    for (size_t at = bytes.find(signature); at != std::string::npos;
         at = bytes.find(signature, at + 1)) {
      headers.push_back(at);
    }
    if (headers.empty()) {
      return bytes;
    }
    const size_t at = any_of(headers, random) + 4 + random() % 42;
    const bool is_close = random() % 3 == 0;  // else a number of its own
    const uint64_t value = is_close ? bytes.size() - random() % 80 : any_of(kValues, random);
    std::string field;
    rondo::detail::put(field, static_cast<uint32_t>(value));
    const size_t width = random() % 2 == 0 ? 2 : 4;
    bytes.replace(std::min(at, bytes.size() - width), width, field, 0, width);
  }
  return bytes;
}

/// The zip CRC-32, bit by bit.
uint32_t crc_of(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
    }
  }
  return ~crc;
}

/// The same with a seal that is right.
std::string sealed_anew(const std::string& bytes) {
  const std::string body = bytes.substr(0, bytes.size() - 8);
  return body + fmt::format("{:08x}", crc_of(body));
}

void write_with_pickle(const TempDir& dir, const std::string& pickle) {
  write_archive(dir / "x.pt",
                {{"data.pkl", pickle},
                 {"data/0", std::string(48, '\1')},
                 {"data/1", std::string(4, '\1')},
                 {"data/2", std::string(3, '\1')},
                 {"data/3", std::string(8, '\1')}});
}

}  // namespace

TEST_CASE("mutated files") {
  const TempDir dir;
  std::mt19937 random(20240501);
  const std::string corpus[] = {sample_bytes(dir),
                                bytes_of(python_file("python_state_dict.pt")),
                                bytes_of(python_file("python_values.pt"))};
  const Campaign campaign(dir);
  for (int i = 0; i < 750 * campaign_scale(); ++i) {
    CAPTURE(i);
    const std::string& original = corpus[i % std::size(corpus)];
    const std::string bytes = mutated(original, random);
    write_bytes(dir / "x.pt", bytes);
    const bool refused = campaign.is_refused();
    if (i % std::size(corpus) == 0 && bytes != original) {
      CHECK(refused);
    }
  }
}

TEST_CASE("mutated pickles behind correct checksums") {
  const TempDir dir;
  std::mt19937 random(20240502);
  const std::string file = sample_bytes(dir);
  const size_t begin = file.find(std::string("\x80\x02}", 3));
  const std::string pickle = file.substr(begin, file.find("PK", begin) - begin);
  REQUIRE(pickle.back() == '.');
  write_with_pickle(dir, pickle);
  REQUIRE(read_error(dir / "x.pt") == "");
  const Campaign campaign(dir);
  for (int i = 0; i < 750 * campaign_scale(); ++i) {
    CAPTURE(i);
    write_with_pickle(dir, mutated(pickle, random));
    campaign.is_refused();
  }
}

TEST_CASE("pickles put together at random, of what torch.save writes and of what an enemy would") {
  const TempDir dir;
  std::mt19937 random(20240503);
  const std::vector<std::string> pieces = fragments();
  write_with_pickle(dir, "");
  const Campaign campaign(dir);
  int accepted = 0;
  for (int i = 0; i < 600 * campaign_scale(); ++i) {
    CAPTURE(i);
    std::string pickle = "\x80\x02}";
    for (int entry = static_cast<int>(random() % 4); entry >= 0; --entry) {
      pickle += pickled(std::to_string(entry));
      for (int piece = static_cast<int>(random() % 3); piece >= 0; --piece) {
        pickle += any_of(pieces, random);
      }
      pickle += "s";
    }
    write_with_pickle(dir, pickle + ".");
    accepted += campaign.is_refused() ? 0 : 1;
  }
  CHECK(accepted > 0);  // they get to what comes behind the first check
}

TEST_CASE("headers that lie, behind a correct seal") {
  const TempDir dir;
  std::mt19937 random(20240504);
  const std::string file = sample_bytes(dir);
  write_bytes(dir / "x.pt", sealed_anew(file));
  REQUIRE(read_error(dir / "x.pt") == "");
  const Campaign campaign(dir);
  for (int i = 0; i < 300 * campaign_scale(); ++i) {
    CAPTURE(i);
    write_bytes(dir / "x.pt", sealed_anew(with_lying_headers(file, random)));
    campaign.is_refused();
  }
}

TEST_CASE("mutated compressed files, and compressed mutated files") {
  const TempDir dir;
  std::mt19937 random(20240505);
  const std::string file = sample_bytes(dir);
  write_bytes(dir / "x.pt", file);
  const Campaign campaign(dir);
  for (int i = 0; i < 200 * campaign_scale(); ++i) {
    CAPTURE(i);
    const auto compression =
        i % 2 == 0 ? rondo::detail::Compression::Gzip : rondo::detail::Compression::Zstd;
    write_bytes(dir / "x.pt",
                i % 4 < 2 ? mutated(packed(compression, file), random)
                          : packed(compression, mutated(file, random)));
    campaign.is_refused();
  }
}

TEST_CASE("bombs: records, references and streams that unfold without measure") {
  const TempDir dir;
  write_with_pickle(dir, "");
  const Campaign campaign(dir);
  std::string references = "\x80\x02}" + pickled("v") + "]q\x00"s;
  for (int level = 1; level < 60; ++level) {  // each list holds the one before it four times
    const std::string before = "h"s + static_cast<char>(level - 1);
    references += "](" + before + before + before + before + "eq"s + static_cast<char>(level);
  }
  write_with_pickle(dir, references + "s.");
  CHECK(campaign.is_refused());
  write_with_pickle(dir, "\x80\x02}" + pickled("v") + std::string(1'000'000, ']') + "s.");
  CHECK(campaign.is_refused());
  write_with_pickle(dir, "\x80\x02}" + pickled("v") + "(" + std::string(3'000'000, 'N') + "ts.");
  campaign.is_refused();
  const std::string zeros(size_t{100} << 20, '\0');
  write_bytes(dir / "x.pt", packed(rondo::detail::Compression::Zstd, zeros));
  CHECK(campaign.is_refused());
  write_bytes(dir / "x.pt",
              packed(rondo::detail::Compression::Gzip, zeros.substr(0, zeros.size() / 4)));
  CHECK(campaign.is_refused());
}

TEST_CASE("names of records are names and no paths") {
  const TempDir dir;
  const std::string outside = (dir / "outside").string();
  const auto state_with = [](const std::string& key) {
    return "\x80\x02}" + pickled("t") + "ctorch._utils\n_rebuild_tensor_v2\n((" +
           pickled("storage") + "ctorch\nFloatStorage\n" + pickled(key) + pickled("cpu") +
           "K\x01tQK\x00K\x01\x85K\x01\x85\x89"
           "ccollections\nOrderedDict\n)RtRs."s;
  };
  write_archive(dir / "x.pt", {{"data.pkl", state_with("0")}, {"data/0", "abcd"}});
  REQUIRE(read_error(dir / "x.pt") == "");
  const Campaign campaign(dir);
  for (const std::string& name :
       {"../../outside"s, outside, "/etc/passwd"s, "0/../0"s, "0\0x"s, "./0"s}) {
    CAPTURE(name);
    write_archive(dir / "x.pt", {{"data.pkl", state_with(name)}, {"data/0", "abcd"}});
    CHECK(campaign.is_refused());
    write_archive(dir / "x.pt",
                  {{"data.pkl", state_with("0")}, {"data/0", "abcd"}, {name, "efgh"}});
    campaign.is_refused();
  }
}

TEST_SUITE_END();
