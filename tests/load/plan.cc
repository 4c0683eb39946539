#include "tests/load/plan.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "tests/load/arrivals.h"
#include "tests/load/words.h"

namespace strata {
namespace {

// Puts `count` random words or token ids at the end of the call's prompt.
void AppendPrompt(bool text, uint32_t vocab_size, int count,
                  std::mt19937_64* random, PlannedCall* call) {
  if (text) {
    AppendWords(count, random, &call->text);
    return;
  }
  std::uniform_int_distribution<uint32_t> token(0, vocab_size - 1);
  for (int i = 0; i < count; ++i) call->tokens.push_back(token(*random));
}

// Draws prompts and output lengths of `plan`'s calls.
class Drawer {
 public:
  Drawer(const LoadOptions& options, const v1::GetModelResponse& model)
      : options_(options),
        vocab_size_(model.vocab_size()),
        context_(static_cast<int>(model.max_model_len())),
        prefix_tokens_(std::min(options.shared_prefix_tokens, context_ - 2)) {
    // Of its own, so that the rest of a plan is the same with and without it.
    std::mt19937_64 random(~options.seed);
    AppendPrompt(options.text_prompts, vocab_size_, prefix_tokens_, &random,
                 &shared_);
  }

  PlannedCall Draw(std::mt19937_64* random, Plan* plan) const {
    PlannedCall call = shared_;
    const int room = context_ - prefix_tokens_;
    const int wanted = options_.prompt_lengths.Draw(random);
    const int own_tokens = std::min(wanted, room - 1);
    const int output = options_.output_lengths.Draw(random);
    call.max_tokens = std::min(output, room - own_tokens);
    AppendPrompt(options_.text_prompts, vocab_size_, own_tokens, random, &call);
    plan->num_cut_prompts +=
        own_tokens < wanted || prefix_tokens_ < options_.shared_prefix_tokens;
    plan->num_cut_outputs += call.max_tokens < output;
    return call;
  }

 private:
  const LoadOptions& options_;
  const uint32_t vocab_size_;
  const int context_;
  const int prefix_tokens_;
  PlannedCall shared_;
};

PlannedCall Fit(const TracedCall& traced, int context, Plan* plan) {
  const int64_t least_output =
      std::min<int64_t>(traced.output_tokens, std::max(1, context / 2));
  const int64_t prompt =
      std::min<int64_t>(traced.prompt_tokens, context - least_output);
  const int64_t output =
      std::min<int64_t>(traced.output_tokens, context - prompt);
  plan->num_cut_prompts += prompt < traced.prompt_tokens;
  plan->num_cut_outputs += output < traced.output_tokens;
  PlannedCall call;
  call.tokens.assign(traced.tokens.begin(), traced.tokens.begin() + prompt);
  call.max_tokens = static_cast<int>(output);
  return call;
}

}  // namespace

Plan MakePlan(const LoadOptions& options, const v1::GetModelResponse& model,
              const std::vector<TracedCall>& trace) {
  std::mt19937_64 random(options.seed);
  const int num_calls =
      trace.empty() ? options.num_prompts : static_cast<int>(trace.size());
  const std::vector<double> arrivals = ArrivalTimes(
      num_calls, options.request_rate, options.burstiness, random());
  const bool keeps_times = std::isinf(options.request_rate);
  const Drawer drawer(options, model);
  Plan plan;
  for (int i = 0; i < num_calls; ++i) {
    const int strategy = options.mix.Draw(&random);
    PlannedCall call =
        trace.empty()
            ? drawer.Draw(&random, &plan)
            : Fit(trace[i], static_cast<int>(model.max_model_len()), &plan);
    call.strategy = strategy;
    call.seed = random();
    call.arrival_s =
        keeps_times && !trace.empty() ? trace[i].at_s : arrivals[i];
    options.disturbances.Draw(&random, &call);
    plan.calls.push_back(std::move(call));
  }
  return plan;
}

}  // namespace strata
