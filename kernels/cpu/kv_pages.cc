#include "kernels/cpu/kv_pages.h"

#include <sys/mman.h>

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kernels/bf16.h"

namespace strata::cpu {
namespace {

constexpr int64_t kSlackBytes = 64;

int64_t ElementBytes(KvType type) { return type == KvType::kF32 ? 4 : 2; }

}  // namespace

int64_t KvPages::PageBytes(const KvLayout& layout, KvType type) {
  return int64_t{2} * layout.kv_heads * layout.page_tokens * layout.head_dim *
         ElementBytes(type);
}

absl::StatusOr<std::unique_ptr<KvPages>> KvPages::Create(const KvLayout& layout,
                                                         KvType type) {
  const int tokens = layout.page_tokens;
  STRATA_CHECK(tokens >= 4 && tokens <= 128 && (tokens & (tokens - 1)) == 0);
  STRATA_CHECK(layout.num_pages > 0 && layout.kv_heads > 0);
  STRATA_CHECK(layout.head_dim > 0 && layout.head_dim % 2 == 0);
  int64_t num_bytes = 0;
  const bool overflow =
      __builtin_mul_overflow(layout.num_pages, PageBytes(layout, type),
                             &num_bytes) ||
      __builtin_add_overflow(num_bytes, kSlackBytes, &num_bytes);
  // Anonymous memory is zero and gets real when it is first written.
  void* data = overflow ? MAP_FAILED
                        : mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no memory for ", layout.num_pages, " KV pages of ",
        PageBytes(layout, type), " bytes, ",
        static_cast<double>(layout.num_pages) * PageBytes(layout, type),
        " bytes in all"));
  }
  // Fewer misses of the address cache; only advice, so its failure is none.
  (void)madvise(data, num_bytes, MADV_HUGEPAGE);
  return std::unique_ptr<KvPages>(
      new KvPages(layout, type, static_cast<std::byte*>(data), num_bytes));
}

KvPages::KvPages(const KvLayout& layout, KvType type, std::byte* data,
                 size_t mapped_bytes)
    : layout_(layout),
      type_(type),
      page_bytes_(PageBytes(layout, type)),
      head_bytes_(page_bytes_ / layout.kv_heads),
      tile_bytes_(ElementBytes(type) * tile_tokens() * layout.head_dim),
      data_(data),
      mapped_bytes_(mapped_bytes) {}

KvPages::~KvPages() { munmap(data_, mapped_bytes_); }

void KvPages::Store(int32_t page, int kv_head, int offset, const float* k,
                    const float* v) {
  const int tile_size = tile_tokens(), head_dim = layout_.head_dim,
            t = offset % tile_size;
  std::byte* tile =
      const_cast<std::byte*>(Tile(page, kv_head, offset / tile_size));
  if (type_ == KvType::kF32) {
    auto* keys = reinterpret_cast<float*>(tile);
    auto* values = reinterpret_cast<float*>(tile + tile_bytes_);
    for (int d = 0; d < head_dim; ++d) keys[d * tile_size + t] = k[d];
    std::memcpy(values + t * head_dim, v, head_dim * sizeof(float));
    return;
  }
  auto* keys = reinterpret_cast<uint32_t*>(tile);
  auto* values = reinterpret_cast<Bf16*>(tile + tile_bytes_);
  for (int i = 0; i < head_dim / 2; ++i) {
    const auto low = static_cast<uint16_t>(ToBf16(k[2 * i]));
    const auto high = static_cast<uint16_t>(ToBf16(k[2 * i + 1]));
    keys[i * tile_size + t] = low | uint32_t{high} << 16;
  }
  for (int d = 0; d < head_dim; ++d) values[t * head_dim + d] = ToBf16(v[d]);
}

}  // namespace strata::cpu
