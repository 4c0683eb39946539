#include "core/text/unicode.h"

#include "core/text/byte_unicode.h"
#include "core/text/marked_text.h"
#include "tests/core/text/golden.h"

namespace strata {
namespace {

TEST(NfcTest, EqualsTheReference) {
  for (const auto& golden : ReadGolden("nfc.json")) {
    std::string normalized;
    AppendNfc(golden[0].get<std::string>(), &normalized);
    EXPECT_EQ(normalized, golden[1].get<std::string>()) << golden[0].dump();
    std::string storage;
    EXPECT_EQ(
        Normalize({golden[0].get_ref<const std::string&>(), {}}, &storage).text,
        golden[1].get<std::string>())
        << golden[0].dump();
  }
}

TEST(NfcTest, OrdersAMillionMarksWithoutQuadraticTime) {
  std::string text = "a";
  for (int i = 0; i < 500000; ++i)
    text += "\u0323\u0301";  // classes 220 and 230
  std::string normalized;
  AppendNfc(text, &normalized);
  EXPECT_TRUE(normalized.starts_with("\u1EA1\u0323\u0323"));
  EXPECT_TRUE(normalized.ends_with("\u0301\u0301"));
}

TEST(MarkedTextTest, NormalizationKeepsThePlainRanges) {
  // A mark of the plain part composes with a letter of the other: the whole
  // character is plain.
  const std::string text = "xe\u0301y";
  std::string storage;
  const MarkedText normalized = Normalize({text, {{2, 4}}}, &storage);
  EXPECT_EQ(normalized.text, "x\u00E9y");
  ASSERT_EQ(normalized.plain.size(), 1u);
  EXPECT_EQ(normalized.plain[0].begin, 1u);
  EXPECT_EQ(normalized.plain[0].end, 3u);
}

TEST(MarkedTextTest, CutsTheRangesWithTheText) {
  const MarkedText cut = Cut({"0123456789", {{0, 2}, {3, 5}, {6, 9}}}, 4, 8);
  EXPECT_EQ(cut.text, "4567");
  ASSERT_EQ(cut.plain.size(), 2u);
  EXPECT_EQ(cut.plain[0].begin, 0u);
  EXPECT_EQ(cut.plain[0].end, 1u);
  EXPECT_EQ(cut.plain[1].begin, 2u);
  EXPECT_EQ(cut.plain[1].end, 4u);
}

TEST(UnspellBytesTest, KnowsTheAlphabet) {
  EXPECT_EQ(UnspellBytes("\u0120a\u010A\u0100\u0143\u00E9"),
            std::string(" a\n\0\xAD\xE9", 6));
  EXPECT_EQ(UnspellBytes("a b"), std::nullopt);
  EXPECT_EQ(UnspellBytes("\u0144"), std::nullopt);
  EXPECT_EQ(UnspellBytes("\u00AD"), std::nullopt);
}

}  // namespace
}  // namespace strata
