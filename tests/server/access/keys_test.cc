#include "server/access/keys.h"

#include <gtest/gtest.h>

#include <string>

namespace strata {
namespace {

TEST(KeysTest, OneALineWithCommentsAndBlanks) {
  const auto keys = Keys::Parse("# comment\r\n\r\n  alpha\t\nbeta#2\n\n#gamma");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_TRUE(keys->Contains("alpha"));
  EXPECT_TRUE(keys->Contains("beta#2"));
  for (const std::string& other :
       {std::string(), std::string("alph"), std::string("alphaa"),
        std::string("ALPHA"), std::string("alpha\0", 6), std::string("gamma"),
        std::string("#gamma"), std::string("beta"), std::string(100000, 'a')}) {
    EXPECT_FALSE(keys->Contains(other)) << other.substr(0, 20);
  }
}

TEST(KeysTest, EveryPrintableCharacterMayBeInAKey) {
  std::string key = "k";
  for (char c = '!'; c <= '~'; ++c) key += c;
  const auto keys = Keys::Parse(key);
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_TRUE(keys->Contains(key));
}

TEST(KeysTest, RefusesFilesWithoutKeysAndLinesThatAreNone) {
  for (const std::string& text :
       {std::string(), std::string("\n\n"), std::string("# only\n")}) {
    EXPECT_EQ(Keys::Parse(text).status().message(), "holds no key");
  }
  for (const std::string& line :
       {std::string("two words"), std::string("tab\tbed"),
        std::string("nul\0key", 7), std::string("caf\xc3\xa9"),
        std::string("del\x7fkey")}) {
    EXPECT_EQ(Keys::Parse("fine\n# x\n" + line + "\n").status().message(),
              "line 3: a key is printable ASCII without spaces");
  }
  EXPECT_TRUE(Keys::Parse(std::string(4096, 'a')).ok());
  EXPECT_EQ(Keys::Parse(std::string(4097, 'a')).status().message(),
            "line 1: longer than 4096");
}

}  // namespace
}  // namespace strata
