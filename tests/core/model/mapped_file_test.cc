#include "core/model/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "tests/core/model/temp_files.h"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(MappedFileTest, ShowsTheBytes) {
  const TempDirectory directory;
  const std::string content("a\0b\n", 4);
  const std::string path = directory.Write("file", content);
  std::filesystem::create_symlink(path, directory.Path("link"));
  for (const std::string& name : {path, directory.Path("link")}) {
    auto file = MappedFile::Open(name);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->text(), content);
    EXPECT_EQ((*file)->bytes().size(), content.size());
    EXPECT_EQ((*file)->path(), name);
  }
}

TEST(MappedFileTest, RefusesWhatIsNoFile) {
  const TempDirectory directory;
  ASSERT_EQ(mkfifo(directory.Path("fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink(directory.Path("nowhere"),
                                  directory.Path("dangling"));
  directory.Write("empty", "");
  struct Case {
    std::string path;
    absl::StatusCode code;
    const char* message;
  };
  for (const Case& c : {
           Case{directory.Path("absent"), absl::StatusCode::kNotFound,
                "No such file"},
           Case{directory.Path("dangling"), absl::StatusCode::kNotFound,
                "No such file"},
           Case{directory.Write("plain", "x") + "/x",
                absl::StatusCode::kFailedPrecondition, "Not a directory"},
           Case{directory.path(), absl::StatusCode::kInvalidArgument,
                "not a regular file"},
           Case{directory.Path("fifo"), absl::StatusCode::kInvalidArgument,
                "not a regular file"},
           Case{"/dev/null", absl::StatusCode::kInvalidArgument,
                "not a regular file"},
           Case{directory.Path("empty"), absl::StatusCode::kInvalidArgument,
                "is empty"},
       }) {
    const absl::Status status = MappedFile::Open(c.path).status();
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(std::string(status.message()), StartsWith(c.path + ": "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(MappedFileTest, OpenIfPresentTellsAbsentFromBroken) {
  const TempDirectory directory;
  auto absent = MappedFile::OpenIfPresent(directory.Path("absent"));
  ASSERT_TRUE(absent.ok());
  EXPECT_EQ(*absent, nullptr);
  EXPECT_FALSE(MappedFile::OpenIfPresent(directory.Write("empty", "")).ok());
  auto present = MappedFile::OpenIfPresent(directory.Write("file", "x"));
  ASSERT_TRUE(present.ok());
  EXPECT_EQ((*present)->text(), "x");
}

}  // namespace
}  // namespace strata
