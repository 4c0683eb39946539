#include "kernels/cpu/available_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace strata::cpu {
namespace {

// A made-up /proc and /sys.
class AvailableMemoryTest : public testing::Test {
 protected:
  AvailableMemoryTest()
      : root_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    Write("/proc/meminfo",
          "MemTotal:       8000 kB\nMemFree:        1000 kB\n"
          "MemAvailable:   5000 kB\n");
  }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(
        std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  int64_t AvailableKib() {
    const absl::StatusOr<int64_t> bytes = AvailableMemory(root_);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes % 1024, 0);
    return *bytes / 1024;
  }

  const std::string root_;
};

constexpr char kGroups[] = "/sys/fs/cgroup";

TEST_F(AvailableMemoryTest, IsTheMachinesWithoutGroups) {
  EXPECT_EQ(AvailableKib(), 5000);
}

TEST_F(AvailableMemoryTest, IsWhatALimitLeavesBesidePagesOfFiles) {
  Write("/proc/self/cgroup", "0::/\n");
  Write(absl::StrCat(kGroups, "/memory.max"), "4096000\n");
  Write(absl::StrCat(kGroups, "/memory.current"), "2048000\n");
  EXPECT_EQ(AvailableKib(), 2000);
  Write(
      absl::StrCat(kGroups, "/memory.stat"),
      "anon 1228800\nfile 819200\ninactive_file 102400\nactive_file 512000\n");
  EXPECT_EQ(AvailableKib(), 2600);
  Write(absl::StrCat(kGroups, "/memory.max"), "max\n");
  EXPECT_EQ(AvailableKib(), 5000);
}

TEST_F(AvailableMemoryTest, TheTightestOfTheGroupsAroundItCounts) {
  Write("/proc/self/cgroup", "1:cpu:/elsewhere\n0::/pod/container\n");
  for (const auto& [group, limit] : {std::pair("", "40960000\n"),
                                     {"/pod", "3072000\n"},
                                     {"/pod/container", "max\n"}}) {
    Write(absl::StrCat(kGroups, group, "/memory.max"), limit);
    Write(absl::StrCat(kGroups, group, "/memory.current"), "1024000\n");
  }
  EXPECT_EQ(AvailableKib(), 2000);
  Write(absl::StrCat(kGroups, "/pod/container/memory.max"), "1536000\n");
  EXPECT_EQ(AvailableKib(), 500);
}

TEST_F(AvailableMemoryTest, KnowsTheFirstVersion) {
  Write("/proc/self/cgroup", "8:memory:/a\n0::/\n");
  const std::string group = absl::StrCat(kGroups, "/memory/a");
  Write(group + "/memory.limit_in_bytes", "4096000\n");
  Write(group + "/memory.usage_in_bytes", "4096000\n");
  Write(group + "/memory.stat",
        "inactive_file 7\ntotal_inactive_file 1024000\n");
  EXPECT_EQ(AvailableKib(), 1000);
  // Its word for "no limit".
  Write(group + "/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(AvailableKib(), 5000);
}

TEST_F(AvailableMemoryTest, NothingIsLeftBeyondALimit) {
  Write("/proc/self/cgroup", "0::/\n");
  Write(absl::StrCat(kGroups, "/memory.max"), "1024000\n");
  Write(absl::StrCat(kGroups, "/memory.current"), "2048000\n");
  EXPECT_EQ(AvailableKib(), 0);
}

TEST_F(AvailableMemoryTest, WithoutProcItIsNotKnown) {
  const auto bytes = AvailableMemory(root_ + "/nowhere");
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kNotFound);
}

TEST_F(AvailableMemoryTest, IsSomethingOnThisMachine) {
  const auto bytes = AvailableMemory();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_GT(*bytes, 1 << 20);
}

}  // namespace
}  // namespace strata::cpu
