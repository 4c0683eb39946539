#include "core/model/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(ParseJsonObjectTest, Refuses) {
  std::string many = "{\"a\":[0";
  for (int i = 0; i < 1 << 21; ++i) many += ",0";
  struct Case {
    std::string text;
    const char* message;
  };
  for (const Case& c : {
           Case{"", "not valid JSON"},
           Case{"{", "not valid JSON"},
           Case{"{} x", "not valid JSON"},
           Case{"{\"a\":1e999}", "not valid JSON"},
           Case{"{\"a\":NaN}", "not valid JSON"},
           Case{"{\"a\":\"\xff\"}", "not valid JSON"},
           Case{std::string("{\"a\":\0}", 7), "not valid JSON"},
           Case{"[]", "not a JSON object"},
           Case{"7", "not a JSON object"},
           Case{R"({"a":1,"b":2,"a":3})", "doubled key \"a\""},
           Case{R"({"x":{"a\n":1,"a\n":2}})", "doubled key \"a\\n\""},
           Case{"{\"a\":" + std::string(1000000, '['), "nested too deeply"},
           Case{"{\"a\":" + std::string(20, '[') + std::string(20, ']') + "}",
                "nested too deeply"},
           Case{many + "]}", "too many values"},
       }) {
    const absl::Status status = ParseJsonObject("dir/x.json", c.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << c.text.substr(0, 40);
    EXPECT_THAT(std::string(status.message()), StartsWith("dir/x.json: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
}

TEST(ParseJsonObjectTest, AllowsEqualKeysInDifferentObjects) {
  auto json = ParseJsonObject(
      "p", R"({"a":{"k":1},"b":{"k":2},"k":[{"k":3},{"k":4}]})");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ((*json)["k"][1]["k"], 4);
}

TEST(JsonFieldsTest, ReadsByType) {
  const auto json = nlohmann::json::parse(
      R"({"i":2147483647,"n":null,"d":1.5,"b":true,"s":"text","big":2147483648,"neg":-1,
          "huge":1e30,"o":{},"long":")" +
      std::string(500, 'x') + "\"}");
  const JsonFields fields("file", json, "outer");
  EXPECT_EQ(fields.Integer("i").value(), 2147483647);
  EXPECT_EQ(fields.IntegerOr("n", 7).value(), 7);
  EXPECT_EQ(fields.IntegerOr("absent", 8).value(), 8);
  EXPECT_EQ(fields.Number("d").value(), 1.5);
  EXPECT_EQ(fields.Number("i").value(), 2147483647.0);
  EXPECT_EQ(fields.NumberOr("absent", 0.5).value(), 0.5);
  EXPECT_TRUE(fields.BoolOr("b", false).value());
  EXPECT_EQ(fields.StringOr("s", "").value(), "text");
  EXPECT_EQ(fields.StringOr("n", "none").value(), "none");
  EXPECT_TRUE(fields.HasKey("n"));
  EXPECT_FALSE(fields.Has("n"));

  const auto message = [](const auto& result) {
    return std::string(result.status().message());
  };
  EXPECT_EQ(message(fields.Integer("absent")), "file: outer.absent is missing");
  EXPECT_EQ(
      message(fields.Integer("big")),
      "file: outer.big is \"2147483648\", expected an integer in [0, 2^31)");
  for (const char* key : {"neg", "huge", "d", "b", "s", "o"}) {
    EXPECT_THAT(message(fields.Integer(key)), HasSubstr("expected an integer"))
        << key;
  }
  for (const char* key : {"b", "s", "o"}) {
    EXPECT_THAT(message(fields.Number(key)), HasSubstr("expected a number"))
        << key;
  }
  for (const char* key : {"i", "s", "o"}) {
    EXPECT_THAT(message(fields.BoolOr(key, false)),
                HasSubstr("expected true or false"))
        << key;
  }
  EXPECT_THAT(message(fields.StringOr("i", "")),
              HasSubstr("expected a string"));
  EXPECT_LT(message(fields.Integer("long")).size(), 200u);
}

}  // namespace
}  // namespace strata
