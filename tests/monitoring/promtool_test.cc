// Debian's package prometheus has promtool; ./strata installs it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "monitoring/metrics_page.h"
#include "prometheus/registry.h"

namespace strata {
namespace {

TEST(PromtoolTest, FindsNothingButTheColonOfVllmNames) {
  prometheus::Registry registry;
  Metrics metrics(&registry, {.model_name = "a \"quoted\\\nname",
                              .version = "1",
                              .backend = "cpu",
                              .kv_format = "bf16",
                              .page_tokens = 16,
                              .page_bytes = 4096,
                              .num_pages = 100,
                              .num_layers = 8,
                              .max_model_len = 8192});
  metrics.AddStrategy(1, "leaders=0,2,5", 1024);
  MetricsPage page;
  page.Publish(&metrics);

  const std::string path = testing::TempDir() + "/scrape.txt";
  std::ofstream(path) << page.Render();
  const std::string report_path = testing::TempDir() + "/report.txt";
  const int status =
      std::system(absl::StrCat("/usr/bin/promtool check metrics < ", path,
                               " > ", report_path, " 2>&1")
                      .c_str());
  std::ifstream report(report_path);
  std::vector<std::string> problems;
  int num_colons = 0;
  for (std::string line; std::getline(report, line);) {
    if (absl::StartsWith(line, "vllm:") &&
        absl::EndsWith(line, "metric names should not contain ':'")) {
      ++num_colons;
    } else {
      problems.push_back(line);
    }
  }
  EXPECT_GT(num_colons, 10) << "promtool did not read the page";
  EXPECT_EQ(problems, std::vector<std::string>());
  EXPECT_EQ(WEXITSTATUS(status), 3) << "3: parsed, with remarks";
}

}  // namespace
}  // namespace strata
