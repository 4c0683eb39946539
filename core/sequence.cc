#include "core/sequence.h"

#include <utility>

namespace strata {

Sequence::Sequence(LiveRequest* live, const Request& request, int index,
                   SequenceOutput output)
    : live(live),
      request(request),
      index(index),
      tokens(request.prompt),
      path(request, /*at_floor=*/false),
      strategy(path.strategy()),
      strategy_label(path.label()),
      output(std::move(output)) {
  if (request.sampling.has_penalties()) counts.AddPrompt(request.prompt);
}

}  // namespace strata
