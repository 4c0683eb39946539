#include "tests/load/lengths.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace strata {
namespace {

constexpr double kMaxLength = 1 << 24;

// The two numbers of "A<separator>B".
bool ParsePair(const std::string& text, char separator, double* a, double* b) {
  const std::vector<std::string> parts = absl::StrSplit(text, separator);
  return parts.size() == 2 && absl::SimpleAtod(parts[0], a) &&
         absl::SimpleAtod(parts[1], b);
}

bool ParseInt(const std::string& text, double* value) {
  int whole = 0;
  if (!absl::SimpleAtoi(text, &whole)) return false;
  *value = whole;
  return true;
}

}  // namespace

absl::StatusOr<Lengths> Lengths::Parse(std::string_view text) {
  const std::string whole(text);
  const size_t colon = whole.find(':');
  const std::string name = whole.substr(0, colon);
  const std::string rest = colon == whole.npos ? "" : whole.substr(colon + 1);
  Kind kind = Kind::kUniform;
  double a = 0;
  double b = 0;
  bool valid = false;
  if (colon == whole.npos) {
    valid = ParseInt(whole, &a);
    b = a;
  } else if (name == "uniform") {
    const std::vector<std::string> ends = absl::StrSplit(rest, '-');
    valid = ends.size() == 2 && ParseInt(ends[0], &a) &&
            ParseInt(ends[1], &b) && a <= b;
  } else if (name == "normal" || name == "lognormal") {
    kind = name == "normal" ? Kind::kNormal : Kind::kLognormal;
    valid = ParsePair(rest, ',', &a, &b);
  }
  if (!valid || !(a >= 1 && a <= kMaxLength) || !(b >= 0 && b <= kMaxLength)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", whole,
        "': a length is N, uniform:A-B, normal:MEAN,SD or lognormal:MEAN,SD, "
        "from 1 to 16777216"));
  }
  return Lengths(kind, a, b);
}

int Lengths::Draw(std::mt19937_64* random) const {
  double length = a_;
  if (kind_ == Kind::kUniform) {
    return std::uniform_int_distribution<int>(static_cast<int>(a_),
                                              static_cast<int>(b_))(*random);
  }
  if (kind_ == Kind::kNormal && b_ > 0) {
    length = std::normal_distribution<double>(a_, b_)(*random);
  }
  if (kind_ == Kind::kLognormal && b_ > 0) {
    const double variance = std::log1p((b_ / a_) * (b_ / a_));
    const double mean = std::log(a_) - variance / 2;
    length =
        std::lognormal_distribution<double>(mean, std::sqrt(variance))(*random);
  }
  return static_cast<int>(std::clamp(std::round(length), 1.0, kMaxLength));
}

}  // namespace strata
