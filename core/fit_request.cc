#include "core/fit_request.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/quote.h"
#include "core/strategy_path.h"

namespace strata {
namespace {

// Of new tokens that a request without max_tokens may always have, pool and
// context permitting.
constexpr int64_t kDefaultNewTokens = 1024;

template <typename... Parts>
absl::Status Refuse(const Parts&... why) {
  return absl::InvalidArgumentError(absl::StrCat(why...));
}

// Positions that `num_pages` hold under `strategy`.
int64_t PositionsIn(const SharingStrategy& strategy, int64_t num_pages,
                    int page_tokens) {
  return num_pages / strategy.num_leaders() * page_tokens;
}

int64_t PagesOf(const Request& request, bool at_floor, int64_t num_positions,
                int page_tokens) {
  return StrategyPath(request, at_floor)
      .PagesAhead(0, num_positions, page_tokens);
}

bool FitsPool(const EngineLimits& limits, const Request& request,
              int64_t num_positions) {
  const auto fits = [&](bool at_floor) {
    return PagesOf(request, at_floor, num_positions, limits.page_tokens) <=
           limits.num_pages;
  };
  return fits(false) || (request.floor.has_value() && fits(true));
}

absl::Status DoesNotFitPool(const EngineLimits& limits, const Request& request,
                            int64_t num_positions) {
  const bool at_floor = request.floor.has_value();
  const SharingStrategy& strategy =
      at_floor ? *request.floor : request.strategy;
  return Refuse(num_positions, " positions need ",
                PagesOf(request, at_floor, num_positions, limits.page_tokens),
                " pages of KV cache under ", at_floor ? "floor " : "strategy ",
                Quote(strategy.canonical()), ", but the pool has ",
                limits.num_pages,
                " (--kv_memory): ask for fewer tokens or keep fewer leaders");
}

absl::Status FitScore(const EngineLimits& limits, const Request& request) {
  const int64_t num_tokens = static_cast<int64_t>(request.prompt.size());
  if (num_tokens > limits.max_model_len) {
    return Refuse(num_tokens, " tokens to score are more than the context of ",
                  limits.max_model_len, " (--max_model_len)");
  }
  if (!FitsPool(limits, request, request.MaxPositions())) {
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
  const auto positions_in = [&](int64_t num_pages) {
    const int64_t positions =
        PositionsIn(request.strategy, num_pages, limits.page_tokens);
    if (positions > before || !request.floor.has_value()) return positions;
    return PositionsIn(*request.floor, num_pages, limits.page_tokens);
  };
  int64_t positions = positions_in(limits.num_pages);
  if (!limits.optimistic) {
    const int64_t quarter = positions_in(limits.num_pages / 4);
    positions =
        std::min(positions, std::max(quarter, before + kDefaultNewTokens));
  }
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
  if (!FitsPool(limits, *request, request->MaxPositions())) {
    return DoesNotFitPool(limits, *request, request->MaxPositions());
  }
  return absl::OkStatus();
}

int64_t PagesNeeded(const Request& request, int page_tokens) {
  return PagesOf(request, /*at_floor=*/false, request.MaxPositions(),
                 page_tokens);
}

}  // namespace strata
