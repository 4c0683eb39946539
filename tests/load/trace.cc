#include "tests/load/trace.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"

namespace strata {
namespace {

using Json = nlohmann::json;

constexpr int kMaxLength = 1 << 24;
constexpr double kMaxTimestampMs = 1e12;

// The whole number of member `key`, if it is one within the bounds.
std::optional<int> Length(const Json& object, const char* key, int least) {
  const auto member = object.find(key);
  if (member == object.end() || !member->is_number_integer()) return {};
  // Anything unsigned that does not fit is above every bound.
  const int64_t value =
      member->is_number_unsigned()
          ? static_cast<int64_t>(std::min<uint64_t>(
                member->get<uint64_t>(), std::numeric_limits<int64_t>::max()))
          : member->get<int64_t>();
  if (value < least || value > kMaxLength) return {};
  return static_cast<int>(value);
}

// Takes one line apart; what is wrong with it, or "".
std::string ParseLine(absl::string_view line, MooncakeCall* call) {
  const Json json = Json::parse(line.begin(), line.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (!json.is_object()) return "is no JSON object";
  const auto at = json.find("timestamp");
  if (at == json.end() || !at->is_number() || !(at->get<double>() >= 0) ||
      !(at->get<double>() <= kMaxTimestampMs)) {
    return "timestamp must be a number of milliseconds from 0 to 1e12";
  }
  call->at_s = at->get<double>() / 1e3;
  const auto input = Length(json, "input_length", 1);
  if (!input) return "input_length must be a whole number, 1 to 16777216";
  const auto output = Length(json, "output_length", 0);
  if (!output) return "output_length must be a whole number, 0 to 16777216";
  call->input_length = *input;
  call->output_length = std::max(1, *output);
  const auto ids = json.find("hash_ids");
  if (ids == json.end() || !ids->is_array()) return "hash_ids must be a list";
  for (const Json& id : *ids) {
    if (!id.is_number_integer()) return "hash_ids must hold whole numbers";
    call->hash_ids.push_back(id.is_number_unsigned()
                                 ? id.get<uint64_t>()
                                 : static_cast<uint64_t>(id.get<int64_t>()));
  }
  return "";
}

void AppendTokens(std::mt19937_64 random, int count, uint32_t vocab_size,
                  std::vector<uint32_t>* tokens) {
  std::uniform_int_distribution<uint32_t> token(0, vocab_size - 1);
  for (int i = 0; i < count; ++i) tokens->push_back(token(random));
}

absl::Status BadConversation(size_t index, const char* what) {
  return absl::InvalidArgumentError(
      absl::StrCat("conversation ", index, " (from 0) ", what));
}

// The string of member `key`, or null.
const std::string* Text(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto member = object.find(key);
  if (member == object.end()) return nullptr;
  return member->get_ptr<const std::string*>();
}

absl::Status AppendExchanges(const Json& conversation, size_t index,
                             int most_turns, std::vector<Exchange>* exchanges) {
  if (!conversation.is_object()) return BadConversation(index, "is no object");
  const auto turns = conversation.find("conversations");
  if (turns == conversation.end() || !turns->is_array()) {
    return BadConversation(index, "has no list 'conversations'");
  }
  std::string before;
  bool asked = false;
  int num_turns = 0;
  for (const Json& turn : *turns) {
    const std::string* from = Text(turn, "from");
    const std::string* value = Text(turn, "value");
    if (from == nullptr || value == nullptr) {
      return BadConversation(index, "has a turn without 'from' or 'value'");
    }
    if (asked && (*from == "gpt" || *from == "chatgpt")) {
      if (num_turns++ == most_turns) break;
      exchanges->push_back({.prompt = before, .answer = *value});
    }
    asked = *from == "human" || *from == "user";
    if (!before.empty()) before += "\n\n";
    before += *value;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<MooncakeCall>> ParseMooncake(std::string_view text) {
  std::vector<MooncakeCall> calls;
  int number = 0;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    if (line.find_first_not_of(" \t\r") == absl::string_view::npos) continue;
    MooncakeCall call;
    const std::string wrong = ParseLine(line, &call);
    if (!wrong.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", wrong));
    }
    calls.push_back(std::move(call));
  }
  if (calls.empty()) return absl::InvalidArgumentError("holds no call");
  std::stable_sort(
      calls.begin(), calls.end(),
      [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
  const double begin_s = calls.front().at_s;
  for (MooncakeCall& call : calls) call.at_s -= begin_s;
  return calls;
}

std::vector<uint32_t> MooncakePrompt(const MooncakeCall& call, int length,
                                     int block_tokens, uint32_t vocab_size,
                                     uint64_t seed, uint64_t own_seed) {
  std::vector<uint32_t> tokens;
  for (const uint64_t id : call.hash_ids) {
    const int rest = length - static_cast<int>(tokens.size());
    if (rest == 0) break;
    std::seed_seq mixed = {seed, seed >> 32, id, id >> 32};
    AppendTokens(std::mt19937_64(mixed), std::min(rest, block_tokens),
                 vocab_size, &tokens);
  }
  AppendTokens(std::mt19937_64(own_seed),
               length - static_cast<int>(tokens.size()), vocab_size, &tokens);
  return tokens;
}

absl::StatusOr<std::vector<Exchange>> ParseShareGpt(std::string_view text,
                                                    int most_turns) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) {
    return absl::InvalidArgumentError("is no JSON list of conversations");
  }
  std::vector<Exchange> exchanges;
  for (size_t i = 0; i < json.size(); ++i) {
    STRATA_RETURN_IF_ERROR(AppendExchanges(json[i], i, most_turns, &exchanges));
  }
  if (exchanges.empty()) {
    return absl::InvalidArgumentError("holds no answer to a human");
  }
  return exchanges;
}

}  // namespace strata
