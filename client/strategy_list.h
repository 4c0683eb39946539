#ifndef CLIENT_STRATEGY_LIST_H_
#define CLIENT_STRATEGY_LIST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace strata {

// The items of "full,every=2,leaders=0,4" or "full;leaders=0,4": strategies,
// separated by ';' if there is one, else by ','.  A piece after ',' that begins
// with a digit goes on with the item before it, since no strategy begins with
// one.  Blanks around items are dropped; empty items are kept, for the caller
// to refuse.
std::vector<std::string> SplitStrategies(absl::string_view list);

}  // namespace strata

#endif  // CLIENT_STRATEGY_LIST_H_
