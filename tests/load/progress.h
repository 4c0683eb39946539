#ifndef TESTS_LOAD_PROGRESS_H_
#define TESTS_LOAD_PROGRESS_H_

#include <cstdio>
#include <string>

#include "tests/load/runner.h"

namespace strata {

// "[#####---------------]  25/100  3 failed  12 running  118.2 tok/s  4 s", in
// at most `width` columns.
std::string ProgressLine(const Progress& progress, int width);

// Shows how far a run is: a bar that redraws itself on a terminal, else a line
// every five seconds.
//
// Not thread-safe.
class ProgressBar {
 public:
  explicit ProgressBar(std::FILE* out);

  void Show(const Progress& progress);
  // Takes the bar away.
  void Clear();

 private:
  std::FILE* const out_;
  const bool is_terminal_;
  double next_line_s_ = 5;
};

}  // namespace strata

#endif  // TESTS_LOAD_PROGRESS_H_
