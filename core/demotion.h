#ifndef CORE_DEMOTION_H_
#define CORE_DEMOTION_H_

#include <cstdint>
#include <vector>

#include "core/sequence.h"

namespace strata {

// When running requests are switched to their floors.
struct PressurePolicy {
  bool demote_under_pressure = true;
  double pressure_threshold = 0.9;  // of the pool, used and reserved; in (0, 1]
};

// A request that may be switched to its floor: its running sequences of which
// that is true, and the pages that it gives back, counting shared ones in full.
struct Demotion {
  const Request* request;
  std::vector<Sequence*> sequences;
  int64_t saving;
};

// The demotions that are possible now, the largest saving first; of equal ones
// the request that was admitted last.  A sequence is passed over while it runs
// again what a pre-emption took, and where the floor saves nothing.
// REQUIRES: the sequences have taken the switches that they have come to.
std::vector<Demotion> FindDemotions(const std::vector<Sequence*>& running,
                                    int page_tokens);

// Pages that a sequence without pages allocates less before position `end` if
// it starts at its floor; 0 if it has none or has begun.
int64_t SavingAtFloor(const Sequence& sequence, int64_t end, int page_tokens);

}  // namespace strata

#endif  // CORE_DEMOTION_H_
