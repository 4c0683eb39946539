#include "client/generation.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace strata {
namespace {

void SetChat(std::string_view words, std::string_view system,
             v1::GenerateRequest* request) {
  v1::Chat* chat = request->mutable_chat();
  chat->Clear();
  if (!system.empty()) {
    v1::ChatMessage* message = chat->add_messages();
    message->set_role("system");
    message->set_content(std::string(system));
  }
  v1::ChatMessage* message = chat->add_messages();
  message->set_role("user");
  message->set_content(std::string(words));
}

void AddSample(v1::GenerateResponse* response, const Generator::TextSink& sink,
               GenerationResult* result) {
  const size_t index = response->index();
  if (index >= result->texts.size()) result->texts.resize(index + 1);
  result->texts[index] += response->text();
  if (index > 0) return;
  if (!response->text().empty()) sink(response->text());
  if (response->has_done()) result->done = std::move(*response->mutable_done());
}

}  // namespace

double GenerationResult::DecodeTokensPerSecond() const {
  const double decode_s = last_token_s - first_token_s;
  if (num_tokens < 2 || decode_s <= 0) return 0;
  return static_cast<double>(num_tokens - 1) / decode_s;
}

GenerationResult Generator::Run(const Connection& connection,
                                v1::GenerateRequest request,
                                std::string_view words, std::string_view system,
                                PromptMode mode, const TextSink& sink) {
  if (mode == PromptMode::kText) {
    request.set_text(std::string(words));
    return RunOnce(connection, request, sink);
  }
  SetChat(words, system, &request);
  GenerationResult result = RunOnce(connection, request, sink);
  const bool no_template =
      result.status.error_code() == grpc::StatusCode::FAILED_PRECONDITION;
  if (mode == PromptMode::kChat || !no_template) return result;
  request.set_text(std::string(words));
  result = RunOnce(connection, request, sink);
  result.fell_back_to_text = true;
  return result;
}

void Generator::Cancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
  if (running_ != nullptr) running_->TryCancel();
}

GenerationResult Generator::RunOnce(const Connection& connection,
                                    const v1::GenerateRequest& request,
                                    const TextSink& sink) {
  GenerationResult result;
  grpc::ClientContext context;
  connection.Authorize(&context);
  {
    absl::MutexLock lock(&mu_);
    running_ = &context;
    if (cancelled_) context.TryCancel();
  }
  const absl::Time start = absl::Now();
  auto reader = connection.stub()->Generate(&context, request);
  v1::GenerateResponse response;
  while (reader->Read(&response)) {
    if (response.token_ids_size() > 0) {
      result.last_token_s = absl::ToDoubleSeconds(absl::Now() - start);
      if (result.num_tokens == 0) result.first_token_s = result.last_token_s;
      result.num_tokens += response.token_ids_size();
    }
    AddSample(&response, sink, &result);
  }
  result.status = reader->Finish();
  result.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  absl::MutexLock lock(&mu_);
  running_ = nullptr;
  return result;
}

}  // namespace strata
