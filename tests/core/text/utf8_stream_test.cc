#include "core/text/utf8_stream.h"

#include <random>

#include "tests/core/text/golden.h"

namespace strata {
namespace {

std::string Decode(const std::vector<std::string>& parts) {
  Utf8Stream stream;
  std::string text;
  for (const std::string& part : parts) stream.Append(part, &text);
  stream.Finish(&text);
  return text;
}

TEST(Utf8StreamTest, DecodesAsPythonWhereverTheBytesAreCut) {
  for (const auto& golden : ReadGolden("utf8.json")) {
    const std::string bytes = FromBase64(golden[0]);
    const std::string want = golden[1];
    EXPECT_EQ(Decode({bytes}), want);
    for (size_t i = 0; i <= bytes.size(); ++i) {
      EXPECT_EQ(Decode({bytes.substr(0, i), bytes.substr(i)}), want)
          << golden[0] << " at " << i;
    }
    std::vector<std::string> single;
    for (const char c : bytes) single.emplace_back(1, c);
    EXPECT_EQ(Decode(single), want) << golden[0];
  }
}

TEST(Utf8StreamTest, HoldsBackOnlyWhatIsIncomplete) {
  Utf8Stream stream;
  std::string text;
  stream.Append("a\xF0\x9F\x98", &text);
  EXPECT_EQ(text, "a");
  stream.Append("\x80z", &text);
  EXPECT_EQ(text, "a\xF0\x9F\x98\x80z");
  stream.Append("\xE2\x82", &text);
  stream.Finish(&text);
  EXPECT_EQ(text, "a\xF0\x9F\x98\x80z\xEF\xBF\xBD");
  stream.Finish(&text);  // nothing is left
  EXPECT_EQ(text, "a\xF0\x9F\x98\x80z\xEF\xBF\xBD");
}

}  // namespace
}  // namespace strata
