#include "tests/gpu/result_table.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"

namespace strata {
namespace {

struct Column {
  const char* name;
  int decimals;
};

constexpr Column kColumns[] = {{"ms", 3},      {"host ms", 3}, {"KV MB", 1},
                               {"peak MB", 0}, {"TTFT ms", 1}, {"tok/s", 1},
                               {"GB/s", 0},    {"of copy", 3}, {"TFLOP/s", 1}};

std::string CountCell(int count) {
  return count > 0 ? absl::StrCat(" ", count, " |") : " - |";
}

std::string MarkdownRow(const Result& result) {
  std::string row =
      absl::StrCat("| ", result.what, " | ",
                   result.strategy.empty() ? "-" : result.strategy.c_str(),
                   " |", CountCell(result.context), CountCell(result.rows));
  for (const Column& column : kColumns) {
    const auto found = result.values.find(column.name);
    absl::StrAppend(
        &row, found == result.values.end()
                  ? " - |"
                  : absl::StrFormat(" %.*f |", column.decimals, found->second));
  }
  return row;
}

}  // namespace

ResultTable::ResultTable(std::string json_path)
    : json_path_(std::move(json_path)) {
  if (!json_path_.empty()) std::ofstream(json_path_, std::ios::trunc);
  std::string head = "| what | strategy | context | rows |";
  std::string rule = "|---|---|---:|---:|";
  for (const Column& column : kColumns) {
    absl::StrAppend(&head, " ", column.name, " |");
    absl::StrAppend(&rule, "---:|");
  }
  std::printf("%s\n%s\n", head.c_str(), rule.c_str());
}

void ResultTable::Add(const Result& result) const {
  std::printf("%s\n", MarkdownRow(result).c_str());
  std::fflush(stdout);
  if (json_path_.empty()) return;
  nlohmann::ordered_json json = {{"what", result.what}};
  if (!result.strategy.empty()) json["strategy"] = result.strategy;
  if (result.context > 0) json["context"] = result.context;
  if (result.rows > 0) json["rows"] = result.rows;
  size_t known = 0;
  for (const Column& column : kColumns) {
    const auto found = result.values.find(column.name);
    if (found == result.values.end()) continue;
    json[column.name] = found->second;
    ++known;
  }
  STRATA_CHECK(known == result.values.size());
  std::ofstream(json_path_, std::ios::app) << json << '\n';
}

}  // namespace strata
