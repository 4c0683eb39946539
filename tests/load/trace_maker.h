#ifndef TESTS_LOAD_TRACE_MAKER_H_
#define TESTS_LOAD_TRACE_MAKER_H_

#include <cstdint>
#include <string>

namespace strata {

// A trace in Mooncake's form and of the shape that its authors publish of their
// conversation trace: calls at `rate_per_s` (Poisson) with 12,035 prompt and
// 343 generated tokens in the mean, in blocks of 512; sessions whose calls
// each repeat the blocks of the one before and add some; a block in front that
// all share.  A function of its arguments.
std::string MakeMooncake(int num_calls, double rate_per_s, uint64_t seed);

// Conversations in ShareGPT's form, of random English words: 161 words said by
// the user and 338 answered in the mean, lognormal, one to six turns.
std::string MakeShareGpt(int num_conversations, uint64_t seed);

}  // namespace strata

#endif  // TESTS_LOAD_TRACE_MAKER_H_
