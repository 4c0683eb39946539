#include "kernels/cpu/available_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace strata::cpu {
namespace {

// The names that one version of control groups has.
struct Version {
  const char* mount;
  const char* limit;
  const char* usage;
  const char* file_pages[2];  // keys of memory.stat, of the whole subtree
};
constexpr Version kV2 = {"/sys/fs/cgroup",
                         "memory.max",
                         "memory.current",
                         {"inactive_file", "active_file"}};
constexpr Version kV1 = {"/sys/fs/cgroup/memory",
                         "memory.limit_in_bytes",
                         "memory.usage_in_bytes",
                         {"total_inactive_file", "total_active_file"}};

// The number behind `key` in a file of lines "key number ...".
std::optional<int64_t> NumberOf(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    int64_t number = 0;
    if (words >> word >> number && word == key) return number;
  }
  return std::nullopt;
}

// The number that a file consists of; none where it says "max".
std::optional<int64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

// What the limit of one group leaves, if it has one.
std::optional<int64_t> LeftIn(const std::string& group,
                              const Version& version) {
  const auto limit = NumberIn(absl::StrCat(group, "/", version.limit));
  const auto usage = NumberIn(absl::StrCat(group, "/", version.usage));
  if (!limit.has_value() || !usage.has_value()) return std::nullopt;
  int64_t taken = *usage;
  for (const char* key : version.file_pages) {
    taken -= NumberOf(absl::StrCat(group, "/memory.stat"), key).value_or(0);
  }
  return *limit - std::max<int64_t>(taken, 0);
}

// What the limits of the group at `path` and of those around it leave.
int64_t LeftBelow(const std::string& root, const Version& version,
                  std::string path, int64_t available) {
  for (;;) {
    const auto left = LeftIn(absl::StrCat(root, version.mount, path), version);
    if (left.has_value()) available = std::min(available, *left);
    if (path.empty()) return available;
    path.resize(path.rfind('/'));
  }
}

}  // namespace

absl::StatusOr<int64_t> AvailableMemory(const std::string& root) {
  const std::string meminfo = absl::StrCat(root, "/proc/meminfo");
  const std::optional<int64_t> kib = NumberOf(meminfo, "MemAvailable:");
  if (!kib.has_value()) {
    return absl::NotFoundError(
        absl::StrCat(meminfo, " does not tell MemAvailable"));
  }
  int64_t available = *kib << 10;
  // "0::/path" is version 2, "7:memory:/path" version 1.
  std::ifstream groups(absl::StrCat(root, "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || parts[2].empty() || parts[2][0] != '/') continue;
    const std::string path = parts[2] == "/" ? "" : parts[2];
    if (parts[1].empty()) {
      available = LeftBelow(root, kV2, path, available);
    } else if (parts[1] == "memory") {
      available = LeftBelow(root, kV1, path, available);
    }
  }
  return std::max<int64_t>(available, 0);
}

}  // namespace strata::cpu
