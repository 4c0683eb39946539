#include "tests/load/progress.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/text_format.h"

namespace strata {

std::string ProgressLine(const Progress& progress, int width) {
  constexpr int kBarWidth = 20;
  double part =
      static_cast<double>(progress.num_done) / std::max(progress.num_calls, 1);
  std::string calls = absl::StrCat(progress.num_done, "/", progress.num_calls);
  if (progress.duration_s > 0) {
    part = std::max(part, progress.elapsed_s / progress.duration_s);
    calls = absl::StrCat(progress.num_done, " calls");
  }
  const int filled = static_cast<int>(kBarWidth * std::min(part, 1.0));
  const double tokens_per_s = static_cast<double>(progress.num_tokens) /
                              std::max(progress.elapsed_s, 1e-3);
  const std::string line = absl::StrFormat(
      "[%s%s]  %s  %d failed  %d running  %.1f tok/s  %.0f s",
      std::string(filled, '#'), std::string(kBarWidth - filled, '-'), calls,
      progress.num_failed, progress.num_started - progress.num_done,
      tokens_per_s, progress.elapsed_s);
  return CutToWidth(line, width);
}

ProgressBar::ProgressBar(std::FILE* out)
    : out_(out), is_terminal_(isatty(fileno(out)) != 0) {}

void ProgressBar::Show(const Progress& progress) {
  if (is_terminal_) {
    const int width = TerminalWidth(fileno(out_), 80);
    absl::FPrintF(out_, "\r\x1b[K%s", ProgressLine(progress, width - 1));
    std::fflush(out_);
  } else if (progress.elapsed_s >= next_line_s_) {
    next_line_s_ = progress.elapsed_s + 5;
    absl::FPrintF(out_, "%s\n", ProgressLine(progress, 200));
  }
}

void ProgressBar::Clear() {
  if (is_terminal_) absl::FPrintF(out_, "\r\x1b[K");
}

}  // namespace strata
