#ifndef TESTS_SERVER_E2E_GOLDEN_SCORES_H_
#define TESTS_SERVER_E2E_GOLDEN_SCORES_H_

#include "tests/server/e2e/client.h"
#include "tests/testing/golden.h"

namespace strata {

// EXPECTs the golden log-probabilities of the golden prompt under every plan,
// of a server that computes in f32.
void ExpectGoldenScores(const Golden& golden, Client* client);

}  // namespace strata

#endif  // TESTS_SERVER_E2E_GOLDEN_SCORES_H_
