#ifndef TESTS_MONITORING_SCRAPED_METRICS_H_
#define TESTS_MONITORING_SCRAPED_METRICS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace strata {

// The samples of a page in Prometheus' text format, by
// `name{label="value",...}` as the page writes them.
class ScrapedMetrics {
 public:
  explicit ScrapedMetrics(absl::string_view page) {
    for (absl::string_view line : absl::StrSplit(page, '\n')) {
      if (line.empty() || line[0] == '#') continue;
      const size_t blank = line.rfind(' ');
      double value = 0;
      if (blank == absl::string_view::npos ||
          !absl::SimpleAtod(line.substr(blank + 1), &value)) {
        unparsed_.emplace_back(line);
        continue;
      }
      samples_[std::string(line.substr(0, blank))] = value;
    }
  }

  // The sum over the samples of family `name` that carry all `labels`, each
  // written `label="value"`.
  double Sum(absl::string_view name,
             const std::vector<std::string>& labels = {}) const {
    double sum = 0;
    for (const auto& [series, value] : samples_) {
      if (Matches(series, name, labels)) sum += value;
    }
    return sum;
  }
  int Count(absl::string_view name,
            const std::vector<std::string>& labels = {}) const {
    int count = 0;
    for (const auto& [series, value] : samples_) {
      count += Matches(series, name, labels);
    }
    return count;
  }
  const std::map<std::string, double>& samples() const { return samples_; }
  const std::vector<std::string>& unparsed() const { return unparsed_; }

 private:
  static bool Matches(absl::string_view series, absl::string_view name,
                      const std::vector<std::string>& labels) {
    if (series.substr(0, series.find('{')) != name) return false;
    for (const std::string& label : labels) {
      if (series.find(absl::StrCat("{", label)) == absl::string_view::npos &&
          series.find(absl::StrCat(",", label)) == absl::string_view::npos) {
        return false;
      }
    }
    return true;
  }

  std::map<std::string, double> samples_;
  std::vector<std::string> unparsed_;
};

}  // namespace strata

#endif  // TESTS_MONITORING_SCRAPED_METRICS_H_
