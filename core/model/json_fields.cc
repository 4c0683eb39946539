#include "core/model/json_fields.h"

#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "core/model/file_error.h"

namespace strata {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 16;
constexpr int64_t kMaxValues = int64_t{1} << 21;

// Watches a parse: what it refuses is never built, so that a hostile text costs
// no memory.
class ParseGuard {
 public:
  bool Allow(int depth, json::parse_event_t event, const json& value) {
    if (!fault_.empty()) return false;
    if (depth > kMaxDepth) fault_ = "nested too deeply";
    if (++num_events_ > kMaxValues) fault_ = "too many values";
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end && !keys_.empty())
      keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.empty()) {
      const std::string& key = value.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second)
        fault_ = "doubled key " + Quote(key);
    }
    return fault_.empty();
  }
  const std::string& fault() const { return fault_; }

 private:
  int64_t num_events_ = 0;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::string fault_;
};

}  // namespace

absl::StatusOr<json> ParseJsonObject(const std::string& path,
                                     std::string_view text) {
  ParseGuard guard;
  json value = json::parse(
      text.begin(), text.end(),
      [&guard](int depth, json::parse_event_t event, json& parsed) {
        return guard.Allow(depth, event, parsed);
      },
      /*allow_exceptions=*/false);
  if (!guard.fault().empty()) return Malformed(path, "JSON: ", guard.fault());
  if (value.is_discarded()) return Malformed(path, "is not valid JSON");
  if (!value.is_object()) return Malformed(path, "is not a JSON object");
  return value;
}

JsonFields::JsonFields(std::string_view path, const json& object,
                       std::string prefix)
    : path_(path), object_(object), prefix_(std::move(prefix)) {
  STRATA_CHECK(object.is_object());
}

std::string JsonFields::Name(std::string_view key) const {
  return prefix_.empty() ? std::string(key) : Concat(prefix_, ".", key);
}

const json* JsonFields::Find(std::string_view key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

absl::Status JsonFields::WrongType(std::string_view key,
                                   std::string_view expected) const {
  const json* value = Find(key);
  if (value == nullptr) return Malformed(path_, Name(key), " is missing");
  const std::string text =
      value->dump(-1, ' ', true, json::error_handler_t::replace);
  return Malformed(path_, Name(key), " is ", Quote(text), ", expected ",
                   expected);
}

absl::StatusOr<int> JsonFields::Integer(std::string_view key) const {
  const json* value = Find(key);
  constexpr int64_t kMax = std::numeric_limits<int>::max();
  if (value != nullptr && value->is_number_unsigned() &&
      value->get<uint64_t>() <= kMax) {
    return static_cast<int>(value->get<uint64_t>());
  }
  return WrongType(key, "an integer in [0, 2^31)");
}

absl::StatusOr<int> JsonFields::IntegerOr(std::string_view key,
                                          int fallback) const {
  if (!Has(key)) return fallback;
  return Integer(key);
}

absl::StatusOr<double> JsonFields::Number(std::string_view key) const {
  const json* value = Find(key);
  if (value != nullptr && value->is_number()) return value->get<double>();
  return WrongType(key, "a number");
}

absl::StatusOr<double> JsonFields::NumberOr(std::string_view key,
                                            double fallback) const {
  if (!Has(key)) return fallback;
  return Number(key);
}

absl::StatusOr<bool> JsonFields::BoolOr(std::string_view key,
                                        bool fallback) const {
  const json* value = Find(key);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  return WrongType(key, "true or false");
}

absl::StatusOr<std::string> JsonFields::StringOr(
    std::string_view key, std::string_view fallback) const {
  const json* value = Find(key);
  if (value == nullptr) return std::string(fallback);
  if (value->is_string()) return value->get<std::string>();
  return WrongType(key, "a string");
}

}  // namespace strata
