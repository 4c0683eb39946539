#ifndef TESTS_GPU_RESULT_TABLE_H_
#define TESTS_GPU_RESULT_TABLE_H_

#include <map>
#include <string>

namespace strata {

// What was measured of one case.  `values` are by column, of kColumns in
// result_table.cc; those absent were not measured.
struct Result {
  std::string what;
  std::string strategy = {};  // empty: none
  int context = 0;            // 0: none
  int rows = 0;               // 0: none
  std::map<std::string, double> values;
};

// Prints results as rows of one Markdown table, and writes them as lines of
// JSON, each as soon as it is there: a run that is cut short leaves what it
// has.
class ResultTable {
 public:
  // Empty `json_path`: no JSON.  Prints the head.
  explicit ResultTable(std::string json_path);

  void Add(const Result& result) const;

 private:
  const std::string json_path_;
};

}  // namespace strata

#endif  // TESTS_GPU_RESULT_TABLE_H_
