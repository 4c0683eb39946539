#include "core/text/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace strata {
namespace {

using Strings = std::vector<std::string>;

TEST(StopMatcherTest, WithoutStopStringsAllTextPasses) {
  StopMatcher matcher({}, false);
  std::string out;
  EXPECT_FALSE(matcher.Append("any text", &out).has_value());
  EXPECT_EQ(out, "any text");
  matcher.Finish(&out);
  EXPECT_EQ(out, "any text");
}

TEST(StopMatcherTest, HoldsBackWhatCouldBecomeAMatch) {
  StopMatcher matcher({"END"}, false);
  std::string out;
  EXPECT_FALSE(matcher.Append("the E", &out));
  EXPECT_EQ(out, "the ");
  EXPECT_FALSE(matcher.Append("N", &out));
  EXPECT_EQ(out, "the ");
  EXPECT_FALSE(matcher.Append("EN", &out));
  EXPECT_EQ(out, "the EN");
  EXPECT_EQ(matcher.Append("D and more", &out), "END");
  EXPECT_EQ(out, "the EN");
}

TEST(StopMatcherTest, IncludedMatchesEndTheText) {
  StopMatcher matcher({"\n\n"}, true);
  std::string out;
  EXPECT_FALSE(matcher.Append("one\n", &out));
  EXPECT_EQ(out, "one");
  EXPECT_EQ(matcher.Append("\n\ntwo", &out), "\n\n");
  EXPECT_EQ(out, "one\n\n");
}

TEST(StopMatcherTest, FinishGivesWhatWasHeld) {
  StopMatcher matcher({"aab"}, false);
  std::string out;
  EXPECT_FALSE(matcher.Append("xaaa", &out));
  EXPECT_EQ(out, "xa");
  matcher.Finish(&out);
  EXPECT_EQ(out, "xaaa");
}

TEST(StopMatcherTest, OfSeveralTheFirstToBeginThenTheFirstListed) {
  std::string out;
  EXPECT_EQ(StopMatcher({"cd", "bcde"}, false).Append("abcde", &out), "bcde");
  EXPECT_EQ(out, "a");
  out.clear();
  EXPECT_EQ(StopMatcher({"bc", "bcd"}, false).Append("abcd", &out), "bc");
  EXPECT_EQ(StopMatcher({"bcd", "bc"}, true).Append("abcd", &out), "bcd");
  EXPECT_EQ(out, "aabcd");
}

TEST(StopMatcherTest, WhatMayNotMatchPassesButCanBeginAMatch) {
  StopMatcher matcher({"abab"}, false);
  std::string out;
  matcher.AppendUnmatched("xababa", &out);
  EXPECT_EQ(out, "xab");
  EXPECT_EQ(matcher.Append("b", &out), "abab");
  EXPECT_EQ(out, "xab");
}

// Where the first match ends in the whole text, by looking at every place;
// only matches that end in (from, to] count.
struct Match {
  size_t begin;
  std::string stop;
};
std::optional<Match> FindNaively(const std::string& text, const Strings& stop,
                                 size_t from, size_t to) {
  std::optional<Match> best;
  for (const std::string& s : stop) {
    for (size_t end = std::max(from + 1, s.size()); end <= to; ++end) {
      const size_t begin = end - s.size();
      if (text.compare(begin, s.size(), s) != 0) continue;
      if (!best || begin < best->begin) best = {begin, s};
    }
  }
  return best;
}

// The longest end of text[0, to) that begins one of the stop strings.
size_t HeldNaively(const std::string& text, size_t to, const Strings& stop) {
  for (size_t begin = 0; begin < to; ++begin) {
    const std::string_view end =
        std::string_view(text).substr(begin, to - begin);
    for (const std::string& s : stop) {
      if (end.size() < s.size() && s.starts_with(end)) return end.size();
    }
  }
  return 0;
}

std::string RandomText(std::mt19937_64* random, size_t length) {
  std::string text(length, 'a');
  for (char& c : text) c = static_cast<char>('a' + (*random)() % 2);
  return text;
}

TEST(StopMatcherTest, AgreesWithSearchesInTheWholeText) {
  std::mt19937_64 random(5);
  int num_found = 0;
  for (int round = 0; round < 30000; ++round) {
    SCOPED_TRACE(round);
    Strings stop(1 + random() % 4);
    for (std::string& s : stop) s = RandomText(&random, 2 + random() % 8);
    const std::string text = RandomText(&random, random() % 40);
    const bool include = random() % 2;
    const size_t unmatched = random() % 3 ? 0 : random() % (text.size() + 1);
    StopMatcher matcher(stop, include);
    std::string out;
    std::optional<Match> found;
    size_t at = 0;
    while (at < text.size() && !found) {
      const size_t size = std::min<size_t>(
          random() % 6, (at < unmatched ? unmatched : text.size()) - at);
      const std::string_view piece = std::string_view(text).substr(at, size);
      if (at < unmatched) {
        matcher.AppendUnmatched(piece, &out);
      } else {
        found = FindNaively(text, stop, at, at + size);
        const std::optional<std::string> got = matcher.Append(piece, &out);
        ASSERT_EQ(got.has_value(), found.has_value());
        if (found) {
          ASSERT_EQ(*got, found->stop);
          const size_t end = found->begin + (include ? got->size() : 0);
          ASSERT_EQ(out, text.substr(0, end));
          ++num_found;
        }
      }
      at += size;
      if (!found) {
        ASSERT_EQ(out, text.substr(0, at - HeldNaively(text, at, stop)));
      }
    }
    if (found) continue;
    matcher.Finish(&out);
    ASSERT_EQ(out, text);
  }
  EXPECT_GT(num_found, 10000);
}

}  // namespace
}  // namespace strata
