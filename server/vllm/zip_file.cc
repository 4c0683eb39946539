#include "server/vllm/zip_file.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/check.h"

namespace strata::vllm {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryHeader = 0x02014b50;
constexpr uint32_t kEndOfDirectory = 0x06054b50;
constexpr uint16_t kVersion = 10;            // 1.0: no compression
constexpr uint16_t kMadeBy = 3 << 8 | 10;    // on Unix
constexpr uint16_t kNamesAreUtf8 = 1 << 11;  // flag
constexpr uint16_t kFirstDay = 1 << 5 | 1;   // 1980-01-01, the earliest
constexpr uint32_t kMode = 0100644u << 16;   // a file, as Unix has it

std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table;
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
    }
    table[i] = value;
  }
  return table;
}

uint32_t Crc32(std::string_view bytes) {
  static const std::array<uint32_t, 256> kTable = MakeCrcTable();
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc = kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ crc >> 8;
  }
  return ~crc;
}

// The lowest byte first.
template <typename Integer>
void Append(Integer value, std::string* to) {
  for (size_t i = 0; i < sizeof(value); ++i) {
    to->push_back(static_cast<char>(value >> 8 * i));
  }
}

// What both headers of a file have, from the version that is needed on.
void AppendFacts(const NamedBytes& file, uint32_t crc, std::string* to) {
  const auto num_bytes = static_cast<uint32_t>(file.bytes.size());
  Append(kVersion, to);
  Append(kNamesAreUtf8, to);
  Append(uint16_t{0}, to);  // not compressed
  Append(uint16_t{0}, to);  // midnight
  Append(kFirstDay, to);
  Append(crc, to);
  Append(num_bytes, to);  // compressed
  Append(num_bytes, to);
  Append(static_cast<uint16_t>(file.name.size()), to);
  Append(uint16_t{0}, to);  // no extra field
}

void AppendDirectoryEntry(const NamedBytes& file, uint32_t crc, size_t offset,
                          std::string* to) {
  Append(kDirectoryHeader, to);
  Append(kMadeBy, to);
  AppendFacts(file, crc, to);
  Append(uint16_t{0}, to);  // no comment
  Append(uint16_t{0}, to);  // the first disk
  Append(uint16_t{0}, to);  // binary
  Append(kMode, to);
  Append(static_cast<uint32_t>(offset), to);
  to->append(file.name);
}

}  // namespace

std::string ZipFile(const std::vector<NamedBytes>& files) {
  STRATA_CHECK(files.size() <= std::numeric_limits<uint16_t>::max());
  std::string zip;
  std::string directory;
  for (const NamedBytes& file : files) {
    const uint32_t crc = Crc32(file.bytes);
    AppendDirectoryEntry(file, crc, zip.size(), &directory);
    Append(kLocalHeader, &zip);
    AppendFacts(file, crc, &zip);
    zip.append(file.name);
    zip.append(file.bytes);
  }
  const size_t offset = zip.size();
  STRATA_CHECK(offset + directory.size() <=
               std::numeric_limits<uint32_t>::max());
  const auto num_files = static_cast<uint16_t>(files.size());
  zip.append(directory);
  Append(kEndOfDirectory, &zip);
  Append(uint16_t{0}, &zip);  // of one disk
  Append(uint16_t{0}, &zip);
  Append(num_files, &zip);
  Append(num_files, &zip);
  Append(static_cast<uint32_t>(directory.size()), &zip);
  Append(static_cast<uint32_t>(offset), &zip);
  Append(uint16_t{0}, &zip);  // no comment
  return zip;
}

}  // namespace strata::vllm
