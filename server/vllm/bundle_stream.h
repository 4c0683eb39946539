#ifndef SERVER_VLLM_BUNDLE_STREAM_H_
#define SERVER_VLLM_BUNDLE_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "server/vllm/proto/common.pb.h"
#include "server/vllm/tokenizer_bundle.h"

namespace strata::vllm {

// One GetTokenizer call: sends a bundle piece by piece.  Deletes itself.
class BundleStream final
    : public grpc::ServerWriteReactor<smg::grpc::common::GetTokenizerChunk> {
 public:
  explicit BundleStream(std::shared_ptr<const TokenizerBundle> bundle)
      : bundle_(std::move(bundle)) {
    WriteNext();
  }

 private:
  static constexpr size_t kChunkBytes = 64 << 10;

  void WriteNext() {
    const size_t count = std::min(kChunkBytes, bundle_->zip.size() - sent_);
    chunk_.set_data(bundle_->zip.substr(sent_, count));
    sent_ += count;
    if (sent_ == bundle_->zip.size()) chunk_.set_sha256(bundle_->sha256);
    StartWrite(&chunk_);
  }
  void OnWriteDone(bool ok) override {
    if (ok && sent_ < bundle_->zip.size()) {
      WriteNext();
    } else {
      Finish(ok ? grpc::Status::OK : grpc::Status::CANCELLED);
    }
  }
  void OnDone() override { delete this; }

  const std::shared_ptr<const TokenizerBundle> bundle_;
  size_t sent_ = 0;  // bytes
  smg::grpc::common::GetTokenizerChunk chunk_;
};

}  // namespace strata::vllm

#endif  // SERVER_VLLM_BUNDLE_STREAM_H_
