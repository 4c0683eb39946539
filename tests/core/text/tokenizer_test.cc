#include "core/text/tokenizer.h"

#include <gmock/gmock.h>

#include "tests/core/text/golden.h"

namespace strata {
namespace {

using Ids = std::vector<int32_t>;

constexpr Tokenizer::EncodeOptions kPlain = {};
constexpr Tokenizer::EncodeOptions kSpecial = {.parse_special = true};

class TokenizerTest : public testing::TestWithParam<const char*> {
 protected:
  const std::unique_ptr<const Tokenizer> tokenizer_ =
      GoldenTokenizer(GetParam());
  const nlohmann::json corpus_ = ReadGolden("corpus.json");
};

TEST_P(TokenizerTest, EqualsTheReference) {
  const nlohmann::json golden =
      ReadGolden(std::string(GetParam()) + ".ids.json");
  ASSERT_EQ(golden.size(), corpus_["texts"].size());
  for (size_t i = 0; i < golden.size(); ++i) {
    const std::string text = corpus_["texts"][i];
    const Ids ids = tokenizer_->Encode(text, kSpecial);
    EXPECT_EQ(ids, golden[i]["special"].get<Ids>()) << text;
    EXPECT_EQ(tokenizer_->Encode(text, kPlain), golden[i]["plain"].get<Ids>())
        << text;
    // The reference decodes non-ASCII letters of added tokens as if they
    // spelled bytes.
    if (text.find("<norm\u00E9>") == std::string::npos) {
      EXPECT_EQ(tokenizer_->Decode(ids, true),
                golden[i]["decoded"].get<std::string>())
          << text;
    }
  }
}

// Of any bytes that have tokens, nothing is lost; the GPT-2 vocabulary lacks
// some.
TEST_P(TokenizerTest, BytesComeBack) {
  if (std::string_view(GetParam()) == "gpt2") return;
  for (const auto& encoded : corpus_["bytes"]) {
    const std::string bytes = FromBase64(encoded);
    std::string back;
    for (const int32_t id : tokenizer_->Encode(bytes, kPlain)) {
      back += tokenizer_->Bytes(id, false);
    }
    EXPECT_EQ(back, bytes) << encoded;
  }
}

TEST_P(TokenizerTest, InvalidBytesAreWordsOfTheirOwn) {
  const Ids a = tokenizer_->Encode("ab ", kPlain);
  const Ids b = tokenizer_->Encode(" cd", kPlain);
  const Ids byte = tokenizer_->Encode("\xC3", kPlain);
  Ids want = a;
  want.insert(want.end(), byte.begin(), byte.end());
  want.insert(want.end(), b.begin(), b.end());
  EXPECT_EQ(tokenizer_->Encode("ab \xC3 cd", kPlain), want);
}

TEST_P(TokenizerTest, PlainTextHasNoControlTokens) {
  for (const auto& text : corpus_["texts"]) {
    for (const int32_t id :
         tokenizer_->Encode(text.get<std::string>(), kPlain)) {
      EXPECT_FALSE(tokenizer_->Bytes(id, false) != tokenizer_->Bytes(id, true))
          << text;
    }
  }
}

TEST_P(TokenizerTest, BosIsAddedWhereAskedFor) {
  const Ids ids = tokenizer_->Encode("x", {.add_bos = true});
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids[0], tokenizer_->spec().bos);
  EXPECT_EQ(tokenizer_->adds_bos(), std::string_view(GetParam()) == "llama3");
}

TEST_P(TokenizerTest, LongTextsTakeNoQuadraticTime) {
  std::string noise;
  for (int i = 0; i < 10000; ++i) noise += "<|im_\u0301";
  for (const std::string& text :
       {std::string(1 << 16, 'a'), std::string(1 << 16, ' '),
        std::string(1 << 16, '1'), std::string(1 << 16, '\n'), noise,
        std::string(1 << 16, '\xC3')}) {
    EXPECT_FALSE(tokenizer_->Encode(text, kPlain).empty());
    EXPECT_FALSE(tokenizer_->Encode(text, kSpecial).empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerTest,
                         testing::Values("gpt2", "smollm", "llama3", "qwen2"));

TokenizerSpec SmallSpec() {
  TokenizerSpec spec;
  spec.tokens = {"a", "b", "ab", "c", "abc", "\u0120"};
  spec.merges = {{"a", "b"}, {"ab", "c"}};
  return spec;
}

TEST(TokenizerCreateTest, RefusesContradictions) {
  const auto message = [](void (*change)(TokenizerSpec*)) {
    TokenizerSpec spec = SmallSpec();
    change(&spec);
    const auto status = Tokenizer::Create(spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_TRUE(Tokenizer::Create(SmallSpec()).ok());
  EXPECT_THAT(message([](TokenizerSpec* s) { s->tokens.clear(); }),
              testing::HasSubstr("no tokens"));
  EXPECT_THAT(message([](TokenizerSpec* s) {
                s->merges.push_back({"b", "c"});
              }),
              testing::HasSubstr("\"bc\", which is no token"));
  EXPECT_THAT(message([](TokenizerSpec* s) { s->tokens.push_back("ab"); }),
              testing::HasSubstr("tokens 2 and 6 are both"));
  EXPECT_THAT(message([](TokenizerSpec* s) {
                s->added = {{.id = 6, .content = "<x>"}};
              }),
              testing::HasSubstr("has id 6, but ids are below 6"));
  EXPECT_THAT(
      message([](TokenizerSpec* s) { s->added = {{.id = 1, .content = ""}}; }),
      testing::HasSubstr("is empty"));
  EXPECT_THAT(message([](TokenizerSpec* s) { s->bos = -1; }),
              testing::HasSubstr("bos token"));
  EXPECT_THAT(message([](TokenizerSpec* s) { s->add_bos = true; }),
              testing::HasSubstr("add_bos without"));
  EXPECT_THAT(message([](TokenizerSpec* s) {
                s->added = {{.id = 0, .content = "a", .special = true}};
              }),
              testing::HasSubstr("is a single byte"));
}

TEST(TokenizerCreateTest, ControlTokensDoNotComeOutOfMerging) {
  TokenizerSpec spec = SmallSpec();
  spec.added = {{.id = 2, .content = "ab", .special = true}};
  const auto tokenizer = *Tokenizer::Create(spec);
  EXPECT_EQ(tokenizer->Encode("ab", kPlain), (Ids{0, 1}));
  EXPECT_EQ(tokenizer->Encode("abc", kPlain), (Ids{4}));
  EXPECT_EQ(tokenizer->Encode("abc", kSpecial), (Ids{2, 3}));
}

TEST(TokenizerCreateTest, UnknownBytes) {
  TokenizerSpec spec = SmallSpec();
  EXPECT_EQ((*Tokenizer::Create(spec))->Encode("azb", kPlain), (Ids{2}));
  spec.unk = 3;
  EXPECT_EQ((*Tokenizer::Create(spec))->Encode("azb", kPlain), (Ids{0, 3, 1}));
  spec.added = {{.id = 3, .content = "<unk>", .special = true}};
  spec.tokens[3] = "<unk>";
  spec.tokens.push_back("c");
  EXPECT_EQ((*Tokenizer::Create(spec))->Encode("azb", kPlain), (Ids{2}));
  EXPECT_EQ((*Tokenizer::Create(spec))->Encode("azb", kSpecial),
            (Ids{0, 3, 1}));
}

TEST(TokenizerCreateTest, PrefixSpace) {
  TokenizerSpec spec = SmallSpec();
  spec.add_prefix_space = true;
  const auto tokenizer = *Tokenizer::Create(spec);
  EXPECT_EQ(tokenizer->Encode("ab", kPlain), (Ids{5, 2}));
  EXPECT_EQ(tokenizer->Encode(" ab", kPlain), (Ids{5, 2}));
  EXPECT_EQ(tokenizer->Encode("", kPlain), (Ids{}));
}

TEST(TokenizerCreateTest, IdsOutOfRangeHaveNoBytes) {
  const auto tokenizer = *Tokenizer::Create(SmallSpec());
  EXPECT_EQ(tokenizer->Bytes(-1, false), "");
  EXPECT_EQ(tokenizer->Bytes(6, false), "");
  EXPECT_EQ(tokenizer->Bytes(5, false), " ");
  EXPECT_EQ(tokenizer->Decode({4, 99, 5, 0}, true), "abc a");
}

}  // namespace
}  // namespace strata
