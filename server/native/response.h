#ifndef SERVER_NATIVE_RESPONSE_H_
#define SERVER_NATIVE_RESPONSE_H_

#include "core/token_sink.h"
#include "proto/strata.pb.h"

namespace strata {

// From what the engine gives to messages of strata.v1.
v1::GenerateResponse ToResponse(const SequenceDelta& delta);
void ToLogprobs(const SampledToken& token, v1::Logprobs* message);
void ToUsage(const Usage& usage, v1::Usage* message);

// Appends a later delta of the same index.
// REQUIRES: equal indices, !into->end
void Append(SequenceDelta delta, SequenceDelta* into);

}  // namespace strata

#endif  // SERVER_NATIVE_RESPONSE_H_
