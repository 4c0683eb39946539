#include "core/sharing_strategy.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/quote.h"

namespace strata {
namespace {

using Map = std::vector<int32_t>;  // source by layer

constexpr char kForms[] =
    "allowed are full, every=N, keep=R, prefix=K, leaders=0,..., "
    "sources=0,... and registered names";

constexpr size_t kMaxItemBytes = 16;  // of a list, quoted in a message

template <typename... Parts>
absl::Status Refuse(std::string_view spec, const Parts&... why) {
  return absl::InvalidArgumentError(
      absl::StrCat("strategy ", Quote(spec), ": ", why...));
}

// Decimal digits only, of a value below 2^32.
std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

// Digits with an optional point, as in 0.25, .5 or 1; no sign and no exponent.
std::optional<double> ParseDecimal(std::string_view text) {
  if (text.empty() || text[0] == '-') return std::nullopt;
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] =
      std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || at != end || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// Cuts the part up to the next comma off `rest`; nothing is left after the
// last.
std::string_view NextItem(std::optional<std::string_view>* rest) {
  const std::string_view text = **rest;
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) {
    rest->reset();
    return text;
  }
  *rest = text.substr(comma + 1);
  return text.substr(0, comma);
}

// source[l] = the largest leader <= l.  `is_leader(0)` holds.
template <typename IsLeader>
Map NearestEarlier(int num_layers, IsLeader is_leader) {
  Map source(num_layers);
  for (int layer = 0; layer < num_layers; ++layer) {
    source[layer] = is_leader(layer) ? layer : source[layer - 1];
  }
  return source;
}

Map Every(uint32_t n, int num_layers) {
  return NearestEarlier(num_layers, [n](uint32_t l) { return l % n == 0; });
}

Map Prefix(uint32_t k, int num_layers) {
  return NearestEarlier(num_layers, [k](uint32_t l) { return l < k; });
}

Map Keep(double ratio, int num_layers) {
  const int64_t count = std::max(
      int64_t{1}, static_cast<int64_t>(std::ceil(ratio * num_layers - 1e-9)));
  std::vector<bool> is_leader(num_layers);
  for (int64_t i = 0; i < count; ++i) is_leader[i * num_layers / count] = true;
  return NearestEarlier(num_layers, [&](int l) { return is_leader[l]; });
}

absl::StatusOr<Map> ParseLeaders(std::string_view spec, std::string_view list,
                                 int num_layers) {
  std::vector<bool> is_leader(num_layers);
  int64_t last = -1;
  for (std::optional<std::string_view> rest = list; rest;) {
    const std::string_view item = NextItem(&rest);
    const std::optional<uint32_t> layer = ParseNumber(item);
    if (!layer) {
      return Refuse(spec,
                    "not the number of a layer: ", Quote(item, kMaxItemBytes));
    }
    if (*layer >= static_cast<uint32_t>(num_layers)) {
      return Refuse(spec, "layer ", *layer, " is not one of 0 to ",
                    num_layers - 1);
    }
    if (last < 0 && *layer != 0) {
      return Refuse(spec, "layer ", *layer,
                    " comes first, but layer 0 must lead");
    }
    if (*layer <= last) {
      return Refuse(spec, "layer ", *layer, " comes after layer ", last,
                    ", but leaders must rise");
    }
    is_leader[*layer] = true;
    last = *layer;
  }
  return NearestEarlier(num_layers, [&](int l) { return is_leader[l]; });
}

absl::StatusOr<Map> ParseSources(std::string_view spec, std::string_view list,
                                 int num_layers) {
  Map source;
  for (std::optional<std::string_view> rest = list; rest;) {
    const int64_t layer = static_cast<int64_t>(source.size());
    const std::string_view item = NextItem(&rest);
    const std::optional<uint32_t> read = ParseNumber(item);
    if (layer == num_layers) {
      return Refuse(spec, "layer ", layer, " is not one of 0 to ",
                    num_layers - 1);
    }
    if (!read) {
      return Refuse(spec, "layer ", layer,
                    " reads what is not the number of a layer: ",
                    Quote(item, kMaxItemBytes));
    }
    if (*read > layer) {
      return Refuse(spec, "layer ", layer, " reads layer ", *read,
                    ", but a layer reads itself or an earlier one");
    }
    if (*read < layer && source[*read] != static_cast<int32_t>(*read)) {
      return Refuse(spec, "layer ", layer, " reads layer ", *read,
                    ", which keeps no cache: it reads layer ", source[*read]);
    }
    source.push_back(static_cast<int32_t>(*read));
  }
  if (source.size() != static_cast<size_t>(num_layers)) {
    return Refuse(spec, "layer ", source.size(),
                  " has no source: one is needed for each of the ", num_layers,
                  " layers");
  }
  return source;
}

std::string Canonical(const Map& source) {
  const int num_layers = static_cast<int>(source.size());
  std::vector<int32_t> leaders;
  for (int layer = 0; layer < num_layers; ++layer) {
    if (source[layer] == layer) leaders.push_back(layer);
  }
  const int num_leaders = static_cast<int>(leaders.size());
  if (num_leaders == num_layers) return "full";
  const int period = num_leaders == 1 ? num_layers : leaders[1];
  if (source == Every(period, num_layers)) {
    return absl::StrCat("every=", period);
  }
  if (source == Prefix(num_leaders, num_layers)) {
    return absl::StrCat("prefix=", num_leaders);
  }
  const Map nearest =
      NearestEarlier(num_layers, [&](int l) { return source[l] == l; });
  if (source == nearest) {
    return absl::StrCat("leaders=", absl::StrJoin(leaders, ","));
  }
  return absl::StrCat("sources=", absl::StrJoin(source, ","));
}

absl::StatusOr<Map> ParseMap(std::string_view spec, int num_layers) {
  if (spec == "full") return Every(1, num_layers);
  const size_t equals = spec.find('=');
  if (equals == std::string_view::npos) return Refuse(spec, kForms);
  const std::string_view form = spec.substr(0, equals);
  const std::string_view value = spec.substr(equals + 1);
  if (form == "every" || form == "prefix") {
    const std::optional<uint32_t> number = ParseNumber(value);
    if (!number || *number == 0) {
      return Refuse(spec, std::string(form),
                    "= takes an integer from 1 to 4294967295");
    }
    return form == "every" ? Every(*number, num_layers)
                           : Prefix(*number, num_layers);
  }
  if (form == "keep") {
    const std::optional<double> ratio = ParseDecimal(value);
    if (!ratio || *ratio <= 0 || *ratio > 1) {
      return Refuse(spec,
                    "keep= takes a decimal number above 0 and up to 1, like "
                    "0.25");
    }
    return Keep(*ratio, num_layers);
  }
  if (form == "leaders") return ParseLeaders(spec, value, num_layers);
  if (form == "sources") return ParseSources(spec, value, num_layers);
  return Refuse(spec, kForms);
}

}  // namespace

SharingStrategy::SharingStrategy(std::vector<int32_t> source) {
  auto rep = std::make_shared<Rep>();
  std::vector<int32_t> rank(source.size());  // of the leaders
  for (size_t layer = 0; layer < source.size(); ++layer) {
    const int32_t leader = source[layer];
    if (leader == static_cast<int32_t>(layer)) {
      rank[layer] = rep->num_leaders++;
      rep->last_leader = leader;
    }
    rep->slot.push_back(rank[leader]);
  }
  rep->canonical = Canonical(source);
  rep->source = std::move(source);
  rep_ = std::move(rep);
}

SharingStrategy SharingStrategy::Full(int num_layers) {
  STRATA_CHECK(num_layers > 0);
  return SharingStrategy(Every(1, num_layers));
}

absl::StatusOr<SharingStrategy> SharingStrategy::Parse(std::string_view spec,
                                                       int num_layers) {
  STRATA_CHECK(num_layers > 0);
  STRATA_ASSIGN_OR_RETURN(Map source, ParseMap(spec, num_layers));
  return SharingStrategy(std::move(source));
}

bool SharingStrategy::LeadersSubsetOf(const SharingStrategy& other) const {
  STRATA_CHECK(num_layers() == other.num_layers());
  for (int layer = 0; layer < num_layers(); ++layer) {
    if (is_leader(layer) && !other.is_leader(layer)) return false;
  }
  return true;
}

}  // namespace strata
