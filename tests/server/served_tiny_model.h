#ifndef TESTS_SERVER_SERVED_TINY_MODEL_H_
#define TESTS_SERVER_SERVED_TINY_MODEL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/text/chat_template.h"
#include "server/serving_state.h"
#include "tests/server/byte_tokenizer.h"
#include "tests/testing/tiny_engine.h"

namespace strata {

// [role]content<end>, then [bot].
class BracketTemplate final : public ChatTemplate {
 public:
  absl::StatusOr<std::vector<Piece>> Render(
      const std::vector<ChatMessage>& messages,
      bool add_generation_prompt) const override {
    std::vector<Piece> pieces;
    for (const ChatMessage& message : messages) {
      pieces.push_back({"[" + message.role + "]", false});
      pieces.push_back({message.content, true});
      pieces.push_back({"<end>", false});
    }
    if (add_generation_prompt) pieces.push_back({"[bot]", false});
    return pieces;
  }
  std::string_view family() const override { return "brackets"; }
};

// A model of tests/golden as the faces see it, with a tokenizer and a chat
// template of its own for what clients send.  (The engine has none, so it
// answers with tokens only.)
struct ServedTinyModel {
  explicit ServedTinyModel(const TinyEngine::Options& options = {})
      : tiny(options), tokenizer(NewByteTokenizer()) {
    model.name = "tiny";
    model.config = &tiny.checkpoint->config;
    model.engine = tiny.engine.get();
    model.strategies = tiny.strategies.get();
    model.metrics = tiny.metrics.get();
    model.tokenizer = tokenizer.get();
    model.chat = &chat;
    model.backend = "cpu";
    model.weight_format = tiny.checkpoint->weight_format;
    model.kv_format = tiny.backend->kv_format();
    model.weight_bytes = tiny.checkpoint->weight_bytes;
    model.page_tokens = options.page_tokens;
    model.page_bytes = tiny.page_bytes;
  }

  TinyEngine tiny;
  std::unique_ptr<const Tokenizer> tokenizer;
  BracketTemplate chat;
  ServedModel model;
};

}  // namespace strata

#endif  // TESTS_SERVER_SERVED_TINY_MODEL_H_
