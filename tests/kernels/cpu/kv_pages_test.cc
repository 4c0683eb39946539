#include "kernels/cpu/kv_pages.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/bf16.h"

namespace strata::cpu {
namespace {

TEST(KvPagesTest, BytesOfAPage) {
  const KvLayout layout = {
      .num_pages = 1, .page_tokens = 8, .kv_heads = 3, .head_dim = 50};
  EXPECT_EQ(KvPages::PageBytes(layout, KvType::kF32), 2 * 3 * 8 * 50 * 4);
  EXPECT_EQ(KvPages::PageBytes(layout, KvType::kBF16), 2 * 3 * 8 * 50 * 2);
}

TEST(KvPagesTest, MemoryThatIsNotThere) {
  for (const int64_t num_pages : {int64_t{1} << 36, int64_t{1} << 60}) {
    const auto pages = KvPages::Create({.num_pages = num_pages,
                                        .page_tokens = 128,
                                        .kv_heads = 8,
                                        .head_dim = 128},
                                       KvType::kF32);
    ASSERT_EQ(pages.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(pages.status().message().find("1048576 bytes"), std::string::npos)
        << pages.status();
  }
}

// Each element is where the layout says and nothing else changes.
TEST(KvPagesTest, StoreWritesOnePosition) {
  for (const KvType type : {KvType::kF32, KvType::kBF16}) {
    for (const int tokens : {4, 16, 64}) {
      constexpr int kHeadDim = 6, kHeads = 2;
      const auto created = KvPages::Create({.num_pages = 3,
                                            .page_tokens = tokens,
                                            .kv_heads = kHeads,
                                            .head_dim = kHeadDim},
                                           type);
      ASSERT_TRUE(created.ok());
      KvPages& pages = **created;
      const int offset = tokens - 3, tile_size = pages.tile_tokens(),
                t = offset % tile_size;
      const std::vector<float> k = {1, 2, 3, 4, 5, 6.001f},
                               v = {-1, -2, -3, -4, -5, -6};
      pages.Store(2, 1, offset, k.data(), v.data());
      double sum = 0.0;
      const auto element = [&](const std::byte* tile, int i) {
        if (type == KvType::kF32)
          return reinterpret_cast<const float*>(tile)[i];
        return ToFloat(reinterpret_cast<const Bf16*>(tile)[i]);
      };
      for (int page = 0; page < 3; ++page) {
        for (int h = 0; h < kHeads; ++h) {
          for (int tile = 0; tile < tokens / tile_size; ++tile) {
            for (int i = 0; i < 2 * tile_size * kHeadDim; ++i) {
              sum += std::abs(element(pages.Tile(page, h, tile), i));
            }
          }
        }
      }
      EXPECT_NEAR(sum, 42.0, 0.01);
      const std::byte* tile = pages.Tile(2, 1, offset / tile_size);
      for (int d = 0; d < kHeadDim; ++d) {
        const int at = type == KvType::kF32
                           ? d * tile_size + t
                           : (d / 2 * tile_size + t) * 2 + d % 2;
        EXPECT_EQ(element(tile, at),
                  type == KvType::kF32 ? k[d] : ToFloat(ToBf16(k[d])));
        EXPECT_EQ(element(tile + pages.tile_bytes(), t * kHeadDim + d), v[d]);
      }
    }
  }
}

}  // namespace
}  // namespace strata::cpu
