#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace rondo::detail {

// Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3.
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kZip64EndSignature = 0x06064b50;
constexpr uint32_t kZip64LocatorSignature = 0x07064b50;

constexpr size_t kLocalSize = 30;  ///< without name and extra fields
constexpr size_t kEndSize = 22;    ///< without comment
constexpr size_t kZip64EndSize = 56;
constexpr size_t kZip64LocatorSize = 20;

constexpr uint16_t kStored = 0;
constexpr uint16_t kEncryptedFlag = 1 << 0;
constexpr uint16_t kUtf8Flag = 1 << 11;

constexpr uint16_t kZip64Extra = 0x0001;
constexpr uint16_t kPaddingExtra = 0x4246;  ///< "FB": padding, as PyTorch writes it

/// In place of a number that stands in the zip64 fields.
constexpr uint16_t kElsewhere16 = 0xFFFF;
constexpr uint32_t kElsewhere32 = 0xFFFFFFFF;

/// Records begin at multiples of this, as in PyTorch's files, so that they can be mapped.
constexpr uint64_t kRecordAlignment = 64;

/// The seal is the archive's comment, and so the last bytes of the file: this tag and the checksum
/// of every byte before the digits.
constexpr const char kSealTag[] = "rondo-crc32:";
constexpr size_t kSealDigits = 8;

inline std::string seal_of(uint32_t checksum) {
  return fmt::format("{}{:08x}", kSealTag, checksum);
}

}  // namespace rondo::detail
