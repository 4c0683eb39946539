#ifndef SERVER_ACCESS_KEYS_H_
#define SERVER_ACCESS_KEYS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace strata {

// The keys of one file, as SHA-256, so that what is compared has one length.
// Immutable.
class Keys {
 public:
  // Of a text with one key a line, each of 1 to 4096 printable ASCII characters
  // without spaces.  Blank lines and those that begin with # are none.
  // INVALID_ARGUMENT: another line, or no key; names the line, shows no key.
  static absl::StatusOr<Keys> Parse(const std::string& text);

  // In a time that does not tell which key, if any, or how much of one it is.
  bool Contains(std::string_view key) const;

 private:
  using Digest = std::array<uint8_t, 32>;

  std::vector<Digest> digests_;
};

}  // namespace strata

#endif  // SERVER_ACCESS_KEYS_H_
