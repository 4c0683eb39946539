#include "base/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

ABSL_FLAG(std::string, flags_test_word, "", "any word");
ABSL_FLAG(int, flags_test_number, 3, "a number");
ABSL_FLAG(bool, flags_test_switch, false,
          "on or off, and a help text of so many words that it does not fit "
          "into one line of a terminal");
ABSL_FLAG(std::optional<bool>, flags_test_choice, std::nullopt, "or neither");
ABSL_FLAG(absl::Duration, flags_test_time, absl::Seconds(1), "a time");
ABSL_FLAG(double, flags_test_share, 0.5, "a share");
ABSL_FLAG(std::optional<uint32_t>, flags_test_count, std::nullopt, "a count");
ABSL_FLAG(int, flags_test_hidden, 0, "not in the list");

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kNames[] = {"flags_test_word",   "flags_test_number",
                                  "flags_test_switch", "flags_test_choice",
                                  "flags_test_time",   "flags_test_share",
                                  "flags_test_count"};

class FlagsTest : public ::testing::Test {
 protected:
  std::vector<std::string> Words(const std::vector<std::string>& args) {
    const auto words = SetFlags(args, FlagsNamed(kNames));
    EXPECT_TRUE(words.ok()) << words.status();
    return words.value_or(std::vector<std::string>{});
  }
  std::string Error(const std::vector<std::string>& args) {
    const auto words = SetFlags(args, FlagsNamed(kNames));
    EXPECT_EQ(words.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(words.status().message(), Not(HasSubstr("\n")));
    return std::string(words.status().message());
  }

 private:
  absl::FlagSaver saver_;
};

TEST_F(FlagsTest, WordsAreWhatNoFlagTakes) {
  EXPECT_THAT(Words({"a", "--flags_test_word", "b", "-", "-flags_test_number=7",
                     "c d", "--", "--e", "--"}),
              ElementsAre("a", "-", "c d", "--e", "--"));
  EXPECT_EQ(absl::GetFlag(FLAGS_flags_test_word), "b");
  EXPECT_EQ(absl::GetFlag(FLAGS_flags_test_number), 7);
}

TEST_F(FlagsTest, TheLastOneCounts) {
  Words({"--flags_test_word=a=b", "--flags_test_number=1",
         "--flags_test_number=2"});
  EXPECT_EQ(absl::GetFlag(FLAGS_flags_test_word), "a=b");
  EXPECT_EQ(absl::GetFlag(FLAGS_flags_test_number), 2);
}

TEST_F(FlagsTest, BooleansNeedNoValue) {
  EXPECT_THAT(Words({"--flags_test_switch", "a"}), ElementsAre("a"));
  EXPECT_TRUE(absl::GetFlag(FLAGS_flags_test_switch));
  Words({"--noflags_test_switch"});
  EXPECT_FALSE(absl::GetFlag(FLAGS_flags_test_switch));
  Words({"--flags_test_switch=true"});
  EXPECT_TRUE(absl::GetFlag(FLAGS_flags_test_switch));
  EXPECT_THAT(Words({"--flags_test_choice", "false"}), ElementsAre());
  EXPECT_EQ(absl::GetFlag(FLAGS_flags_test_choice), false);
}

TEST_F(FlagsTest, WhatIsWrongIsNamed) {
  EXPECT_EQ(Error({"--flags_test_wrd=1"}),
            "unknown flag \"--flags_test_wrd\"; --help lists them");
  EXPECT_THAT(Error({"--flags_test_hidden=1"}), HasSubstr("unknown flag"));
  EXPECT_THAT(Error({"--noflags_test_word"}), HasSubstr("unknown flag"));
  EXPECT_THAT(Error({"--noflags_test_switch=1"}), HasSubstr("unknown flag"));
  EXPECT_THAT(Error({"-5"}), HasSubstr("unknown flag \"--5\""));
  EXPECT_EQ(Error({"--flags_test_number"}),
            "--flags_test_number needs a value");
  EXPECT_EQ(Error({"--flags_test_number=x\n"}),
            "--flags_test_number=\"x\\n\": it needs a whole number");
  EXPECT_EQ(Error({"--flags_test_choice=maybe"}),
            "--flags_test_choice=\"maybe\": allowed are true, false");
  EXPECT_EQ(Error({"--flags_test_time=5"}),
            "--flags_test_time=\"5\": it needs a time with its unit, such as "
            "500ms, 30s or 2m");
  EXPECT_EQ(Error({"--flags_test_share=half"}),
            "--flags_test_share=\"half\": it needs a number");
  EXPECT_EQ(Error({"--flags_test_count=-1"}),
            "--flags_test_count=\"-1\": it needs a whole number, 0 or more");
  EXPECT_EQ(absl::GetFlag(FLAGS_flags_test_number), 3);
}

TEST(WantsHelpTest, BeforeTheDashesOnly) {
  EXPECT_TRUE(WantsHelp({"a", "--help"}));
  EXPECT_TRUE(WantsHelp({"-h"}));
  EXPECT_FALSE(WantsHelp({"a", "--helpful", "--", "--help"}));
}

TEST(FlagHelpTest, HasEveryFlagInOrder) {
  const std::string help = FlagHelp(FlagsNamed(kNames));
  EXPECT_EQ(help.find("  --flags_test_word=\n      any word\n"
                      "  --flags_test_number=3\n      a number\n"),
            0u);
  for (const absl::string_view line : absl::StrSplit(help, '\n')) {
    EXPECT_LE(line.size(), 80u);
  }
}

TEST(FlagsInTest, ByFolderOfTheFile) {
  constexpr absl::string_view kFolders[] = {"tests/base/"};
  std::vector<std::string> names;
  for (const auto* flag : FlagsIn(kFolders)) {
    names.emplace_back(flag->Name());
  }
  EXPECT_THAT(names, ElementsAre("flags_test_choice", "flags_test_count",
                                 "flags_test_hidden", "flags_test_number",
                                 "flags_test_share", "flags_test_switch",
                                 "flags_test_time", "flags_test_word"));
}

}  // namespace
}  // namespace strata
