#include "server/access/keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"

namespace strata {
namespace {

constexpr size_t kMaxKeyBytes = 4096;  // metadata has room for 16 KiB

// What metadata can carry in one word.
absl::Status CheckKey(absl::string_view key, int line) {
  if (key.size() > kMaxKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line, ": longer than ", kMaxKeyBytes));
  }
  if (!std::all_of(key.begin(), key.end(), absl::ascii_isgraph)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "line ", line, ": a key is printable ASCII without spaces"));
  }
  return absl::OkStatus();
}

std::array<uint8_t, 32> Sha256(std::string_view bytes) {
  std::array<uint8_t, 32> digest;
  SHA256(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
         digest.data());
  return digest;
}

}  // namespace

absl::StatusOr<Keys> Keys::Parse(const std::string& text) {
  Keys keys;
  int line = 0;
  for (const absl::string_view whole : absl::StrSplit(text, '\n')) {
    ++line;
    const absl::string_view key = absl::StripAsciiWhitespace(whole);
    if (key.empty() || key[0] == '#') continue;
    STRATA_RETURN_IF_ERROR(CheckKey(key, line));
    keys.digests_.push_back(Sha256(std::string_view(key.data(), key.size())));
  }
  if (keys.digests_.empty()) {
    return absl::InvalidArgumentError("holds no key");
  }
  return keys;
}

bool Keys::Contains(std::string_view key) const {
  const Digest digest = Sha256(key);
  bool found = false;
  for (const Digest& known : digests_) {
    found |= CRYPTO_memcmp(known.data(), digest.data(), digest.size()) == 0;
  }
  return found;
}

}  // namespace strata
