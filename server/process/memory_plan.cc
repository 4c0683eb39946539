#include "server/process/memory_plan.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"

namespace strata {
namespace {

// "1.5 GiB", for people.
std::string Rounded(int64_t bytes) {
  const char* const units[] = {"GiB", "MiB", "KiB"};
  int shift = 30;
  for (const char* unit : units) {
    if (bytes >= int64_t{1} << shift) {
      return absl::StrFormat(
          "%.1f %s", static_cast<double>(bytes) / (int64_t{1} << shift), unit);
    }
    shift -= 10;
  }
  return absl::StrCat(bytes, " bytes");
}

}  // namespace

absl::Status OutOfMemory(absl::string_view what,
                         std::optional<int64_t> wanted_bytes,
                         int64_t free_bytes, absl::string_view remedy) {
  return absl::ResourceExhaustedError(
      absl::StrCat("out of memory for ", what, ": ",
                   wanted_bytes.has_value() ? Rounded(*wanted_bytes) : "more",
                   " wanted, ", Rounded(free_bytes), " free (", remedy, ")"));
}

absl::Status CheckFits(absl::string_view what, int64_t wanted_bytes,
                       int64_t free_bytes, absl::string_view remedy) {
  if (wanted_bytes <= free_bytes) return absl::OkStatus();
  return OutOfMemory(what, wanted_bytes, free_bytes, remedy);
}

absl::StatusOr<int64_t> NumKvPages(const MemorySize& kv_memory,
                                   int64_t free_bytes, int64_t page_bytes) {
  constexpr int64_t kMaxPages = std::numeric_limits<int32_t>::max();
  const std::string flag =
      absl::StrCat("--kv_memory=", FormatMemorySize(kv_memory));
  int64_t num_pages = kv_memory.BytesOf(free_bytes) / page_bytes;
  if (kv_memory.percent > 0) num_pages = std::min(num_pages, kMaxPages);
  if (num_pages > kMaxPages) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": at most ", kMaxPages, " pages of ",
                     FormatByteSize(page_bytes), " are allowed"));
  }
  if (num_pages == 0) {
    const std::string size =
        kv_memory.percent > 0
            ? absl::StrCat(", ", Rounded(kv_memory.BytesOf(free_bytes)))
            : "";
    return absl::InvalidArgumentError(
        absl::StrCat(flag, size, ": one page of this model needs ",
                     FormatByteSize(page_bytes)));
  }
  STRATA_RETURN_IF_ERROR(CheckFits("the KV cache", num_pages * page_bytes,
                                   free_bytes, absl::StrCat("lower ", flag)));
  return num_pages;
}

}  // namespace strata
