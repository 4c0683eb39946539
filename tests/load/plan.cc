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

// Puts `count` random words or token ids at the end of the call's prompt.
void AppendPrompt(bool text, uint32_t vocab_size, int count,
                  std::mt19937_64* random, PlannedCall* call) {
  std::uniform_int_distribution<size_t> word(0, std::size(kWords) - 1);
  std::uniform_int_distribution<uint32_t> token(0, vocab_size - 1);
  for (int i = 0; i < count; ++i) {
    if (text) {
      if (!call->text.empty()) call->text += ' ';
      call->text += kWords[word(*random)];
    } else {
      call->tokens.push_back(token(*random));
    }
  }
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
  // Of its own, so that the rest of a plan is the same with and without it.
  std::mt19937_64 prefix_random(~options.seed);
  const uint32_t vocab_size = model.vocab_size();
  const int context = static_cast<int>(model.max_model_len());
  const int prefix_tokens = std::min(options.shared_prefix_tokens, context - 2);
  PlannedCall shared;
  AppendPrompt(options.text_prompts, vocab_size, prefix_tokens, &prefix_random,
               &shared);
  const std::vector<double> arrivals = ArrivalTimes(
      options.num_prompts, options.request_rate, options.burstiness, random());
  std::vector<PlannedCall> plan(options.num_prompts, shared);
  for (int i = 0; i < options.num_prompts; ++i) {
    PlannedCall& call = plan[i];
    call.strategy = options.mix.Draw(&random);
    const int room = context - prefix_tokens;
    const int own_tokens =
        std::min(options.prompt_lengths.Draw(&random), room - 1);
    call.max_tokens =
        std::min(options.output_lengths.Draw(&random), room - own_tokens);
    AppendPrompt(options.text_prompts, vocab_size, own_tokens, &random, &call);
    call.seed = random();
    call.arrival_s = arrivals[i];
    DrawCancellation(options, &random, &call);
  }
  return plan;
}

}  // namespace strata
