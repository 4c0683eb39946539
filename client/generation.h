#ifndef CLIENT_GENERATION_H_
#define CLIENT_GENERATION_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/connection.h"
#include "proto/strata.pb.h"

namespace strata {

// How the words of the person become a prompt.
enum class PromptMode {
  kChatOrText,  // chat where the model has a template, else the text as it is
  kChat,
  kText,
};

// What one finished call came to.  Times are the client's own, from the start
// of the call.
struct GenerationResult {
  grpc::Status status;
  bool fell_back_to_text = false;  // kChatOrText, and there is no template
  // Of the samples, by index.
  std::vector<std::string> texts = {""};
  v1::Done done;             // of sample 0; unset where !status.ok()
  int64_t num_tokens = 0;    // received, of all samples
  double first_token_s = 0;  // 0 if there was none
  double last_token_s = 0;
  double seconds = 0;

  // Tokens after the first per second of the time they took; 0 for fewer
  // than 2.
  double DecodeTokensPerSecond() const;
};

// Runs Generate calls, one after another, and can be cancelled from outside.
//
// Run is for one thread; Cancel for any.
class Generator {
 public:
  // Sees each piece of sample 0's text as it comes.
  using TextSink = std::function<void(std::string_view)>;

  // Sends `request` over `connection` with `words` as its prompt (`system` too,
  // in a chat, if it is not empty).
  GenerationResult Run(const Connection& connection,
                       v1::GenerateRequest request, std::string_view words,
                       std::string_view system, PromptMode mode,
                       const TextSink& sink);

  // Ends the running call and all later ones with CANCELLED.
  void Cancel();

 private:
  GenerationResult RunOnce(const Connection& connection,
                           const v1::GenerateRequest& request,
                           const TextSink& sink);

  absl::Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  grpc::ClientContext* running_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace strata

#endif  // CLIENT_GENERATION_H_
