#include "server/access/access_control.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

namespace strata {
namespace {

using absl::StatusCode;

constexpr char kInference[] = "/strata.v1.Inference/Generate";
constexpr char kAdmin[] = "/strata.v1.Admin/SetPolicy";
constexpr char kHealth[] = "/grpc.health.v1.Health/Check";

std::shared_ptr<const Keys> KeysOf(const std::string& text) {
  return std::make_shared<const Keys>(*Keys::Parse(text));
}

ShownKeys Shows(const std::string& name, std::string_view value) {
  ShownKeys shown;
  shown.AddFrom(name, value);
  return shown;
}

StatusCode CodeOf(const AccessControl& access, const char* method,
                  std::string_view key) {
  const ShownKeys shown = key.empty() ? ShownKeys() : Shows("x-api-key", key);
  return access.CheckCall(method, shown).code();
}

TEST(ShownKeysTest, AreInTwoHeaders) {
  const auto shown = [](const std::string& name, std::string_view value) {
    const ShownKeys keys = Shows(name, value);
    return keys.keys.empty() ? "(none)" : std::string(keys.keys[0]);
  };
  EXPECT_EQ(shown("x-api-key", "a b"), "a b");
  EXPECT_EQ(shown("x-api-key", ""), "");
  EXPECT_EQ(shown("authorization", "Bearer abc"), "abc");
  EXPECT_EQ(shown("authorization", "BEARER abc"), "abc");
  EXPECT_EQ(shown("authorization", "bearer  abc"), " abc");
  EXPECT_EQ(shown("authorization", "Bearer "), "(none)");
  EXPECT_EQ(shown("authorization", "Bearer"), "(none)");
  EXPECT_EQ(shown("authorization", "Basic abc"), "(none)");
  EXPECT_EQ(shown("authorization", ""), "(none)");
  EXPECT_EQ(shown("Authorization", "Bearer abc"), "(none)");
  EXPECT_EQ(shown("x-other", "Bearer abc"), "(none)");
}

TEST(AccessControlTest, WithoutKeysAllIsOpen) {
  AccessControl access;
  for (const char* method : {kInference, kAdmin, kHealth, "", "/"}) {
    EXPECT_EQ(CodeOf(access, method, ""), StatusCode::kOk);
    EXPECT_EQ(CodeOf(access, method, "any"), StatusCode::kOk);
  }
  EXPECT_FALSE(access.CheckKey(Shows("x-api-key", "any")).ok());
}

TEST(AccessControlTest, EachSetOfKeysAndBoth) {
  struct Case {
    bool has_api, has_admin;
    const char* key;
    StatusCode inference, admin;
  };
  const StatusCode ok = StatusCode::kOk;
  const StatusCode no = StatusCode::kUnauthenticated;
  const StatusCode denied = StatusCode::kPermissionDenied;
  for (const Case& c :
       {Case{true, false, "", no, no}, Case{true, false, "user", ok, ok},
        Case{true, false, "root", no, no}, Case{false, true, "", ok, no},
        Case{false, true, "user", ok, no}, Case{false, true, "root", ok, ok},
        Case{true, true, "", no, no}, Case{true, true, "user", ok, denied},
        Case{true, true, "root", ok, ok}, Case{true, true, "other", no, no}}) {
    AccessControl access;
    access.SetKeys(c.has_api ? KeysOf("user") : nullptr,
                   c.has_admin ? KeysOf("root") : nullptr);
    const std::string where = std::string(c.has_api ? "api " : "") +
                              (c.has_admin ? "admin " : "") + c.key;
    EXPECT_EQ(CodeOf(access, kInference, c.key), c.inference) << where;
    EXPECT_EQ(CodeOf(access, kAdmin, c.key), c.admin) << where;
    EXPECT_EQ(CodeOf(access, kHealth, c.key), ok) << where;
    // What only looks like health or like no Admin.
    EXPECT_EQ(CodeOf(access, "/grpc.health.v1.Health", c.key), c.inference);
    EXPECT_EQ(CodeOf(access, "/grpc.health.v1.Healthy/Check", c.key),
              c.inference);
  }
}

TEST(AccessControlTest, TheBestOfSeveralKeysCounts) {
  AccessControl access;
  access.SetKeys(KeysOf("user"), KeysOf("root"));
  ShownKeys shown;
  shown.AddFrom("x-api-key", "wrong");
  shown.AddFrom("authorization", "Bearer root");
  shown.AddFrom("x-api-key", "user");
  EXPECT_TRUE(access.CheckCall(kAdmin, shown).ok());
}

TEST(AccessControlTest, KeysChangeWhileCallsAreChecked) {
  AccessControl access;
  access.SetKeys(KeysOf("a\nb"), nullptr);
  std::thread changes([&] {
    for (int i = 0; i < 1000; ++i) {
      access.SetKeys(KeysOf(i % 2 == 0 ? "b\nc" : "a\nb"), nullptr);
    }
  });
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(CodeOf(access, kInference, "b"), StatusCode::kOk);
    EXPECT_EQ(CodeOf(access, kInference, "d"), StatusCode::kUnauthenticated);
  }
  changes.join();
}

TEST(LocalPeerTest, IsTheLoopbackOrASocketOfThisHost) {
  for (const char* local :
       {"ipv4:127.0.0.1:5000", "ipv4:127.1.2.3:1", "ipv6:[::1]:5000",
        "ipv6:%5B::1%5D:5000", "ipv6:[::ffff:127.0.0.1]:9", "unix:/run/s",
        "unix:"}) {
    EXPECT_TRUE(IsLocalPeer(local)) << local;
  }
  for (const char* other :
       {"", "ipv4:10.127.0.1:5", "ipv4:1.127.0.0:1", "ipv4:128.0.0.1:1",
        "ipv6:[::2]:5", "ipv6:[::1:1]:5", "ipv6:%5B::10%5D:1",
        "ipv6:[2001:db8::1]:5", "unknown", "127.0.0.1:5", "ipv6:[::]:1"}) {
    EXPECT_FALSE(IsLocalPeer(other)) << other;
  }
}

}  // namespace
}  // namespace strata
