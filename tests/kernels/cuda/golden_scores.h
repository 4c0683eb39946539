#ifndef TESTS_KERNELS_CUDA_GOLDEN_SCORES_H_
#define TESTS_KERNELS_CUDA_GOLDEN_SCORES_H_

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/golden.h"
#include "tests/testing/tiny_engine.h"

namespace strata {

// The log-probabilities of the golden prompt's tokens but the first, each with
// those of the `num_top` best.
inline CollectingSink::Sequence ScorePrompt(const TinyEngine& tiny,
                                            const Golden& golden,
                                            const std::string& spec,
                                            int num_top = 0) {
  Request request(tiny.Strategy(spec));
  request.kind = Request::Kind::kScore;
  request.prompt = golden.prompt();
  request.num_top_logprobs = num_top;
  EXPECT_TRUE(FitRequest(tiny.engine->limits(), {}, &request).ok());
  const CollectingSink::Sequence got = tiny.Run(request)->Get(0);
  EXPECT_EQ(got.logprobs.size(), request.prompt.size() - 1);
  return got;
}

}  // namespace strata

#endif  // TESTS_KERNELS_CUDA_GOLDEN_SCORES_H_
