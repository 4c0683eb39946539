#include "tests/load/report_table.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/table.h"
#include "client/text_format.h"

namespace strata {
namespace {

constexpr int kUncut = 1 << 20;

std::string Pair(double low, double high) {
  return absl::StrFormat("%.1f/%.1f", low, high);
}

void AddRow(const std::string& name, const GroupReport& group, Table* table) {
  const double saved =
      group.kv_bytes_full_mean > 0
          ? 100 * (1 - group.kv_bytes_mean / group.kv_bytes_full_mean)
          : 0;
  table->AddRow({name, absl::StrFormat("%d", group.completed),
                 absl::StrFormat("%d", group.failed),
                 absl::StrFormat("%d", group.cancelled),
                 absl::StrFormat("%d", group.expired),
                 absl::StrFormat("%.2f", group.PerSecond(group.completed)),
                 absl::StrFormat("%.1f", group.PerSecond(static_cast<double>(
                                             group.total_output_tokens))),
                 Pair(group.ttft_ms.p50, group.ttft_ms.p99),
                 Pair(group.itl_ms.p50, group.itl_ms.p99),
                 Pair(group.e2el_ms.p50, group.e2el_ms.p99),
                 FormatBytes(static_cast<uint64_t>(group.kv_bytes_mean)),
                 absl::StrFormat("%.0f%%", saved)});
}

void AddEconomyRow(const std::string& name, const GroupReport& group,
                   Table* table) {
  std::vector<std::string> ended;
  for (const auto& [strategy, count] : group.ended_under) {
    ended.push_back(absl::StrCat(OneLine(strategy), ": ", count));
  }
  table->AddRow({name, absl::StrCat(group.total_input_tokens),
                 absl::StrCat(group.total_cached_tokens),
                 absl::StrFormat("%.1f%%", 100 * group.prefix_hit_rate()),
                 absl::StrCat(group.switches),
                 FormatBytes(group.switch_freed_bytes),
                 absl::StrCat(group.preemptions), absl::StrJoin(ended, ", ")});
}

}  // namespace

std::string ReportTable(const Report& report,
                        const std::vector<std::string>& labels) {
  Table table({{"strategy", Table::Align::kLeft},
               {"ok"},
               {"failed"},
               {"cancelled"},
               {"expired"},
               {"req/s"},
               {"tok/s"},
               {"TTFT p50/p99 ms"},
               {"ITL p50/p99 ms"},
               {"E2E p50/p99 ms"},
               {"KV a call"},
               {"saved"}});
  for (size_t i = 0; i < labels.size(); ++i) {
    AddRow(labels[i], report.by_strategy[i], &table);
  }
  AddRow("total", report.total, &table);
  return table.Render(kUncut);
}

std::string EconomyTable(const Report& report,
                         const std::vector<std::string>& labels) {
  Table table({{"strategy", Table::Align::kLeft},
               {"prompt tokens"},
               {"cached"},
               {"hit rate"},
               {"switches"},
               {"freed"},
               {"preemptions"},
               {"ended under", Table::Align::kLeft}});
  for (size_t i = 0; i < labels.size(); ++i) {
    AddEconomyRow(labels[i], report.by_strategy[i], &table);
  }
  AddEconomyRow("total", report.total, &table);
  return table.Render(kUncut);
}

}  // namespace strata
