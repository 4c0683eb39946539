#ifndef TESTS_SERVER_BYTE_TOKENIZER_H_
#define TESTS_SERVER_BYTE_TOKENIZER_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/text/tokenizer.h"
#include "core/text/utf8.h"

namespace strata {

inline constexpr int32_t kByteBos = 256;
inline constexpr int32_t kByteEnd = 257;  // "<end>", a control token

// A tokenizer whose id of a byte is the byte, with two control tokens.
inline std::unique_ptr<const Tokenizer> NewByteTokenizer() {
  TokenizerSpec spec;
  char32_t unprintable = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    std::string spelling;
    AppendUtf8(printable ? static_cast<char32_t>(byte) : unprintable++,
               &spelling);
    spec.tokens.push_back(spelling);
  }
  for (const char* content : {"<bos>", "<end>"}) {
    AddedToken token;
    token.id = static_cast<int32_t>(spec.tokens.size());
    token.content = content;
    token.special = true;
    spec.added.push_back(token);
    spec.tokens.push_back(content);
  }
  spec.bos = kByteBos;
  spec.add_bos = true;
  auto tokenizer = Tokenizer::Create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

}  // namespace strata

#endif  // TESTS_SERVER_BYTE_TOKENIZER_H_
