#ifndef CLIENT_TABLE_H_
#define CLIENT_TABLE_H_

#include <string>
#include <vector>

namespace strata {

// Aligned columns for a terminal.
//
// Not thread-safe.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string head;
    Align align = Align::kRight;
  };

  explicit Table(std::vector<Column> columns);

  // REQUIRES: one cell for each column, each on one line.
  void AddRow(std::vector<std::string> cells);

  // Head, rule and rows, each ending in a newline, two blanks between columns.
  // A last column that would pass `max_width` columns is cut; at least 10
  // columns of it are shown.
  std::string Render(int max_width) const;

 private:
  std::vector<int> Widths(int max_width) const;
  std::string RenderRow(const std::vector<std::string>& cells,
                        const std::vector<int>& widths) const;

  const std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace strata

#endif  // CLIENT_TABLE_H_
