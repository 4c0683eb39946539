#include "tests/load/trace_maker.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "base/check.h"
#include "tests/load/arrivals.h"
#include "tests/load/lengths.h"
#include "tests/load/words.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBlockTokens = 512;

Lengths Of(const char* text) {
  absl::StatusOr<Lengths> lengths = Lengths::Parse(text);
  STRATA_CHECK(lengths.ok());
  return *lengths;
}

// Someone who comes back with ever longer prompts.
struct Session {
  std::vector<uint64_t> blocks;
  int calls_left = 0;
};

}  // namespace

std::string MakeMooncake(int num_calls, double rate_per_s, uint64_t seed) {
  std::mt19937_64 random(seed);
  // A session of n calls of mean 4 that begins with m tokens and adds a each
  // time has (m + 1.9 a) in the mean of its calls: 12,035 with these.
  const Lengths first = Of("lognormal:7600,9000");
  const Lengths added = Of("lognormal:2350,2600");
  const Lengths output = Of("lognormal:343,300");
  const std::vector<double> at = ArrivalTimes(num_calls, rate_per_s, 1, seed);
  uint64_t next_block = 1;  // block 0 is everybody's
  std::vector<Session> sessions;
  std::string text;
  for (int i = 0; i < num_calls; ++i) {
    // A session goes on as often as one begins anew, by their mean length.
    const bool goes_on =
        !sessions.empty() && std::bernoulli_distribution(0.75)(random);
    size_t chosen = sessions.size();
    if (goes_on) {
      chosen = std::uniform_int_distribution<size_t>(0, chosen - 1)(random);
    } else {
      sessions.push_back({.blocks = {0}});
      sessions.back().calls_left = Of("uniform:1-7").Draw(&random);
    }
    Session& session = sessions[chosen];
    int length = static_cast<int>(session.blocks.size()) * kBlockTokens;
    length += (goes_on ? added : first).Draw(&random);
    length = std::min(length, 128'000);
    // Whole blocks are shared with what comes later, the last part is not.
    while (static_cast<int>(session.blocks.size()) < length / kBlockTokens) {
      session.blocks.push_back(next_block++);
    }
    std::vector<uint64_t> ids = session.blocks;
    if (length % kBlockTokens > 0) ids.push_back(next_block++);
    const Json line = {{"timestamp", std::llround(at[i] * 1e3)},
                       {"input_length", length},
                       {"output_length", output.Draw(&random)},
                       {"hash_ids", ids}};
    text += line.dump() + "\n";
    if (--session.calls_left == 0) {
      std::swap(session, sessions.back());
      sessions.pop_back();
    }
  }
  return text;
}

std::string MakeShareGpt(int num_conversations, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Lengths said = Of("lognormal:161,160");
  const Lengths answered = Of("lognormal:338,240");
  const Lengths turns = Of("uniform:1-6");
  Json all = Json::array();
  for (int i = 0; i < num_conversations; ++i) {
    Json conversation = Json::array();
    for (int turn = turns.Draw(&random); turn > 0; --turn) {
      std::string question;
      AppendWords(said.Draw(&random), &random, &question);
      std::string answer;
      AppendWords(answered.Draw(&random), &random, &answer);
      conversation.push_back({{"from", "human"}, {"value", question}});
      conversation.push_back({{"from", "gpt"}, {"value", answer}});
    }
    all.push_back(
        {{"id", "made-" + std::to_string(i)}, {"conversations", conversation}});
  }
  return all.dump(1) + "\n";
}

}  // namespace strata
