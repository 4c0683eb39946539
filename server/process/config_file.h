#ifndef SERVER_PROCESS_CONFIG_FILE_H_
#define SERVER_PROCESS_CONFIG_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace strata {

// A line of a configuration file: the name of a flag and its value as the
// command line would give it.
struct ConfigEntry {
  std::string key;
  std::string value;
  int line = 0;  // from 1
};

// Reads a YAML file that is one map from names to plain values.  `strategies`
// may also be a map from names to specs.  INVALID_ARGUMENT or NOT_FOUND, in one
// line that begins with the path, and the line where there is one.
absl::StatusOr<std::vector<ConfigEntry>> ReadConfigFile(
    const std::string& path);

}  // namespace strata

#endif  // SERVER_PROCESS_CONFIG_FILE_H_
