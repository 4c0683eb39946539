#ifndef TESTS_LOAD_TEST_OPTIONS_H_
#define TESTS_LOAD_TEST_OPTIONS_H_

#include <limits>

#include "proto/strata.pb.h"
#include "tests/client/fake_inference.h"
#include "tests/load/options.h"

namespace strata {

// A closed loop of short calls under two strategies.
inline LoadOptions Options(int num_prompts, int concurrency) {
  return {.num_prompts = num_prompts,
          .concurrency = concurrency,
          .request_rate = std::numeric_limits<double>::infinity(),
          .burstiness = 1,
          .mix = *Mix::Parse("full,every=2"),
          .prompt_lengths = *Lengths::Parse("uniform:1-9"),
          .shared_prefix_tokens = 0,
          .output_lengths = *Lengths::Parse("uniform:1-7"),
          .text_prompts = false,
          .bypass_prefix_cache = false,
          .ignore_eos = true,
          .temperature = 0.5,
          .timeout_s = 60,
          .goodput = {},
          .allow_errors = {},
          .seed = 11,
          .disturbances = {.cancel_within_s = 0.02}};
}

// What FakeInference serves.
inline v1::GetModelResponse Model() {
  v1::GetModelResponse model;
  model.set_vocab_size(FakeInference::kVocabulary);
  model.set_max_model_len(FakeInference::kContext);
  return model;
}

}  // namespace strata

#endif  // TESTS_LOAD_TEST_OPTIONS_H_
