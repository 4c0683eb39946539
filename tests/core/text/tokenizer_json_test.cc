#include "core/text/tokenizer_json.h"

#include <gmock/gmock.h>

#include "tests/core/text/golden.h"

namespace strata {
namespace {

using nlohmann::json;

// A small tokenizer.json of the GPT-2 kind.
json Small() {
  return json::parse(R"({
    "added_tokens": [
      {"id": 3, "content": "<s>", "special": true, "normalized": false, "lstrip": true},
      {"id": 4, "content": "</s>", "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true, "use_regex": true},
    "post_processor": {"type": "ByteLevel"},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "fuse_unk": false,
              "vocab": {"a": 0, "b": 1, "ab": 2, "<s>": 3}, "merges": ["a b"]}})");
}

json Template(const char* token, int id) {
  return {{"type", "TemplateProcessing"},
          {"single",
           {{{"SpecialToken", {{"id", token}, {"type_id", 0}}}},
            {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
          {"special_tokens",
           {{token, {{"id", token}, {"ids", {id}}, {"tokens", {token}}}}}}};
}

TokenizerSpec Parse(const json& root, const json& config = json()) {
  const auto spec = ParseTokenizerJson(
      root.dump(), config.is_null() ? std::string() : config.dump());
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.value_or(TokenizerSpec());
}

TEST(TokenizerJsonTest, ReadsTheWholeFile) {
  const TokenizerSpec spec = Parse(Small());
  EXPECT_EQ(spec.tokens,
            (std::vector<std::string>{"a", "b", "ab", "<s>", "</s>"}));
  EXPECT_EQ(spec.merges,
            (std::vector<std::pair<std::string, std::string>>{{"a", "b"}}));
  ASSERT_EQ(spec.added.size(), 2u);
  EXPECT_EQ(spec.added[0].id, 3);
  EXPECT_EQ(spec.added[0].content, "<s>");
  EXPECT_TRUE(spec.added[0].special);
  EXPECT_TRUE(spec.added[0].lstrip);
  EXPECT_FALSE(spec.added[0].rstrip);
  EXPECT_FALSE(spec.added[0].normalized);
  EXPECT_EQ(spec.pre_tokenizer, PreTokenizer::kGpt2);
  EXPECT_TRUE(spec.add_prefix_space);
  EXPECT_FALSE(spec.add_bos);
  json pairs = Small();
  pairs["model"]["merges"] = json::parse(R"([["a", "b"]])");
  EXPECT_EQ(Parse(pairs).merges, spec.merges);
}

TEST(TokenizerJsonTest, KnowsThePreTokenizers) {
  const auto spec = [](const char* name) {
    return *ParseTokenizerJson(
        ReadGoldenText(std::string(name) + ".tokenizer.json"), "");
  };
  EXPECT_EQ(spec("gpt2").pre_tokenizer, PreTokenizer::kGpt2);
  EXPECT_EQ(spec("smollm").pre_tokenizer, PreTokenizer::kSmolLM);
  EXPECT_EQ(spec("llama3").pre_tokenizer, PreTokenizer::kLlama3);
  EXPECT_TRUE(spec("llama3").ignore_merges);
  EXPECT_EQ(spec("qwen2").pre_tokenizer, PreTokenizer::kQwen2);
  EXPECT_TRUE(spec("qwen2").nfc);
  EXPECT_FALSE(spec("smollm").nfc);
}

TEST(TokenizerJsonTest, RefusesByName) {
  const auto message = [](const char* path, const char* value) {
    json root = Small();
    root[json::json_pointer(path)] = json::parse(value);
    const auto status = ParseTokenizerJson(root.dump(), "").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented)
        << path << status;
    return std::string(status.message());
  };
  using testing::HasSubstr;
  EXPECT_THAT(message("/model/type", R"("Unigram")"), HasSubstr("Unigram"));
  EXPECT_THAT(message("/model/type", R"("WordPiece")"), HasSubstr("WordPiece"));
  EXPECT_THAT(message("/model/byte_fallback", "true"),
              HasSubstr("byte_fallback"));
  EXPECT_THAT(message("/model/dropout", "0.1"), HasSubstr("dropout"));
  EXPECT_THAT(message("/model/continuing_subword_prefix", R"("##")"),
              HasSubstr("continuing_subword_prefix"));
  EXPECT_THAT(message("/model/end_of_word_suffix", R"("</w>")"),
              HasSubstr("end_of_word_suffix"));
  EXPECT_THAT(message("/normalizer", R"({"type": "Lowercase"})"),
              HasSubstr("Lowercase"));
  EXPECT_THAT(message("/decoder", R"({"type": "Metaspace"})"),
              HasSubstr("Metaspace"));
  EXPECT_THAT(message("/pre_tokenizer", R"({"type": "Metaspace"})"),
              HasSubstr("Metaspace"));
  EXPECT_THAT(
      message("/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\w+"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})"),
      HasSubstr("w+"));
  EXPECT_THAT(message("/post_processor", R"({"type": "BertProcessing"})"),
              HasSubstr("BertProcessing"));
}

TEST(TokenizerJsonTest, RefusesMalformedFiles) {
  const auto is_refused = [](const std::string& text,
                             const std::string& config = "") {
    return ParseTokenizerJson(text, config).status().code() ==
           absl::StatusCode::kInvalidArgument;
  };
  const std::string small = Small().dump();
  EXPECT_FALSE(is_refused(small));
  for (size_t length = 0; length < small.size(); ++length) {
    EXPECT_TRUE(is_refused(small.substr(0, length))) << length;
  }
  EXPECT_TRUE(is_refused(small, "{"));
  EXPECT_TRUE(is_refused(small, "[]"));
  EXPECT_TRUE(is_refused(small, R"({"bos_token": 3})"));
  EXPECT_TRUE(is_refused(
      small, R"({"added_tokens_decoder": {"x": {"content": "y"}}})"));
  EXPECT_TRUE(is_refused(
      small, R"({"added_tokens_decoder": {"0": {"content": "y"}}})"));
  for (const auto& [path, value] :
       std::vector<std::pair<std::string, std::string>>{
           {"/model/vocab/a", "-1"},
           {"/model/vocab/a", "1e300"},
           {"/model/vocab/a", "1"},
           {"/model/vocab/a", "99999999999999999999"},
           {"/model/vocab", "[]"},
           {"/model/merges", "{}"},
           {"/model/merges/0", R"("ab")"},
           {"/model/merges/0", R"(["a"])"},
           {"/model/merges/0", "null"},
           {"/model/unk_token", R"("?")"},
           {"/added_tokens", "7"},
           {"/added_tokens/0", "7"},
           {"/added_tokens/0/id", "2"},
           {"/added_tokens/0/id", "4000000000"},
           {"/added_tokens/0/content", "1"},
           {"/added_tokens/0/special", R"("yes")"}}) {
    json root = Small();
    root[json::json_pointer(path)] = json::parse(value);
    EXPECT_TRUE(is_refused(root.dump())) << path << " = " << value;
  }
}

// Every leaf of the file replaced by a value of another type: an error or a
// specification, never a crash.
TEST(TokenizerJsonTest, SurvivesWrongTypes) {
  json root = Small();
  root["post_processor"] = Template("<s>", 3);
  const json leaves = root.flatten();
  for (const auto& [path, leaf] : leaves.items()) {
    for (const char* value :
         {"null", "1", "\"x\"", "[]", "{}", "true", "[[1]]", "{\"x\":[1]}"}) {
      json changed = root;
      changed[json::json_pointer(path)] = json::parse(value);
      (void)ParseTokenizerJson(changed.dump(), "");
      (void)ParseTokenizerJson(Small().dump(), changed.dump());
    }
  }
}

TEST(TokenizerJsonTest, BosAsTransformersAddsIt) {
  json root = Small();
  const json config = {{"bos_token", "<s>"},
                       {"eos_token", {{"content", "</s>"}}}};
  TokenizerSpec spec = Parse(root, config);
  EXPECT_FALSE(spec.add_bos);
  EXPECT_EQ(spec.bos, 3);
  EXPECT_EQ(spec.eos, 4);

  // The post-processor decides, whatever add_bos_token says ...
  json with_class = config;
  with_class["tokenizer_class"] = "PreTrainedTokenizerFast";
  with_class["add_bos_token"] = true;
  EXPECT_FALSE(Parse(root, with_class).add_bos);
  root["post_processor"] = {
      {"type", "Sequence"},
      {"processors", {{{"type", "ByteLevel"}}, Template("<s>", 3)}}};
  with_class["add_bos_token"] = false;
  EXPECT_TRUE(Parse(root, with_class).add_bos);
  EXPECT_EQ(Parse(root).bos, 3);

  // ... but in classes that replace it.
  with_class["tokenizer_class"] = "LlamaTokenizer";
  EXPECT_FALSE(Parse(root, with_class).add_bos);
  with_class.erase("add_bos_token");
  EXPECT_TRUE(Parse(Small(), with_class).add_bos);
  with_class["tokenizer_class"] = "GPT2TokenizerFast";
  EXPECT_FALSE(Parse(Small(), with_class).add_bos);

  root["post_processor"] = Template("</s>", 4);
  EXPECT_EQ(ParseTokenizerJson(root.dump(), config.dump()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(TokenizerJsonTest, ConfigAddsAndChangesTokens) {
  const TokenizerSpec spec = Parse(Small(), json::parse(R"({
      "added_tokens_decoder": {"3": {"content": "<s>", "special": false},
                               "5": {"content": "<new>", "special": true}},
      "pad_token": "<pad>", "unk_token": "<s>", "add_prefix_space": false,
      "chat_template": [{"name": "tool_use", "template": "t"},
                        {"name": "default", "template": "d"}]})"));
  EXPECT_EQ(spec.tokens, (std::vector<std::string>{"a", "b", "ab", "<s>",
                                                   "</s>", "<new>", "<pad>"}));
  ASSERT_EQ(spec.added.size(), 4u);
  EXPECT_FALSE(spec.added[0].special);
  EXPECT_FALSE(spec.added[0].lstrip);
  EXPECT_EQ(spec.added[3].content, "<pad>");
  EXPECT_TRUE(spec.added[3].special);
  EXPECT_EQ(spec.chat_template, "d");
  EXPECT_FALSE(spec.add_prefix_space);
  EXPECT_EQ(spec.bos, std::nullopt);
}

}  // namespace
}  // namespace strata
