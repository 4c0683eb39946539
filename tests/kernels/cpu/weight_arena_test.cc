#include "kernels/cpu/weight_arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace strata::cpu {
namespace {

TEST(WeightArenaTest, GivesZeroedPartsThatDoNotOverlap) {
  WeightArena arena;
  std::vector<std::shared_ptr<std::byte>> parts;
  // The last ones do not fit into the first block.
  const std::vector<int64_t> sizes = {1,        64,       65,       4097,
                                      40 << 20, 30 << 20, 80 << 20, 5};
  for (size_t i = 0; i < sizes.size(); ++i) {
    parts.push_back(arena.Allocate(sizes[i]));
    std::byte* part = parts.back().get();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(part) % 64, 0u);
    EXPECT_EQ(part[0], std::byte{0});
    EXPECT_EQ(part[sizes[i] - 1], std::byte{0});
    part[0] = part[sizes[i] - 1] = static_cast<std::byte>(i + 1);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(parts[i].get()[0], static_cast<std::byte>(i + 1));
    EXPECT_EQ(parts[i].get()[sizes[i] - 1], static_cast<std::byte>(i + 1));
  }
}

TEST(WeightArenaTest, PartsOutliveTheArena) {
  std::shared_ptr<std::byte> part;
  {
    WeightArena arena;
    part = arena.Allocate(100);
    arena.Allocate(100);
  }
  std::memset(part.get(), 1, 100);
  EXPECT_EQ(part.get()[99], std::byte{1});
}

TEST(AlignedBufferTest, LargeOnesStartAtAHugePage) {
  for (const int64_t bytes : {int64_t{2} << 20, (int64_t{5} << 20) + 1}) {
    const AlignedBuffer buffer(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (2 << 20), 0u);
    buffer.data()[bytes - 1] = std::byte{1};
  }
}

TEST(AlignedBufferTest, ReserveGrowsOnly) {
  AlignedBuffer buffer;
  EXPECT_EQ(buffer.data(), nullptr);
  buffer.Reserve(100);
  buffer.floats()[24] = 3.0f;
  const std::byte* before = buffer.data();
  buffer.Reserve(50);
  EXPECT_EQ(buffer.data(), before);
  EXPECT_EQ(buffer.floats()[24], 3.0f);
  buffer.Reserve(1 << 22);
  EXPECT_EQ(buffer.size(), 1 << 22);
  EXPECT_EQ(buffer.floats()[24], 0.0f);
}

}  // namespace
}  // namespace strata::cpu
