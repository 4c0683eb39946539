#ifndef TESTS_LOAD_MIX_H_
#define TESTS_LOAD_MIX_H_

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace strata {

// Which share of the calls runs under which strategy.  Immutable.
class Mix {
 public:
  struct Item {
    std::string spec;   // empty: the server's default
    std::string floor;  // what the server may demote to; empty: nothing
    double weight = 1;

    // "full", "full>every=4", "default": its name in reports.
    std::string Label() const;
  };

  // Parses "full:0.5,leaders=0,4:0.5" or the same with ';': the weight stands
  // after the last colon, an item without one weighs 1, and weights need not
  // sum to 1.  "full>every=4" has the floor every=4.  "" is the server's
  // default strategy alone.  INVALID_ARGUMENT: a weight that is no number above
  // 0, an item named twice, an empty item among others, a '>' with no floor or
  // two after it.
  static absl::StatusOr<Mix> Parse(std::string_view text);

  // That item alone.
  static Mix Of(Item item);

  const std::vector<Item>& items() const { return items_; }
  std::vector<std::string> Labels() const;  // in order of the items

  // An index into items(), each drawn in proportion to its weight.
  int Draw(std::mt19937_64* random) const;

 private:
  std::vector<Item> items_;
};

}  // namespace strata

#endif  // TESTS_LOAD_MIX_H_
