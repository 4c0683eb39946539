#ifndef CLIENT_SUMMARY_H_
#define CLIENT_SUMMARY_H_

#include <string>

#include "client/generation.h"

namespace strata {

// One line on what a call that ended well came to: tokens, speed and memory,
// and reuse, switches and pre-emptions where there were any.
std::string Summary(const GenerationResult& result);

}  // namespace strata

#endif  // CLIENT_SUMMARY_H_
