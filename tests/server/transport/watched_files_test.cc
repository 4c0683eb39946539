#include "server/transport/watched_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class WatchedFilesTest : public testing::Test {
 protected:
  static std::string PathOf(const std::string& name) {
    return absl::StrCat(testing::TempDir(), "/watched_", name);
  }
  static void Write(const std::string& name, const std::string& text) {
    std::ofstream(PathOf(name), std::ios::binary) << text;
  }
  // Files that begin with "bad" are refused.
  absl::Status Open(const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(PathOf(name));
    auto opened = WatchedFiles::Open(
        paths,
        [this](const WatchedFiles::Contents& contents) {
          for (const std::string& content : contents) {
            if (content.substr(0, 3) == "bad") {
              return absl::InvalidArgumentError(content);
            }
          }
          used_ = contents;
          return absl::OkStatus();
        },
        [this](const absl::Status& status) {
          reports_.push_back(std::string(status.message()));
        });
    if (!opened.ok()) return opened.status();
    files_ = *std::move(opened);
    return absl::OkStatus();
  }

  WatchedFiles::Contents used_;
  std::vector<std::string> reports_;  // "": used
  std::unique_ptr<WatchedFiles> files_;
};

TEST_F(WatchedFilesTest, AreUsedAtOnceAndThenLeftAlone) {
  Write("a", "1");
  Write("b", std::string("\0\xff", 2));
  ASSERT_TRUE(Open({"a", "b"}).ok());
  EXPECT_THAT(used_, ElementsAre("1", std::string("\0\xff", 2)));
  used_.clear();
  for (int i = 0; i < 5; ++i) files_->Look();
  EXPECT_THAT(used_, IsEmpty());
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(WatchedFilesTest, AChangeIsUsedOnceTwoLooksFindTheSame) {
  Write("a", "1");
  Write("b", "1");
  ASSERT_TRUE(Open({"a", "b"}).ok());
  Write("a", "2");
  files_->Look();
  EXPECT_THAT(used_, ElementsAre("1", "1"));
  Write("b", "2");  // the second of two that belong together
  files_->Look();
  EXPECT_THAT(used_, ElementsAre("1", "1"));
  files_->Look();
  EXPECT_THAT(used_, ElementsAre("2", "2"));
  files_->Look();
  EXPECT_THAT(reports_, ElementsAre(""));
}

TEST_F(WatchedFilesTest, WhatIsWrongIsReportedOnceAndTheFormerStays) {
  Write("a", "1");
  ASSERT_TRUE(Open({"a"}).ok());
  Write("a", "bad");
  for (int i = 0; i < 5; ++i) files_->Look();
  EXPECT_THAT(reports_, ElementsAre("bad"));
  ASSERT_EQ(std::remove(PathOf("a").c_str()), 0);
  for (int i = 0; i < 5; ++i) files_->Look();
  ASSERT_THAT(reports_, SizeIs(2));
  EXPECT_THAT(reports_[1], HasSubstr("watched_a: cannot be read"));
  EXPECT_THAT(used_, ElementsAre("1"));
  used_.clear();
  Write("a", "1");  // back again
  for (int i = 0; i < 5; ++i) files_->Look();
  EXPECT_THAT(used_, ElementsAre("1"));
  EXPECT_THAT(reports_, SizeIs(3));
}

TEST_F(WatchedFilesTest, ALinkThatPointsElsewhereIsAChange) {
  Write("one", "1");
  Write("two", "2");
  const auto link = [](const std::string& to) {
    ASSERT_EQ(symlink(PathOf(to).c_str(), PathOf("new_link").c_str()), 0);
    ASSERT_EQ(std::rename(PathOf("new_link").c_str(), PathOf("link").c_str()),
              0);
  };
  link("one");
  ASSERT_TRUE(Open({"link"}).ok());
  link("two");
  files_->Look();
  files_->Look();
  EXPECT_THAT(used_, ElementsAre("2"));
}

TEST_F(WatchedFilesTest, RefusesWhatCannotBeReadOrUsed) {
  EXPECT_EQ(Open({"nowhere"}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Open({"/.."}).code(), absl::StatusCode::kNotFound);
  Write("bad", "bad one");
  EXPECT_EQ(Open({"bad"}).message(), "bad one");
  Write("large", std::string(1 << 20, 'a'));
  EXPECT_TRUE(Open({"large"}).ok());
  Write("large", std::string((1 << 20) + 1, 'a'));
  EXPECT_THAT(std::string(Open({"large"}).message()),
              HasSubstr("larger than 1048576 bytes"));
  Write("empty", "");
  EXPECT_TRUE(Open({"empty"}).ok());
}

}  // namespace
}  // namespace strata
