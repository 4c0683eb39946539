#ifndef TESTS_LOAD_TRACE_H_
#define TESTS_LOAD_TRACE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace strata {

// A line of a Mooncake trace: lengths in tokens, and for each block of the
// prompt an id that equal beginnings share.
struct MooncakeCall {
  double at_s = 0;  // since the trace's first call
  int input_length = 0;
  int output_length = 0;
  std::vector<uint64_t> hash_ids;
};

// Parses {"timestamp": ms, "input_length": n, "output_length": n,
// "hash_ids": [...]} a line, empty lines dropped, in order of time.
// INVALID_ARGUMENT names the line and what is wrong with it; also where there
// is none.  Lengths are 1 to 16777216; an output of 0 tokens counts as 1.
absl::StatusOr<std::vector<MooncakeCall>> ParseMooncake(std::string_view text);

// The prompt of such a call, `length` tokens below `vocab_size`: `block_tokens`
// a hash id, a function of id and seed.  Tokens beyond the ids are drawn from
// `own_seed`.
std::vector<uint32_t> MooncakePrompt(const MooncakeCall& call, int length,
                                     int block_tokens, uint32_t vocab_size,
                                     uint64_t seed, uint64_t own_seed);

// What a user said and was answered.
struct Exchange {
  std::string prompt;  // the conversation so far, and what the user said
  std::string answer;
};

// Parses [{"conversations": [{"from": "human", "value": "..."}, ...]}, ...].
// Every answer of "gpt" to a "human" is an exchange, at most `most_turns` a
// conversation; other turns (system) stand in the prompts; conversations
// without any are dropped.  INVALID_ARGUMENT names the conversation and what is
// wrong with it; also where no exchange is left.
absl::StatusOr<std::vector<Exchange>> ParseShareGpt(std::string_view text,
                                                    int most_turns);

}  // namespace strata

#endif  // TESTS_LOAD_TRACE_H_
