#ifndef TESTS_LOAD_REPORT_TABLE_H_
#define TESTS_LOAD_REPORT_TABLE_H_

#include <string>
#include <vector>

#include "tests/load/report.h"

namespace strata {

// Speed: a row for each item of the mix, named by `labels`, and one for all
// calls, for a terminal.
std::string ReportTable(const Report& report,
                        const std::vector<std::string>& labels);

// The same rows: what the prefix cache, switches and pre-emptions did.
std::string EconomyTable(const Report& report,
                         const std::vector<std::string>& labels);

}  // namespace strata

#endif  // TESTS_LOAD_REPORT_TABLE_H_
