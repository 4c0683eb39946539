#ifndef CORE_TEXT_STOP_MATCHER_H_
#define CORE_TEXT_STOP_MATCHER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

// Finds stop strings in a text that comes in pieces.  Text that could still
// become part of a stop string is held back.  A byte costs O(stop strings),
// amortised (Knuth, Morris, Pratt: "Fast pattern matching in strings", 1977).
class StopMatcher {
 public:
  // `stop`: none empty, all UTF-8 if the text's pieces are to be.
  // include_stop: the match itself is let through.
  StopMatcher(const std::vector<std::string>& stop, bool include_stop);

  // Appends to *out what can no longer be part of a match, and returns the stop
  // string found, if any; *out then ends before it (or with it).  Of several
  // that `text` completes: the one that begins first, then the first listed.
  // REQUIRES: nothing was found before.
  std::optional<std::string> Append(std::string_view text, std::string* out);

  // As Append, but what `text` completes is no match.
  void AppendUnmatched(std::string_view text, std::string* out);

  // The text ends without a match: appends what was held back.
  void Finish(std::string* out);

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t>
        border;              // [i]: longest end of text[0..i] that begins it
    size_t num_matched = 0;  // longest end of the text so far that begins it

    // Reads one byte; whether it completes the pattern.
    bool Read(char byte);
  };
  // Appends held_ + text but for the end that a pattern may continue.
  void Hold(std::string_view text, std::string* out);

  std::vector<Pattern> patterns_;
  bool include_stop_;
  std::string held_;  // the longest end of the text that begins some pattern
};

}  // namespace strata

#endif  // CORE_TEXT_STOP_MATCHER_H_
