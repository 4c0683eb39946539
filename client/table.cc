#include "client/table.h"

#include <algorithm>
#include <utility>

#include "client/text_format.h"

namespace strata {
namespace {

constexpr int kMinLastWidth = 10;
constexpr int kGap = 2;

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::AddRow(std::vector<std::string> cells) {
  rows_.push_back(std::move(cells));
}

std::string Table::Render(int max_width) const {
  const std::vector<int> widths = Widths(max_width);
  std::vector<std::string> heads;
  std::vector<std::string> rules;
  for (size_t c = 0; c < columns_.size(); ++c) {
    heads.push_back(columns_[c].head);
    rules.emplace_back(widths[c], '-');
  }
  std::string out = RenderRow(heads, widths) + RenderRow(rules, widths);
  for (const std::vector<std::string>& row : rows_) {
    out += RenderRow(row, widths);
  }
  return out;
}

std::vector<int> Table::Widths(int max_width) const {
  std::vector<int> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    int width = DisplayWidth(columns_[c].head);
    for (const auto& row : rows_) {
      width = std::max(width, DisplayWidth(row[c]));
    }
    widths.push_back(width);
  }
  int before_last = 0;
  for (size_t c = 0; c + 1 < widths.size(); ++c)
    before_last += widths[c] + kGap;
  const int room = std::max(max_width - before_last, kMinLastWidth);
  widths.back() = std::min(widths.back(), room);
  return widths;
}

std::string Table::RenderRow(const std::vector<std::string>& cells,
                             const std::vector<int>& widths) const {
  std::string line;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const std::string cell = CutToWidth(cells[c], widths[c]);
    const std::string padding(widths[c] - DisplayWidth(cell), ' ');
    const bool left = columns_[c].align == Align::kLeft;
    line += left ? cell + padding : padding + cell;
    line.append(kGap, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace strata
