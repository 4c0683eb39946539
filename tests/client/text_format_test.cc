#include "client/text_format.h"

#include <gtest/gtest.h>

#include <string>

#include "client/table.h"

namespace strata {
namespace {

TEST(FormatBytesTest, ThreeDigitsAndBinaryUnits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.00 KiB");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(10 * 1024), "10.0 KiB");
  EXPECT_EQ(FormatBytes(100 * 1024 + 512), "100 KiB");
  EXPECT_EQ(FormatBytes(1024 * 1024 - 1), "1.00 MiB");
  EXPECT_EQ(FormatBytes(3ull << 40), "3.00 TiB");
}

TEST(OneLineTest, WhiteSpaceIsOneBlank) {
  EXPECT_EQ(OneLine("\n a\r\n\tb\u2028c \n"), "a b c");
}

TEST(OneLineTest, ControlsAndBadBytesCannotReachATerminal) {
  EXPECT_EQ(OneLine("a\x1b[31mb"), "a\uFFFD[31mb");
  EXPECT_EQ(OneLine("a\x7f\xc2\x9b"
                    "b"),
            "a\uFFFD\uFFFDb");
  EXPECT_EQ(OneLine("a\xff\xc3"), "a\uFFFD\uFFFD");
}

TEST(CutToWidthTest, CountsColumnsNotBytes) {
  EXPECT_EQ(CutToWidth("abc", 3), "abc");
  EXPECT_EQ(CutToWidth("abcd", 3), "ab…");
  EXPECT_EQ(CutToWidth("äöüß", 4), "äöüß");
  EXPECT_EQ(CutToWidth("äöüß", 3), "äö…");
  EXPECT_EQ(DisplayWidth("日本"), 4);
  EXPECT_EQ(CutToWidth("日本語", 4), "日…");  // the second would need column 4
  EXPECT_EQ(CutToWidth("日本語", 1), "…");
  EXPECT_EQ(DisplayWidth("e\u0301"), 1);
}

TEST(TerminalWidthTest, OtherwiseWhereThereIsNone) {
  EXPECT_EQ(TerminalWidth(-1, 77), 77);
}

TEST(TableTest, AlignsAndCutsTheLastColumn) {
  Table table(
      {{"name", Table::Align::kLeft}, {"n"}, {"text", Table::Align::kLeft}});
  table.AddRow({"é", "7", "short"});
  table.AddRow({"longer", "123", "a text that is too long"});
  EXPECT_EQ(table.Render(26),
            "name      n  text\n"
            "------  ---  -------------\n"
            "é         7  short\n"
            "longer  123  a text that …\n");
  EXPECT_EQ(table.Render(5),  // ten columns are the least
            "name      n  text\n"
            "------  ---  ----------\n"
            "é         7  short\n"
            "longer  123  a text th…\n");
}

}  // namespace
}  // namespace strata
