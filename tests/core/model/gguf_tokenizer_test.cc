#include "core/model/gguf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/gguf.h"
#include "tests/core/model/file_bytes.h"
#include "tests/core/model/temp_files.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using B = GgufBuilder;

class GgufTokenizerTest : public ::testing::Test {
 protected:
  void Read(const B& builder) {
    path_ = directory_.Write("x.gguf", builder.Build());
    file_ = MappedFile::Open(path_).value();
    metadata_ =
        std::make_unique<GgufMetadata>(ReadGguf(*file_).value().metadata);
  }
  absl::StatusOr<std::optional<TokenizerSpec>> Parse(const B& builder) {
    Read(builder);
    return ParseGgufTokenizer(*metadata_, 10);
  }
  // Of four tokens.
  static B Valid(const std::string& pre) {
    B builder;
    builder.String("tokenizer.ggml.model", "gpt2")
        .Strings("tokenizer.ggml.tokens",
                 {"a", "b", "ab", "<|im_end|>", "tool", "[PAD]"})
        .Int32s("tokenizer.ggml.token_type", {1, 1, 1, 3, 4, 5})
        .Strings("tokenizer.ggml.merges", {"a b"})
        .U32("tokenizer.ggml.eos_token_id", 2);
    if (!pre.empty()) builder.String("tokenizer.ggml.pre", pre);
    return builder;
  }
  TempDirectory directory_;
  std::string path_;
  std::unique_ptr<MappedFile> file_;
  std::unique_ptr<GgufMetadata> metadata_;
};

TEST_F(GgufTokenizerTest, ReadsByteLevelBpe) {
  B builder = Valid("smollm");
  builder.String("tokenizer.chat_template", "x<|im_start|>y<|im_end|>")
      .U32("tokenizer.ggml.bos_token_id", 1)
      .Bool("tokenizer.ggml.add_bos_token", true)
      .U32("tokenizer.ggml.eot_token_id", 4)
      .Bool("tokenizer.ggml.add_space_prefix", true);
  auto spec = Parse(builder);
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_TRUE(spec->has_value());
  const TokenizerSpec& s = **spec;
  EXPECT_THAT(s.tokens, ElementsAre("a", "b", "ab", "<|im_end|>", "tool", ""));
  EXPECT_THAT(s.merges,
              ElementsAre(std::pair<std::string, std::string>("a", "b")));
  ASSERT_EQ(s.added.size(), 2u);
  EXPECT_EQ(s.added[0].id, 3);
  EXPECT_EQ(s.added[0].content, "<|im_end|>");
  EXPECT_TRUE(s.added[0].special);
  EXPECT_EQ(s.added[1].id, 4);
  EXPECT_FALSE(s.added[1].special);
  EXPECT_EQ(s.pre_tokenizer, PreTokenizer::kSmolLM);
  EXPECT_EQ(s.bos, 1);
  EXPECT_EQ(s.eos, 2);
  EXPECT_TRUE(s.add_bos);
  EXPECT_TRUE(s.add_prefix_space);
  EXPECT_EQ(s.chat_template, "x<|im_start|>y<|im_end|>");
  EXPECT_THAT(ParseGgufEosIds(*metadata_, 10, *spec).value(),
              ElementsAre(2, 4, 3));
}

TEST_F(GgufTokenizerTest, KnowsPreTokenizers) {
  struct Case {
    const char* pre;
    PreTokenizer type;
    bool ignore_merges, nfc;
  };
  for (const Case& c : {Case{"", PreTokenizer::kGpt2, false, false},
                        Case{"default", PreTokenizer::kGpt2, false, false},
                        Case{"gpt-2", PreTokenizer::kGpt2, false, false},
                        Case{"smollm", PreTokenizer::kSmolLM, false, false},
                        Case{"llama-bpe", PreTokenizer::kLlama3, true, false},
                        Case{"llama3", PreTokenizer::kLlama3, true, false},
                        Case{"qwen2", PreTokenizer::kQwen2, false, true}}) {
    auto spec = Parse(Valid(c.pre));
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ((*spec)->pre_tokenizer, c.type) << c.pre;
    EXPECT_EQ((*spec)->ignore_merges, c.ignore_merges) << c.pre;
    EXPECT_EQ((*spec)->nfc, c.nfc) << c.pre;
    EXPECT_FALSE((*spec)->add_bos) << "there is no BOS to add";
  }
  B llama3 = Valid("llama-bpe");
  llama3.U32("tokenizer.ggml.bos_token_id", 1);
  EXPECT_TRUE((*Parse(llama3))->add_bos);
  llama3.Bool("tokenizer.ggml.add_bos_token", false);
  EXPECT_FALSE((*Parse(llama3))->add_bos);
}

TEST_F(GgufTokenizerTest, IsAbsentWhereTheFileHasNone) {
  auto none = Parse(B().U32("tokenizer.ggml.eos_token_id", 5));
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->has_value());
  EXPECT_THAT(ParseGgufEosIds(*metadata_, 10, *none).value(), ElementsAre(5));
  EXPECT_FALSE(
      Parse(B().String("tokenizer.ggml.model", "no_vocab"))->has_value());
}

TEST_F(GgufTokenizerTest, Refuses) {
  constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  struct Case {
    B builder;
    const char* message;
    absl::StatusCode code = kInvalid;
  };
  const auto model = [](const char* name) {
    return B().String("tokenizer.ggml.model", name);
  };
  const std::vector<std::string> ten(10, "t"), eleven(11, "t");
  for (const Case& c : {
           Case{model("llama"),
                "tokenizer.ggml.model \"llama\" (SentencePiece) is not supported",
                kUnimplemented},
           Case{model("bert"), "tokenizer.ggml.model \"bert\" is not supported",
                kUnimplemented},
           Case{Valid("deepseek-r1-qwen"),
                "\"deepseek-r1-qwen\" is not supported; default,",
                kUnimplemented},
           Case{model("gpt2"), "tokenizer.ggml.tokens is missing"},
           Case{model("gpt2").Int32s("tokenizer.ggml.tokens", {1}),
                "not an array of strings"},
           Case{model("gpt2").Strings("tokenizer.ggml.tokens", {}),
                "has 0 tokens"},
           Case{model("gpt2").Strings("tokenizer.ggml.tokens", eleven),
                "has 11 tokens, the embedding 10 rows"},
           Case{model("gpt2")
                    .Strings("tokenizer.ggml.tokens", ten)
                    .Int32s("tokenizer.ggml.token_type", {1, 1}),
                "has 2 values for 10 tokens"},
           Case{model("gpt2").Strings("tokenizer.ggml.tokens", ten),
                "merges is missing"},
           Case{model("gpt2")
                    .Strings("tokenizer.ggml.tokens", ten)
                    .Strings("tokenizer.ggml.merges", {"ab"}),
                "\"ab\" is not two parts"},
           Case{model("gpt2")
                    .Strings("tokenizer.ggml.tokens", ten)
                    .Strings("tokenizer.ggml.merges", {"a "}),
                "\"a \" is not two parts"},
           Case{Valid("").U32("tokenizer.ggml.bos_token_id", 10),
                "bos_token_id is 10"},
           Case{Valid("").String("tokenizer.ggml.bos_token_id", "1"),
                "not an integer"},
       }) {
    const absl::Status status = Parse(c.builder).status();
    EXPECT_EQ(status.code(), c.code) << c.message << status;
    EXPECT_THAT(std::string(status.message()), StartsWith(path_ + ": "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
  Read(B().U32("tokenizer.ggml.eom_token_id", 10));
  EXPECT_THAT(
      std::string(
          ParseGgufEosIds(*metadata_, 10, std::nullopt).status().message()),
      HasSubstr("eom_token_id is 10, expected an id below 10"));
}

}  // namespace
}  // namespace strata
