#include "server/native/token_stream.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "proto/strata.grpc.pb.h"
#include "tests/testing/loopback_server.h"

namespace strata {
namespace {

SequenceDelta Count(int index, int count) {
  SequenceDelta delta;
  delta.index = index;
  delta.tokens = {count};
  delta.text = std::to_string(count) + " ";
  SampledToken token;
  token.token = count;
  token.logprob = -1.0f;
  token.num_top = 20;
  for (int i = 0; i < token.num_top; ++i) token.top[i] = {i, -0.5f * i};
  delta.logprobs = {token};
  return delta;
}

// Counts to the prompt's length at num_sequences indices in turn, then ends
// with the status whose code `model` spells; a cancelled stream ends with
// CANCELLED.  Each call runs on a thread of its own, as the engine's thread
// would, and is submitted there; parse_special: on gRPC's, before the stream is
// handed over.
class CountingService final : public v1::Inference::CallbackService {
 public:
  ~CountingService() override {
    for (std::thread& thread : threads_) thread.join();
  }

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context,
      const v1::GenerateRequest* request) override {
    ++num_started_;
    auto cancelled = std::make_shared<std::atomic<bool>>(false);
    const auto stream = TokenStream::Create(context, options_, RequestLog());
    const int count = static_cast<int>(request->text().size());
    const int n = static_cast<int>(request->num_sequences());
    const auto code = static_cast<absl::StatusCode>(request->priority());
    const auto produce = [=, this] {
      stream->OnceSubmitted(7, [cancelled] { *cancelled = true; });
      for (int i = 0; i < count && !*cancelled; ++i) {
        for (int index = 0; index < n; ++index) {
          SequenceDelta delta = Count(index, i);
          if (i + 1 == count) delta.end.emplace();
          stream->OnDelta(std::move(delta));
        }
      }
      stream->OnEnd(*cancelled ? absl::CancelledError("asked")
                               : absl::Status(code, "as asked"));
      ++num_produced_;
    };
    std::lock_guard lock(mu_);
    streams_.push_back(stream);
    if (request->parse_special()) {
      produce();
    } else {
      threads_.emplace_back(produce);
    }
    return stream.get();
  }

  // Of the latest stream, if it lives.
  void CancelIfStalled(absl::Time now) {
    std::shared_ptr<TokenStream> stream;
    {
      std::lock_guard lock(mu_);
      stream = streams_.back().lock();
    }
    if (stream != nullptr) stream->CancelIfStalled(now);
  }
  void WaitForProduced(int count) const {
    while (num_produced_ < count) std::this_thread::yield();
  }

  std::atomic<int> num_started_{0};
  std::atomic<int> num_logged_{0};
  std::atomic<int> num_logged_ok_{0};

 private:
  const TokenStream::Options options_ = {
      .max_queued = 8,
      .stall_limit = absl::Seconds(60),
      .logger = [this](const RequestLog& log) {
        EXPECT_EQ(log.id, 7u);
        ++num_logged_;
        if (log.status.ok()) ++num_logged_ok_;
      }};
  std::atomic<int> num_produced_{0};
  std::mutex mu_;
  std::vector<std::thread> threads_;
  std::vector<std::weak_ptr<TokenStream>> streams_;
};

v1::GenerateRequest CountTo(int count, int num_sequences) {
  v1::GenerateRequest request;
  request.set_text(std::string(count, 'x'));
  request.set_num_sequences(num_sequences);
  return request;
}

// What a client was given at one index; EXPECTs that it counts.
struct Counted {
  int count = 0;
  std::string text;
  bool done = false;

  void Add(const v1::GenerateResponse& response) {
    EXPECT_FALSE(done);
    EXPECT_EQ(response.token_ids_size(), response.logprobs_size());
    EXPECT_LE(response.ByteSizeLong(), size_t{1} << 20);
    for (int i = 0; i < response.token_ids_size(); ++i, ++count) {
      EXPECT_EQ(static_cast<int>(response.token_ids(i)), count);
      EXPECT_EQ(static_cast<int>(response.logprobs(i).chosen().token_id()),
                count);
      EXPECT_EQ(response.logprobs(i).top_size(), 20);
    }
    text += response.text();
    done = response.has_done();
  }
  static std::string TextOf(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += std::to_string(i) + " ";
    return text;
  }
};

class TokenStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string address;
    server_ = StartOnLoopback({&service_}, &address);
    stub_ = v1::Inference::NewStub(
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  }
  void TearDown() override { server_->Shutdown(); }

  // Reads to the end; returns the number of responses.
  int Read(grpc::ClientReader<v1::GenerateResponse>* reader,
           std::vector<Counted>* counted) {
    int num_responses = 0;
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
      ++num_responses;
      counted->at(response.index()).Add(response);
    }
    return num_responses;
  }

  CountingService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Inference::Stub> stub_;
};

TEST_F(TokenStreamTest, DeliversAllInOrderThenTheStatus) {
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, CountTo(1000, 3));
  std::vector<Counted> counted(3);
  Read(reader.get(), &counted);
  EXPECT_TRUE(reader->Finish().ok());
  for (const Counted& index : counted) {
    EXPECT_EQ(index.count, 1000);
    EXPECT_EQ(index.text, Counted::TextOf(1000));
    EXPECT_TRUE(index.done);
  }
}

TEST_F(TokenStreamTest, MayEndBeforeItIsHandedOver) {
  grpc::ClientContext context;
  v1::GenerateRequest request = CountTo(20, 2);
  request.set_parse_special(true);
  auto reader = stub_->Generate(&context, request);
  std::vector<Counted> counted(2);
  Read(reader.get(), &counted);
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(counted[0].count, 20);
  EXPECT_EQ(counted[1].count, 20);
}

TEST_F(TokenStreamTest, TheStatusOfTheEngineIsTheClients) {
  grpc::ClientContext context;
  v1::GenerateRequest request = CountTo(1, 1);
  request.set_priority(static_cast<int>(absl::StatusCode::kInternal));
  auto reader = stub_->Generate(&context, request);
  std::vector<Counted> counted(1);
  EXPECT_EQ(Read(reader.get(), &counted), 1);
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status.error_message(), "as asked");
}

TEST_F(TokenStreamTest, AFullQueueSaysWhenToTryAgain) {
  grpc::ClientContext context;
  v1::GenerateRequest request = CountTo(0, 1);
  request.set_priority(static_cast<int>(absl::StatusCode::kResourceExhausted));
  auto reader = stub_->Generate(&context, request);
  std::vector<Counted> counted(1);
  EXPECT_EQ(Read(reader.get(), &counted), 0);
  EXPECT_EQ(reader->Finish().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto retry = trailers.find("retry-after-ms");
  ASSERT_NE(retry, trailers.end());
  EXPECT_GT(std::stoi(std::string(retry->second.data(), retry->second.size())),
            0);
}

// A response of one token has some 300 bytes: far more is produced than the
// transport takes from a reader that does not read.
TEST_F(TokenStreamTest, ASlowReaderMissesNothingAndHoldsNothingUp) {
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, CountTo(10000, 2));
  service_.WaitForProduced(1);  // before anything is read
  std::vector<Counted> counted(2);
  const int num_responses = Read(reader.get(), &counted);
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_LT(num_responses, 10000);
  for (const Counted& index : counted) {
    EXPECT_EQ(index.count, 10000);
    EXPECT_EQ(index.text, Counted::TextOf(10000));
    EXPECT_TRUE(index.done);
  }
}

TEST_F(TokenStreamTest, AStalledReaderIsCancelled) {
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, CountTo(10000, 1));
  service_.WaitForProduced(1);
  service_.CancelIfStalled(absl::Now() + absl::Seconds(50));
  v1::GenerateResponse response;
  EXPECT_TRUE(reader->Read(&response));  // the limit has not passed
  // Until the client has taken what was on its way and writes stand still.
  while (service_.num_logged_ == 0) {
    service_.CancelIfStalled(absl::Now() + absl::Seconds(70));
    std::this_thread::yield();
  }
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(TokenStreamTest, CancelEndsTheStream) {
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, CountTo(1000000, 1));
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  context.TryCancel();
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  service_.WaitForProduced(1);
}

TEST_F(TokenStreamTest, ACancelAtAnyMomentLeavesNothingBehind) {
  constexpr int kNumThreads = 8;
  constexpr int kCallsPerThread = 40;
  std::atomic<int> num_ok{0};
  std::vector<std::thread> clients;
  for (int seed = 0; seed < kNumThreads; ++seed) {
    clients.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int call = 0; call < kCallsPerThread; ++call) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << " call " << call);
        grpc::ClientContext context;
        const int n = 1 + static_cast<int>(random() % 3);
        auto reader = stub_->Generate(
            &context, CountTo(static_cast<int>(random() % 300), n));
        const bool cancels = random() % 2 == 0;
        int reads_left = static_cast<int>(random() % 100);
        std::vector<Counted> counted(n);
        v1::GenerateResponse response;
        for (;;) {
          if (cancels && reads_left-- == 0) context.TryCancel();
          if (!reader->Read(&response)) break;
          counted.at(response.index()).Add(response);
        }
        const grpc::Status status = reader->Finish();
        if (status.ok()) ++num_ok;
        if (!status.ok()) {
          EXPECT_TRUE(cancels);
          EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  server_->Shutdown();  // when all calls are over
  // A call may be cancelled before the server has heard of it.
  EXPECT_LE(service_.num_started_, kNumThreads * kCallsPerThread);
  EXPECT_EQ(service_.num_logged_, service_.num_started_);
  EXPECT_GE(service_.num_logged_ok_, num_ok);
}

}  // namespace
}  // namespace strata
