#ifndef TESTS_SERVER_E2E_TEXT_MODEL_H_
#define TESTS_SERVER_E2E_TEXT_MODEL_H_

#include <string>

namespace strata {

// A small Llama with random weights and a real tokenizer (SmolLM's kind, 1,013
// ids, many scripts), a ChatML template and two end tokens: it writes nonsense,
// but as text.
inline constexpr int kTextModelImStart = 1001;
inline constexpr int kTextModelImEnd = 1002;
inline constexpr int kTextModelEndOfText = 1000;

// Writes it; returns the directory.
std::string WriteTextModel(const std::string& name, int max_positions = 1024);

}  // namespace strata

#endif  // TESTS_SERVER_E2E_TEXT_MODEL_H_
