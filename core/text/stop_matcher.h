#ifndef CORE_TEXT_STOP_MATCHER_H_
#define CORE_TEXT_STOP_MATCHER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

// Finds stop strings in a text that comes in pieces.  Text that could still become part of a stop string is held back.
class StopMatcher {
 public:
  // `stop`: none empty.  include_stop: the match itself is let through.
  StopMatcher(std::vector<std::string> stop, bool include_stop);

  // Appends to *out what can no longer be part of a match, and returns the stop string found, if any; *out then ends
  // before it (or with it).  Of several that `text` completes: the one that begins first, then the first listed.
  // REQUIRES: nothing was found before.
  std::optional<std::string> Append(std::string_view text, std::string* out);

  // The text ends without a match: appends what was held back.
  void Finish(std::string* out);

 private:
  std::vector<std::string> stop_;
  bool include_stop_;
  std::string held_;  // the longest end of the text that begins some stop string
};

}  // namespace strata

#endif  // CORE_TEXT_STOP_MATCHER_H_
