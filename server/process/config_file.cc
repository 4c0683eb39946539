#include "server/process/config_file.h"

#include <yaml-cpp/yaml.h>

#include <fstream>
#include <set>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace strata {
namespace {

absl::Status Bad(const std::string& path, int line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ":", line, ": ", what));
}

// A map from names to specs, as the flag --strategies writes it.
absl::StatusOr<std::string> JoinStrategies(const std::string& path,
                                           const YAML::Node& map) {
  std::string joined;
  for (const auto& entry : map) {
    if (!entry.first.IsScalar() || !entry.second.IsScalar()) {
      return Bad(path, entry.first.Mark().line + 1,
                 "a strategy is a name and a spec (in quotes, if it has "
                 "commas between braces)");
    }
    // As the flag splits what is joined here.
    if (entry.first.Scalar().find_first_of(";=") != std::string::npos ||
        entry.second.Scalar().find(';') != std::string::npos) {
      return Bad(path, entry.first.Mark().line + 1,
                 "a strategy's name has no ; and no =, its spec no ;");
    }
    absl::StrAppend(&joined, joined.empty() ? "" : ";", entry.first.Scalar(),
                    "=", entry.second.Scalar());
  }
  return joined;
}

absl::StatusOr<std::vector<ConfigEntry>> ReadEntries(const std::string& path,
                                                     const YAML::Node& root) {
  std::vector<ConfigEntry> entries;
  if (root.IsNull()) return entries;
  if (!root.IsMap()) return Bad(path, 1, "not a map of keys to values");
  std::set<std::string> seen;
  for (const auto& entry : root) {
    const YAML::Node& key = entry.first;
    const YAML::Node& value = entry.second;
    const int line = key.Mark().line + 1;
    if (!key.IsScalar()) return Bad(path, line, "a key is not a plain word");
    const std::string name = key.Scalar();
    if (!seen.insert(name).second) {
      return Bad(path, line, absl::StrCat("key \"", name, "\" stands twice"));
    }
    if (name == "strategies" && value.IsMap()) {
      STRATA_ASSIGN_OR_RETURN(std::string joined, JoinStrategies(path, value));
      entries.push_back({name, std::move(joined), line});
    } else if (value.IsScalar()) {
      entries.push_back({name, value.Scalar(), line});
    } else {
      return Bad(path, line,
                 absl::StrCat("key \"", name, "\" needs one plain value"));
    }
  }
  return entries;
}

}  // namespace

absl::StatusOr<std::vector<ConfigEntry>> ReadConfigFile(
    const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  // Of an empty file, << would say that it failed.
  if (file && file.peek() != std::ifstream::traits_type::eof()) {
    text << file.rdbuf();
  }
  if (!file.is_open() || file.bad() || text.fail()) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  }
  // The parser's only way to report an error is to throw.
  try {
    return ReadEntries(path, YAML::Load(text.str()));
  } catch (const YAML::Exception& e) {
    return Bad(path, e.mark.line + 1, e.msg);
  }
}

}  // namespace strata
