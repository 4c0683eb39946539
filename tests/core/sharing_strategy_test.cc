#include "core/sharing_strategy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace strata {
namespace {

using Map = std::vector<int32_t>;

SharingStrategy Parsed(const std::string& spec, int num_layers) {
  auto strategy = SharingStrategy::Parse(spec, num_layers);
  EXPECT_TRUE(strategy.ok()) << spec << ": " << strategy.status();
  return strategy.ok() ? *strategy : SharingStrategy::Full(num_layers);
}

Map MapOf(const SharingStrategy& strategy) {
  return {strategy.sources().begin(), strategy.sources().end()};
}

Map MapOf(const std::string& spec, int num_layers) {
  return MapOf(Parsed(spec, num_layers));
}

// Straight from the definition: the largest leader that is not above `layer`.
Map NearestLeaders(int num_layers, const std::function<bool(int)>& leads) {
  Map map(num_layers);
  for (int layer = 0; layer < num_layers; ++layer) {
    int source = layer;
    while (!leads(source)) --source;
    map[layer] = source;
  }
  return map;
}

// The two rules of a valid map; nothing if both hold.
bool IsValid(const Map& map) {
  for (int layer = 0; layer < static_cast<int>(map.size()); ++layer) {
    if (map[layer] < 0 || map[layer] > layer) return false;
    if (map[map[layer]] != map[layer]) return false;
  }
  return true;
}

// Contract: semantics 2, by trying every text in the order of preference.
std::string WantCanonical(const Map& map) {
  const int num_layers = static_cast<int>(map.size());
  const auto every = [](int n) { return [n](int l) { return l % n == 0; }; };
  const auto prefix = [](int k) { return [k](int l) { return l < k; }; };
  const auto same = [&](int l) { return map[l] == l; };
  if (map == NearestLeaders(num_layers, every(1))) return "full";
  for (int n = 2; n <= num_layers; ++n) {
    if (map == NearestLeaders(num_layers, every(n))) {
      return absl::StrCat("every=", n);
    }
  }
  for (int k = 1; k <= num_layers; ++k) {
    if (map == NearestLeaders(num_layers, prefix(k))) {
      return absl::StrCat("prefix=", k);
    }
  }
  if (map == NearestLeaders(num_layers, same)) {
    Map leaders;
    for (int l = 0; l < num_layers; ++l) {
      if (same(l)) leaders.push_back(l);
    }
    return absl::StrCat("leaders=", absl::StrJoin(leaders, ","));
  }
  return absl::StrCat("sources=", absl::StrJoin(map, ","));
}

TEST(SharingStrategyTest, FormsGiveTheirMaps) {
  EXPECT_EQ(MapOf("full", 4), (Map{0, 1, 2, 3}));
  EXPECT_EQ(MapOf("every=1", 4), (Map{0, 1, 2, 3}));
  EXPECT_EQ(MapOf("every=2", 5), (Map{0, 0, 2, 2, 4}));
  EXPECT_EQ(MapOf("every=3", 7), (Map{0, 0, 0, 3, 3, 3, 6}));
  EXPECT_EQ(MapOf("prefix=3", 5), (Map{0, 1, 2, 2, 2}));
  EXPECT_EQ(MapOf("leaders=0,1,4", 6), (Map{0, 1, 1, 1, 4, 4}));
  EXPECT_EQ(MapOf("sources=0,0,2,0,2", 5), (Map{0, 0, 2, 0, 2}));
  // 30 * 0.25 = 7.5: eight leaders, at floor(i * 30 / 8).
  EXPECT_EQ(Parsed("keep=0.25", 30).canonical(),
            "leaders=0,3,7,11,15,18,22,26");
  EXPECT_EQ(Parsed("keep=0.5", 30).canonical(), "every=2");
}

TEST(SharingStrategyTest, LargeNumbersMeanOneLeaderOrAll) {
  for (const char* n : {"5", "6", "99", "4294967295"}) {
    EXPECT_EQ(Parsed(absl::StrCat("every=", n), 5).canonical(), "every=5");
    EXPECT_EQ(Parsed(absl::StrCat("prefix=", n), 5).canonical(), "full");
  }
}

TEST(SharingStrategyTest, KeepTakesWhatOneWouldWrite) {
  for (const char* r : {"0.5", ".5", "0.50", "00.5"}) {
    EXPECT_EQ(Parsed(absl::StrCat("keep=", r), 4).canonical(), "every=2") << r;
  }
  for (const char* r : {"1", "1.0", "1.", "0.99"}) {
    EXPECT_EQ(Parsed(absl::StrCat("keep=", r), 4).canonical(), "full") << r;
  }
  // However little is kept, layer 0 leads.
  EXPECT_EQ(Parsed("keep=0.000000000001", 4).canonical(), "every=4");
}

TEST(SharingStrategyTest, KeepRoundsUpButForgivesTheLastBit) {
  // 0.07 * 100 is 7.000000000000001 in floating point.
  EXPECT_EQ(Parsed("keep=0.07", 100).num_leaders(), 7);
  for (int num_layers = 1; num_layers <= 64; ++num_layers) {
    for (int i = 1; i <= 100; ++i) {
      const int want = (i * num_layers + 99) / 100;  // ceil, in integers
      const auto leads = [&](int layer) {
        for (int j = 0; j < want; ++j) {
          if (j * num_layers / want == layer) return true;
        }
        return false;
      };
      const std::string spec =
          absl::StrCat("keep=", i / 100, ".", i % 100 / 10, i % 10);
      ASSERT_EQ(MapOf(spec, num_layers), NearestLeaders(num_layers, leads))
          << spec << " of " << num_layers;
    }
  }
}

TEST(SharingStrategyTest, OneLayerIsFull) {
  for (const char* spec : {"full", "every=1", "every=7", "keep=0.1", "prefix=1",
                           "leaders=0", "sources=0"}) {
    const SharingStrategy strategy = Parsed(spec, 1);
    EXPECT_EQ(strategy.canonical(), "full") << spec;
    EXPECT_EQ(strategy.num_leaders(), 1);
  }
}

struct Refusal {
  const char* spec;
  const char* says;  // part of the message
};

class RefusedTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedTest, SaysWhy) {
  const auto strategy = SharingStrategy::Parse(GetParam().spec, 6);
  ASSERT_FALSE(strategy.ok()) << strategy->canonical();
  EXPECT_EQ(strategy.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(strategy.status().message(), GetParam().says))
      << strategy.status();
}

INSTANTIATE_TEST_SUITE_P(Forms, RefusedTest,
                         ::testing::Values(Refusal{"", "allowed are"},
                                           Refusal{"Full", "allowed are"},
                                           Refusal{"FULL", "allowed are"},
                                           Refusal{" full", "allowed are"},
                                           Refusal{"full ", "allowed are"},
                                           Refusal{"full=1", "allowed are"},
                                           Refusal{"half", "allowed are"},
                                           Refusal{"EVERY=2", "allowed are"},
                                           Refusal{"every", "allowed are"},
                                           Refusal{"=", "allowed are"},
                                           Refusal{"every =2", "allowed are"}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, RefusedTest,
    ::testing::Values(
        Refusal{"every=", "from 1"}, Refusal{"every=0", "from 1"},
        Refusal{"every=4294967296", "4294967295"},
        Refusal{"every=99999999999999999999999", "4294967295"},
        Refusal{"every=-1", "from 1"}, Refusal{"every=+2", "from 1"},
        Refusal{"every= 2", "from 1"}, Refusal{"every=2 ", "from 1"},
        Refusal{"every=2,", "from 1"}, Refusal{"every=2.0", "from 1"},
        Refusal{"every=0x2", "from 1"}, Refusal{"every=2\n", "from 1"},
        Refusal{"prefix=0", "prefix= takes"},
        Refusal{"prefix=4294967296", "prefix= takes"},
        Refusal{"prefix=", "prefix= takes"}));

INSTANTIATE_TEST_SUITE_P(
    Ratios, RefusedTest,
    ::testing::Values(
        Refusal{"keep=", "keep= takes"}, Refusal{"keep=0", "above 0"},
        Refusal{"keep=0.0", "above 0"}, Refusal{"keep=1.01", "up to 1"},
        Refusal{"keep=1.0000001", "up to 1"}, Refusal{"keep=.", "decimal"},
        Refusal{"keep=-0.5", "decimal"}, Refusal{"keep=+0.5", "decimal"},
        Refusal{"keep=nan", "decimal"}, Refusal{"keep=inf", "decimal"},
        Refusal{"keep=-nan", "decimal"}, Refusal{"keep=0x1p-1", "decimal"},
        Refusal{"keep=1e-1", "decimal"}, Refusal{"keep= 0.5", "decimal"},
        Refusal{"keep=0.5 ", "decimal"}, Refusal{"keep=0,5", "decimal"},
        Refusal{"keep=0.5.1", "decimal"}, Refusal{"keep=50%", "decimal"}));

INSTANTIATE_TEST_SUITE_P(
    Leaders, RefusedTest,
    ::testing::Values(Refusal{"leaders=", "not the number of a layer: \"\""},
                      Refusal{"leaders=1,2", "layer 1 comes first"},
                      Refusal{"leaders=0,3,2", "layer 2 comes after layer 3"},
                      Refusal{"leaders=0,3,3", "layer 3 comes after layer 3"},
                      Refusal{"leaders=0,0", "layer 0 comes after layer 0"},
                      Refusal{"leaders=0,6", "layer 6 is not one of 0 to 5"},
                      Refusal{"leaders=0,4294967296", "number of a layer"},
                      Refusal{"leaders=0,2,", "number of a layer"},
                      Refusal{"leaders=,0", "number of a layer"},
                      Refusal{"leaders=0,,2", "number of a layer"},
                      Refusal{"leaders=0, 2", "number of a layer: \" 2\""},
                      Refusal{"leaders=0,-2", "number of a layer"}));

INSTANTIATE_TEST_SUITE_P(
    Sources, RefusedTest,
    ::testing::Values(
        Refusal{"sources=", "layer 0 reads"},
        Refusal{"sources=0,0,0,0,0", "layer 5 has no source"},
        Refusal{"sources=0,0,0,0,0,0,0", "layer 6 is not one of 0 to 5"},
        Refusal{"sources=0,0,0,0,0,", "layer 5 reads"},
        Refusal{"sources=0,0,3,0,0,0", "layer 2 reads layer 3"},
        Refusal{"sources=0,0,1,0,0,0", "layer 2 reads layer 1, which keeps no"},
        Refusal{"sources=1,1,1,1,1,1", "layer 0 reads layer 1"},
        Refusal{"sources=0,0,0,x,0,0", "layer 3 reads"},
        Refusal{"sources=0,4294967296,0,0,0,0", "layer 1 reads"}));

TEST(SharingStrategyTest, MessagesAreShortAndPrintable) {
  std::string long_list = "leaders=0";
  for (int i = 1; i < 100000; ++i) absl::StrAppend(&long_list, ",", i);
  const std::string binary(1 << 16, '\xff');
  for (const std::string& spec :
       {long_list, binary, "every=" + binary, "keep=" + binary,
        "leaders=0," + binary, "sources=0," + binary}) {
    const auto strategy = SharingStrategy::Parse(spec, 6);
    ASSERT_FALSE(strategy.ok());
    const std::string message(strategy.status().message());
    EXPECT_LE(message.size(), 512u);
    for (const char c : message) {
      ASSERT_TRUE(c >= ' ' && c <= '~') << message;
    }
  }
}

// All maps of up to 8 layers (4,140 of them): canonical form, round trip and
// what is answered about each.
TEST(SharingStrategyTest, EveryValidMapOfFewLayers) {
  for (int num_layers = 1; num_layers <= 8; ++num_layers) {
    std::vector<Map> maps = {{}};
    for (int layer = 0; layer < num_layers; ++layer) {
      std::vector<Map> longer;
      for (const Map& map : maps) {
        for (int source = 0; source <= layer; ++source) {
          longer.push_back(map);
          longer.back().push_back(source);
          if (!IsValid(longer.back())) longer.pop_back();
        }
      }
      maps = longer;
    }
    for (const Map& map : maps) {
      const SharingStrategy strategy =
          Parsed(absl::StrCat("sources=", absl::StrJoin(map, ",")), num_layers);
      ASSERT_EQ(MapOf(strategy), map);
      ASSERT_EQ(strategy.canonical(), WantCanonical(map));
      const SharingStrategy again = Parsed(strategy.canonical(), num_layers);
      ASSERT_TRUE(again == strategy);
      ASSERT_EQ(again.canonical(), strategy.canonical());
      int num_leaders = 0;
      for (int layer = 0; layer < num_layers; ++layer) {
        ASSERT_EQ(strategy.is_leader(layer), map[layer] == layer);
        if (map[layer] == layer) {
          ASSERT_EQ(strategy.slot(layer), num_leaders++);
          if (layer <= strategy.last_leader()) continue;
          FAIL() << "layer " << layer << " leads after the last leader";
        }
        ASSERT_EQ(strategy.slot(layer), strategy.slot(map[layer]));
      }
      ASSERT_TRUE(strategy.is_leader(strategy.last_leader()));
      ASSERT_EQ(strategy.num_leaders(), num_leaders);
      ASSERT_EQ(strategy.KvBytesPerToken(1000), num_leaders * 1000);
    }
  }
}

// All lists of numbers in [0, layers], valid or not.
TEST(SharingStrategyTest, SourcesAreAcceptedIfAndOnlyIfValid) {
  for (int num_layers = 1; num_layers <= 5; ++num_layers) {
    Map map(num_layers);
    for (bool done = false; !done;) {
      const std::string spec =
          absl::StrCat("sources=", absl::StrJoin(map, ","));
      ASSERT_EQ(SharingStrategy::Parse(spec, num_layers).ok(), IsValid(map))
          << spec;
      int at = 0;
      while (at < num_layers && map[at] == num_layers) map[at++] = 0;
      done = at == num_layers;
      if (!done) ++map[at];
    }
  }
}

TEST(SharingStrategyTest, RandomMapsOfManyLayersRoundTrip) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    const int num_layers = 1 + random() % 80;
    Map map, leaders;
    for (int layer = 0; layer < num_layers; ++layer) {
      if (layer == 0 || random() % 3 == 0) leaders.push_back(layer);
      const bool leads = leaders.back() == layer;
      const bool nearest = round % 2 == 0;
      map.push_back(leads || nearest ? leaders.back()
                                     : leaders[random() % leaders.size()]);
    }
    const SharingStrategy strategy =
        Parsed(absl::StrCat("sources=", absl::StrJoin(map, ",")), num_layers);
    ASSERT_EQ(strategy.canonical(), WantCanonical(map)) << "round " << round;
    ASSERT_TRUE(Parsed(strategy.canonical(), num_layers) == strategy);
  }
}

TEST(SharingStrategyTest, LeadersSubset) {
  const SharingStrategy full = SharingStrategy::Full(8);
  const SharingStrategy half = Parsed("every=2", 8);
  const SharingStrategy quarter = Parsed("every=4", 8);
  const SharingStrategy third = Parsed("every=3", 8);
  EXPECT_TRUE(half.LeadersSubsetOf(full));
  EXPECT_TRUE(quarter.LeadersSubsetOf(half));
  EXPECT_TRUE(half.LeadersSubsetOf(half));
  EXPECT_FALSE(full.LeadersSubsetOf(half));
  EXPECT_FALSE(third.LeadersSubsetOf(half));
  // Leaders count, not who reads them.
  EXPECT_TRUE(Parsed("sources=0,0,2,0,0,0,0,0", 8).LeadersSubsetOf(half));
}

TEST(SharingStrategyTest, EqualityIsThatOfMaps) {
  EXPECT_TRUE(Parsed("every=2", 4) == Parsed("leaders=0,2", 4));
  EXPECT_FALSE(Parsed("every=2", 4) == Parsed("every=4", 4));
  EXPECT_FALSE(SharingStrategy::Full(4) == SharingStrategy::Full(5));
}

}  // namespace
}  // namespace strata
