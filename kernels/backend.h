#ifndef KERNELS_BACKEND_H_
#define KERNELS_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/ops.h"

namespace strata {

// The page slab: pages of K and V of one leader layer for page_tokens
// consecutive positions of one sequence. Their inner layout and element type
// are the backend's own.
struct KvLayout {
  int64_t num_pages = 0;
  int page_tokens = 0;  // a power of two in [4, 128]
  int kv_heads = 0;
  int head_dim = 0;  // even
};

// A device: its memory, the page slab and the operations of kernels/ops.h.
// Knows no layers, requests or files.
//
// Operations are queued in order; Submit starts them as one step, Wait ends it.
// What Args point to must live until Submit returns, but for SampleArgs::out:
// until Wait.  Steps run one after another, so that each reads what the one
// before has written.  Every operation gives the same bits for a row whatever
// other rows are in the step.
//
// Not thread-safe: one thread calls it (the engine's).
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;    // "cpu", "cuda"
  virtual std::string device() const = 0;  // what computes, in words
  virtual std::string kv_format()
      const = 0;  // "f32", "bf16", "fp8": elements of the pages

  // Bytes that can still be allocated.  An error: they cannot be told.
  virtual absl::StatusOr<int64_t> FreeBytes() const = 0;

  // Bytes that Pack of such a view takes; view.data does not count.
  // UNIMPLEMENTED: the backend has no product with such a matrix.
  virtual absl::StatusOr<int64_t> PackedBytes(const WeightView& view) const = 0;
  // Bytes that the table of an Embed takes, likewise.
  virtual absl::StatusOr<int64_t> TableBytes(const WeightView& table) const {
    return PackedBytes(table);
  }
  // Packs weights into the backend's layout; `view` may go when it returns.
  // Memory that is not there shows in the next Wait.
  // REQUIRES: PackedBytes of it; view.data is readable for view.NumBytes().
  virtual std::unique_ptr<Matrix> Pack(const WeightView& view) = 0;

  // `count` floats in backend memory, zeroed, owned by the backend and alive as
  // long as it is.
  virtual float* NewFloats(int64_t count) = 0;
  // NewFloats holding `view` converted to f32, in the order of view.StoredRow.
  virtual float* NewFloats(const WeightView& view) = 0;

  // Allocates what Submit would need for intermediate results of all that is
  // queued, and drops the queue: steps that are no larger find it there.
  // Returns the bytes held for steps: these and all of NewFloats(count).
  // RESOURCE_EXHAUSTED if the memory is not there; UNIMPLEMENTED: the backend
  // has no attention for such heads.
  // REQUIRES: before CreateKvPages, whose layout differs in num_pages alone.
  virtual absl::StatusOr<int64_t> Reserve(const KvLayout& layout) = 0;

  // Bytes of one page of `layout`: 2 * kv_heads * page_tokens * head_dim
  // elements, and their scales where they have some; whole tokens.
  virtual int64_t PageBytes(const KvLayout& layout) const = 0;
  // Allocates the slab; once.  RESOURCE_EXHAUSTED if the memory is not there.
  virtual absl::Status CreateKvPages(const KvLayout& layout) = 0;

  virtual void Embed(const EmbedArgs& args) = 0;
  virtual void Qkv(const QkvArgs& args) = 0;
  virtual void Attention(const AttentionArgs& args) = 0;
  virtual void Linear(const LinearArgs& args) = 0;
  virtual void GatedMlp(const GatedMlpArgs& args) = 0;
  virtual void Gather(const GatherArgs& args) = 0;
  virtual void Head(const HeadArgs& args) = 0;
  virtual void Sample(const SampleArgs& args) = 0;
  // Nothing for a backend that is no rank of others.
  virtual void AllReduce(const AllReduceArgs& args) = 0;

  // Starts what is queued.  An error (of the device) is permanent.
  // REQUIRES: fewer than max_in_flight() steps are not waited for.
  virtual absl::Status Submit() = 0;
  // Returns when the step submitted longest ago has ended; at once if there is
  // none.  An error is permanent.
  virtual absl::Status Wait() = 0;
  // Steps between Submit and Wait: 1 where Submit computes, 2 where a device
  // does and the host may prepare the next one meanwhile.
  virtual int max_in_flight() const { return 1; }
};

}  // namespace strata

#endif  // KERNELS_BACKEND_H_
