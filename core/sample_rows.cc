#include "core/sample_rows.h"

#include "core/sequence.h"

namespace strata {
namespace {

SampleRow ToSample(const Sequence& sequence) {
  const Sampling& sampling = sequence.request.sampling;
  return {.temperature = sampling.temperature,
          .top_p = sampling.top_p,
          .min_p = sampling.min_p,
          .top_k = sampling.top_k,
          .repetition_penalty = sampling.repetition_penalty,
          .presence_penalty = sampling.presence_penalty,
          .frequency_penalty = sampling.frequency_penalty,
          .seed = sampling.seed,
          .index = static_cast<uint32_t>(sequence.index),
          .position = static_cast<uint32_t>(sequence.tokens.size()) +
                      sequence.is_sampling(),
          .history = sequence.counts.counts(),
          .bias = sampling.logit_bias,
          .banned = sequence.output.BannedAfter(sequence.num_generated() +
                                                sequence.is_sampling()),
          .allowed = sampling.allowed_tokens};
}

}  // namespace

void MakeSampleRows(const BatchPlan& plan, std::vector<SampleRow>* rows) {
  rows->clear();
  for (const BatchPlan::Chunk& chunk : plan.chunks) {
    const Sequence& sequence = *chunk.sequence;
    const Request& request = sequence.request;
    const bool score = request.kind == Request::Kind::kScore;
    const int first = sequence.num_cached + chunk.num_rows - chunk.num_wanted;
    for (int i = 0; i < chunk.num_wanted; ++i) {
      SampleRow row;
      if (score) {
        row.forced_token = sequence.tokens[first + i + 1];
      } else {
        row = ToSample(sequence);
      }
      row.wants_logprobs = score || request.num_top_logprobs.has_value();
      row.num_top = request.num_top_logprobs.value_or(0);
      rows->push_back(row);
    }
  }
}

}  // namespace strata
