#ifndef KERNELS_CPU_KV_PAGES_H_
#define KERNELS_CPU_KV_PAGES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace strata::cpu {

enum class KvType : uint8_t {
  kF32,
  kBF16,  // rounded when stored
};

// The page slab.  Its layout, chosen so that the lanes of a vector are keys (no
// sums across lanes) and one head's K and V of 16 positions are one run of
// memory:
//
//   page = [kv_heads][page_tokens / T] tiles, T = min(page_tokens, 16)
//   tile = K, then V [T][head_dim]
//   K    = f32: [head_dim][T];  bf16: [head_dim / 2][T][2], two neighbouring
//   dimensions together
//
// Zero when created.  Threads may write different positions and read others at
// the same time.
class KvPages {
 public:
  static constexpr int kTileTokens = 16;

  // RESOURCE_EXHAUSTED if the memory is not there.
  // REQUIRES: a valid layout (see KvLayout), num_pages > 0.
  static absl::StatusOr<std::unique_ptr<KvPages>> Create(const KvLayout& layout,
                                                         KvType type);
  ~KvPages();
  KvPages(const KvPages&) = delete;
  KvPages& operator=(const KvPages&) = delete;

  // 2 * kv_heads * page_tokens * head_dim elements.
  static int64_t PageBytes(const KvLayout& layout, KvType type);

  const KvLayout& layout() const { return layout_; }
  KvType type() const { return type_; }
  // T above.
  int tile_tokens() const { return std::min(layout_.page_tokens, kTileTokens); }
  // Bytes of K, and of V, of a tile.
  int64_t tile_bytes() const { return tile_bytes_; }

  // The tile with the page's positions [tile * T, (tile + 1) * T): K here, V at
  // + tile_bytes(). 64 bytes behind any V are readable.
  const std::byte* Tile(int32_t page, int kv_head, int tile) const {
    return data_ + page * page_bytes_ + kv_head * head_bytes_ +
           tile * 2 * tile_bytes_;
  }

  // Writes position `offset` of the page.
  void Store(int32_t page, int kv_head, int offset,
             const float* k /*[head_dim]*/, const float* v /*[head_dim]*/);

 private:
  KvPages(const KvLayout& layout, KvType type, std::byte* data,
          size_t mapped_bytes);

  const KvLayout layout_;
  const KvType type_;
  const int64_t page_bytes_;
  const int64_t head_bytes_;  // of one head in a page
  const int64_t tile_bytes_;
  std::byte* const data_;  // mapped
  const size_t mapped_bytes_;
};

}  // namespace strata::cpu

#endif  // KERNELS_CPU_KV_PAGES_H_
