#include "core/fit_request.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/quote.h"

namespace strata {
namespace {

// Of new tokens that a request without max_tokens may always have, pool and
// context permitting.
constexpr int64_t kDefaultNewTokens = 1024;

template <typename... Parts>
absl::Status Refuse(const Parts&... why) {
  return absl::InvalidArgumentError(absl::StrCat(why...));
}

// Pages that `num_positions` take, one for each leader and begun block.
int64_t PagesFor(const Request& request, int64_t num_positions,
                 int page_tokens) {
  return request.strategy.num_leaders() *
         ((num_positions + page_tokens - 1) / page_tokens);
}

// Positions that `num_pages` hold under the request's strategy.
int64_t PositionsIn(const Request& request, int64_t num_pages,
                    int page_tokens) {
  return num_pages / request.strategy.num_leaders() * page_tokens;
}

absl::Status DoesNotFitPool(const EngineLimits& limits, const Request& request,
                            int64_t num_positions) {
  return Refuse(num_positions, " positions need ",
                PagesFor(request, num_positions, limits.page_tokens),
                " pages of KV cache under strategy ",
                Quote(request.strategy.canonical()), ", but the pool has ",
                limits.num_pages,
                " (--kv_memory): ask for fewer tokens or keep fewer leaders");
}

absl::Status FitScore(const EngineLimits& limits, const Request& request) {
  const int64_t num_tokens = static_cast<int64_t>(request.prompt.size());
  if (num_tokens > limits.max_model_len) {
    return Refuse(num_tokens, " tokens to score are more than the context of ",
                  limits.max_model_len, " (--max_model_len)");
  }
  if (PagesNeeded(request, limits.page_tokens) > limits.num_pages) {
    return DoesNotFitPool(limits, request, request.MaxPositions());
  }
  return absl::OkStatus();
}

// What a request gets that sets no max_tokens: 0 or less if the pool cannot
// hold its prompt.
int64_t DefaultMaxTokens(const EngineLimits& limits, const Request& request,
                         int64_t context_left) {
  // The last generated token takes no position.
  const int64_t before = static_cast<int64_t>(request.prompt.size()) - 1;
  const int64_t all =
      PositionsIn(request, limits.num_pages, limits.page_tokens);
  const int64_t quarter =
      PositionsIn(request, limits.num_pages / 4, limits.page_tokens);
  const int64_t positions =
      std::min(all, std::max(quarter, before + kDefaultNewTokens));
  return std::min(context_left, positions - before);
}

}  // namespace

absl::Status FitRequest(const EngineLimits& limits,
                        std::optional<uint32_t> max_tokens, Request* request) {
  if (request->kind == Request::Kind::kScore) {
    return FitScore(limits, *request);
  }
  const int64_t num_prompt = static_cast<int64_t>(request->prompt.size());
  const int64_t context_left = limits.max_model_len - num_prompt;
  if (context_left <= 0) {
    return Refuse("a prompt of ", num_prompt,
                  " tokens leaves nothing to generate in the context of ",
                  limits.max_model_len, " (--max_model_len)");
  }
  if (!max_tokens) {
    const int64_t fitting = DefaultMaxTokens(limits, *request, context_left);
    if (fitting < 1) return DoesNotFitPool(limits, *request, num_prompt);
    request->stopping.max_tokens = static_cast<int32_t>(fitting);
    return absl::OkStatus();
  }
  if (*max_tokens == 0) return Refuse("max_tokens must be at least 1");
  if (request->stopping.min_tokens > int64_t{*max_tokens}) {
    return Refuse("min_tokens ", request->stopping.min_tokens,
                  " is more than max_tokens ", *max_tokens);
  }
  request->stopping.max_tokens =
      static_cast<int32_t>(std::min(int64_t{*max_tokens}, context_left));
  if (PagesNeeded(*request, limits.page_tokens) > limits.num_pages) {
    return DoesNotFitPool(limits, *request, request->MaxPositions());
  }
  return absl::OkStatus();
}

int64_t PagesNeeded(const Request& request, int page_tokens) {
  return PagesFor(request, request.MaxPositions(), page_tokens);
}

}  // namespace strata
