#ifndef TESTS_LOAD_REPORT_TABLE_H_
#define TESTS_LOAD_REPORT_TABLE_H_

#include <string>
#include <vector>

#include "tests/load/report.h"

namespace strata {

// A row for each strategy of `specs`, and one for all calls, for a terminal.
std::string ReportTable(const Report& report,
                        const std::vector<std::string>& specs);

}  // namespace strata

#endif  // TESTS_LOAD_REPORT_TABLE_H_
