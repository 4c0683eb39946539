#include "tests/load/plan.h"

#include <algorithm>
#include <random>
#include <string>

#include "tests/load/arrivals.h"

namespace strata {
namespace {

constexpr const char* kWords[] = {
    "a",    "and",   "are",    "at",    "be",    "by",   "can",  "cold",
    "day",  "do",    "every",  "find",  "for",   "from", "good", "have",
    "he",   "house", "if",     "in",    "is",    "it",   "like", "long",
    "made", "many",  "more",   "new",   "night", "not",  "of",   "on",
    "one",  "or",    "people", "river", "she",   "some", "that", "the",
    "they", "this",  "to",     "tree",  "was",   "we",   "with", "you"};

std::string RandomWords(int count, std::mt19937_64* random) {
  std::uniform_int_distribution<size_t> word(0, std::size(kWords) - 1);
  std::string text = kWords[word(*random)];
  for (int i = 1; i < count; ++i) {
    text += ' ';
    text += kWords[word(*random)];
  }
  return text;
}

void DrawCancellation(const LoadOptions& options, std::mt19937_64* random,
                      PlannedCall* call) {
  if (!std::bernoulli_distribution(options.cancel_rate)(*random)) return;
  if (std::bernoulli_distribution(0.5)(*random)) {
    call->cancel_after_s = std::uniform_real_distribution<double>(
        0, options.cancel_within_s)(*random);
  } else {
    call->cancel_after_responses =
        std::uniform_int_distribution<int>(1, call->max_tokens)(*random);
  }
}

}  // namespace

std::vector<PlannedCall> MakePlan(const LoadOptions& options,
                                  const v1::GetModelResponse& model) {
  std::mt19937_64 random(options.seed);
  std::uniform_int_distribution<uint32_t> token(0, model.vocab_size() - 1);
  const int context = static_cast<int>(model.max_model_len());
  const std::vector<double> arrivals = ArrivalTimes(
      options.num_prompts, options.request_rate, options.burstiness, random());
  std::vector<PlannedCall> plan(options.num_prompts);
  for (int i = 0; i < options.num_prompts; ++i) {
    PlannedCall& call = plan[i];
    call.strategy = options.mix.Draw(&random);
    const int prompt_tokens =
        std::min(options.prompt_lengths.Draw(&random), context - 1);
    call.max_tokens =
        std::min(options.output_lengths.Draw(&random), context - prompt_tokens);
    if (options.text_prompts) {
      call.text = RandomWords(prompt_tokens, &random);
    } else {
      call.tokens.resize(prompt_tokens);
      for (uint32_t& id : call.tokens) id = token(random);
    }
    call.seed = random();
    call.arrival_s = arrivals[i];
    DrawCancellation(options, &random, &call);
  }
  return plan;
}

}  // namespace strata
