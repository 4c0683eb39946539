// Where a server's memory goes.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/e2e/client.h"
#include "tests/server/e2e/server_process.h"

namespace strata {
namespace {

// The number of `key` in the log's line of the memory.
int64_t Logged(const ServerProcess& server, const std::string& key) {
  const std::string log = server.Log();
  const size_t at =
      log.find(absl::StrCat(" ", key, "="), log.find(" INFO memory "));
  EXPECT_NE(at, log.npos) << log;
  return std::stoll(log.substr(at + key.size() + 2));
}

TEST(MemoryTest, ThePoolIsAPartOfWhatIsFree) {
  ServerProcess server(
      {"--model=tests/golden/llama-tied", "--kv_memory=1%", "--threads=1"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  const int64_t kv = Logged(server, "kv_bytes");
  const int64_t free = kv + Logged(server, "left_bytes");
  const int64_t page = 2 * 2 * 16 * 16 * 2;
  EXPECT_EQ(kv, Logged(server, "kv_pages") * page);
  EXPECT_LE(kv, free / 100);
  EXPECT_GT(kv, free / 100 - page);
  EXPECT_GT(Logged(server, "weight_bytes"), 0);
  EXPECT_GT(Logged(server, "workspace_bytes"), 0);
  EXPECT_EQ(Scrape(server).Sum("strata_kv_pool_bytes"), kv);
  Client client(server.grpc_address());
  EXPECT_TRUE(client.Generate(GreedyRequest({1, 2}, "full", 3)).status.ok());
}

}  // namespace
}  // namespace strata
