// The prompts of requests: tokens, text, chats.
#include <gtest/gtest.h>

#include "tests/server/request_fixture.h"

namespace strata {
namespace {

TEST_F(RequestTest, ThePromptIsNotEmpty) {
  ExpectInvalid([](v1::GenerateRequest* m) { m->clear_prompt(); },
                "the prompt is missing");
  ExpectInvalid(
      [](v1::GenerateRequest* m) { m->mutable_tokens()->clear_ids(); },
      "the prompt is empty");
  ExpectInvalid([](v1::GenerateRequest* m) { m->set_text(""); },
                "text is empty");
  ExpectInvalid([](v1::GenerateRequest* m) { m->mutable_chat(); },
                "chat.messages is empty");
}

TEST_F(RequestTest, TextThatCannotFitIsRefusedBeforeItIsEncoded) {
  const std::string text(64 << 20, 'x');
  ExpectInvalid([&](v1::GenerateRequest* m) { m->set_text(text); },
                "a prompt of 67108864 bytes cannot fit the context of 256");
  ExpectInvalid(
      [&](v1::GenerateRequest* m) {
        m->mutable_chat()->add_messages()->set_content(text);
      },
      "cannot fit the context");
  v1::TokenizeRequest tokenize;
  tokenize.set_text(text);
  EXPECT_EQ(ToTokens(served_.model, tokenize).status().code(),
            absl::StatusCode::kInvalidArgument);
  tokenize.mutable_chat()->add_messages()->set_content(text);
  EXPECT_EQ(ToTokens(served_.model, tokenize).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Parse([&](v1::GenerateRequest* m) {
                m->set_text(text.substr(0, 64 << 10));
              }).ok());  // FitRequest says how many tokens it has
}

TEST_F(RequestTest, TextBecomesTokensWithBos) {
  const auto request =
      Parse([](v1::GenerateRequest* m) { m->set_text("a<end>"); });
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->prompt,
            (std::vector<int32_t>{kByteBos, 'a', '<', 'e', 'n', 'd', '>'}));
  const auto special = Parse([](v1::GenerateRequest* m) {
    m->set_text("a<end>");
    m->set_parse_special(true);
  });
  ASSERT_TRUE(special.ok()) << special.status();
  EXPECT_EQ(special->prompt, (std::vector<int32_t>{kByteBos, 'a', kByteEnd}));
}

TEST_F(RequestTest, ContentsOfAChatNeverBecomeControlTokens) {
  v1::GenerateRequest message;
  v1::ChatMessage* words = message.mutable_chat()->add_messages();
  words->set_role("u");
  words->set_content("<end>");
  const auto request = Parse(message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->prompt,
            (std::vector<int32_t>{'[', 'u', ']', '<', 'e', 'n', 'd', '>',
                                  kByteEnd, '[', 'b', 'o', 't', ']'}));
  message.mutable_chat()->set_no_generation_prompt(true);
  EXPECT_EQ(Parse(message)->prompt.size(), 9u);
}

TEST_F(RequestTest, TokenizeGivesWhatGenerateRuns) {
  v1::TokenizeRequest tokenize;
  v1::GenerateRequest generate;
  tokenize.set_text("x<end>");
  generate.set_text("x<end>");
  EXPECT_EQ(*ToTokens(served_.model, tokenize), Parse(generate)->prompt);
  tokenize.set_parse_special(true);
  generate.set_parse_special(true);
  EXPECT_EQ(*ToTokens(served_.model, tokenize), Parse(generate)->prompt);
  for (v1::Chat* chat : {tokenize.mutable_chat(), generate.mutable_chat()}) {
    chat->add_messages()->set_content("hi");
  }
  EXPECT_EQ(*ToTokens(served_.model, tokenize), Parse(generate)->prompt);
  EXPECT_EQ(ToTokens(served_.model, v1::TokenizeRequest()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(RequestTest, TextNeedsATokenizerAndChatATemplate) {
  served_.model.chat = nullptr;
  served_.model.chat_error = absl::UnimplementedError("known: ChatML");
  const Change chat = [](v1::GenerateRequest* m) {
    m->mutable_chat()->add_messages()->set_content("hi");
  };
  ExpectRefused(chat, absl::StatusCode::kFailedPrecondition, "known: ChatML");
  served_.model.tokenizer = nullptr;
  ExpectRefused(chat, absl::StatusCode::kFailedPrecondition, "no tokenizer");
  ExpectRefused([](v1::GenerateRequest* m) { m->set_text("hi"); },
                absl::StatusCode::kFailedPrecondition, "no tokenizer");
  ExpectRefused(
      [](v1::GenerateRequest* m) { m->mutable_stopping()->add_stop("x"); },
      absl::StatusCode::kFailedPrecondition, "no tokenizer");
  v1::TokenizeRequest tokenize;
  tokenize.set_text("hi");
  EXPECT_EQ(ToTokens(served_.model, tokenize).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Parse(Minimal()).ok());
}

}  // namespace
}  // namespace strata
