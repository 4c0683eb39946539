#include "kernels/philox.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace strata {
namespace {

std::vector<uint32_t> Words(const PhiloxWords& counter, uint32_t key0,
                            uint32_t key1) {
  const PhiloxWords words = Philox(counter, key0, key1);
  return {words.word, words.word + 4};
}

// The known answers that Random123 publishes for philox4x32 with 10 rounds.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(
      Words({{0, 0, 0, 0}}, 0, 0),
      (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      Words({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, 0xffffffff,
            0xffffffff),
      (std::vector<uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      Words({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822,
            0x299f31d0),
      (std::vector<uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// By the words above: the upper 52 bits of the first two, and half a step.
TEST(PhiloxTest, UniformOfTheFirstWords) {
  EXPECT_EQ(SampleUniform(0, 0, 0), (0x6627e8d5e169cp0 + 0.5) * 0x1p-52);
}

TEST(PhiloxTest, UniformDependsOnEachArgument) {
  std::set<double> uniforms;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
    for (uint32_t index = 0; index < 2; ++index) {
      for (uint32_t position = 0; position < 2; ++position) {
        uniforms.insert(SampleUniform(seed, index, position));
      }
    }
  }
  EXPECT_EQ(uniforms.size(), 12u);
}

}  // namespace
}  // namespace strata
