#include "core/model/rope.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "tests/testing/near.h"

namespace strata {
namespace {

// Computed by PyTorch 2.15 in f32, with the expressions of transformers 4.57's
// modeling_rope_utils.
constexpr float kTheta1e4Dim16[] = {
    0x1p+0f,        0x1.43d136p-2f, 0x1.99999ap-4f,  0x1.030dc6p-5f,
    0x1.47ae14p-7f, 0x1.9e7c7p-9f,  0x1.0624dep-10f, 0x1.4b96cp-12f};
constexpr float kTheta1e6Dim32[] = {
    0x1p+0f,         0x1.afd136p-2f,  0x1.6c310ep-3f,  0x1.33281ap-4f,
    0x1.030dc6p-5f,  0x1.b4f7e4p-7f,  0x1.708938p-8f,  0x1.36d21ap-9f,
    0x1.0624dep-10f, 0x1.ba2e4ap-12f, 0x1.74eea6p-13f, 0x1.3a8748p-14f,
    0x1.094564p-15f, 0x1.bf749ep-17f, 0x1.796182p-18f, 0x1.3e47c8p-19f};
constexpr float kTheta5e5Dim128[] = {
    0x1p+0f,         0x1.a11582p-1f,  0x1.53c38cp-1f,  0x1.14c708p-1f,
    0x1.c2ef78p-2f,  0x1.6f56fap-2f,  0x1.2b3dc6p-2f,  0x1.e788c2p-3f,
    0x1.8d276p-3f,   0x1.43874p-3f,   0x1.078d4p-3f,   0x1.ad6338p-4f,
    0x1.5dc95ap-4f,  0x1.1cf13p-4f,   0x1.d03ccep-5f,  0x1.7a2d08p-5f,
    0x1.34119p-5f,   0x1.f5ea7ep-6f,  0x1.98de92p-6f,  0x1.4d1272p-6f,
    0x1.0f5386p-6f,  0x1.ba0dd8p-7f,  0x1.681adap-7f,  0x1.2558fep-7f,
    0x1.ddee9ep-8f,  0x1.8554ecp-8f,  0x1.3d2804p-8f,  0x1.025c6ap-8f,
    0x1.a4ee4p-9f,   0x1.56e5b8p-9f,  0x1.175482p-9f,  0x1.c7182p-10f,
    0x1.72ba42p-10f, 0x1.2e0046p-10f, 0x1.ec07d4p-11f, 0x1.90d10cp-11f,
    0x1.46831ap-11f, 0x1.09fb7ep-11f, 0x1.b15902p-12f, 0x1.610332p-12f,
    0x1.1f91fp-12f,  0x1.d484dep-13f, 0x1.7da9e8p-13f, 0x1.36e8eap-13f,
    0x1.fa8b86p-14f, 0x1.9ca3eap-14f, 0x1.5024d6p-14f, 0x1.11d41ep-14f,
    0x1.be2188p-15f, 0x1.6b6d0ep-15f, 0x1.280d96p-15f, 0x1.e257p-16f,
    0x1.88ec2p-16f,  0x1.4014d2p-16f, 0x1.04be68p-16f, 0x1.a8d01p-17f,
    0x1.5a0f4ep-17f, 0x1.19e8p-17f,   0x1.cb4a9ap-18f, 0x1.76258ep-18f,
    0x1.30c94ep-18f, 0x1.f09184p-19f, 0x1.94836p-19f,  0x1.4985fep-19f};
// Theta 500,000, head_dim 64; factor 8, low 1, high 4, original 64.
constexpr float kLlama3Dim64[] = {
    0x1p+0f,         0x1.53c38cp-1f,  0x1.c2ef78p-2f,  0x1.a3d78cp-3f,
    0x1.453c18p-4f,  0x1.c6adc8p-6f,  0x1.5dc95ap-7f,  0x1.d03ccep-8f,
    0x1.34119p-8f,   0x1.98de92p-9f,  0x1.0f5386p-9f,  0x1.681adap-10f,
    0x1.ddee9ep-11f, 0x1.3d2804p-11f, 0x1.a4ee4p-12f,  0x1.175482p-12f,
    0x1.72ba42p-13f, 0x1.ec07d4p-14f, 0x1.46831ap-14f, 0x1.b15902p-15f,
    0x1.1f91fp-15f,  0x1.7da9e8p-16f, 0x1.fa8b86p-17f, 0x1.5024d6p-17f,
    0x1.be2188p-18f, 0x1.280d96p-18f, 0x1.88ec2p-19f,  0x1.04be68p-19f,
    0x1.5a0f4ep-20f, 0x1.cb4a9ap-21f, 0x1.30c94ep-21f, 0x1.94836p-22f};
// Theta 500,000, head_dim 128; factor 32, low 1, high 4, original 8192.
constexpr float kLlama3Dim128[] = {
    0x1p+0f,         0x1.a11582p-1f,  0x1.53c38cp-1f,  0x1.14c708p-1f,
    0x1.c2ef78p-2f,  0x1.6f56fap-2f,  0x1.2b3dc6p-2f,  0x1.e788c2p-3f,
    0x1.8d276p-3f,   0x1.43874p-3f,   0x1.078d4p-3f,   0x1.ad6338p-4f,
    0x1.5dc95ap-4f,  0x1.1cf13p-4f,   0x1.d03ccep-5f,  0x1.7a2d08p-5f,
    0x1.34119p-5f,   0x1.f5ea7ep-6f,  0x1.98de92p-6f,  0x1.4d1272p-6f,
    0x1.0f5386p-6f,  0x1.ba0dd8p-7f,  0x1.681adap-7f,  0x1.2558fep-7f,
    0x1.ddee9ep-8f,  0x1.8554ecp-8f,  0x1.3d2804p-8f,  0x1.025c6ap-8f,
    0x1.a4ee4p-9f,   0x1.15a9fp-9f,   0x1.524f36p-10f, 0x1.8fca8ep-11f,
    0x1.c26c4p-12f,  0x1.d32b32p-13f, 0x1.9731eep-14f, 0x1.90d10cp-16f,
    0x1.46831ap-16f, 0x1.09fb7ep-16f, 0x1.b15902p-17f, 0x1.610332p-17f,
    0x1.1f91fp-17f,  0x1.d484dep-18f, 0x1.7da9e8p-18f, 0x1.36e8eap-18f,
    0x1.fa8b86p-19f, 0x1.9ca3eap-19f, 0x1.5024d6p-19f, 0x1.11d41ep-19f,
    0x1.be2188p-20f, 0x1.6b6d0ep-20f, 0x1.280d96p-20f, 0x1.e257p-21f,
    0x1.88ec2p-21f,  0x1.4014d2p-21f, 0x1.04be68p-21f, 0x1.a8d01p-22f,
    0x1.5a0f4ep-22f, 0x1.19e8p-22f,   0x1.cb4a9ap-23f, 0x1.76258ep-23f,
    0x1.30c94ep-23f, 0x1.f09184p-24f, 0x1.94836p-24f,  0x1.4985fep-24f};
// Theta 10,000, head_dim 32; factor 3, low 1.5, high 5, original 100.
constexpr float kLlama3Dim32[] = {
    0x1p+0f,         0x1.1feb34p-1f,  0x1.43d136p-2f,  0x1.ab594p-4f,
    0x1.1f5a14p-5f,  0x1.331d02p-6f,  0x1.5967b2p-7f,  0x1.847898p-8f,
    0x1.b4e81ap-9f,  0x1.eb61ap-10f,  0x1.1452f6p-10f, 0x1.36c6ep-11f,
    0x1.5d867ep-12f, 0x1.891ae6p-13f, 0x1.ba1e56p-14f, 0x1.f13e32p-15f};
// Theta 10,000, head_dim 16, factor 3.
constexpr float kLinearDim16[] = {
    0x1.555556p-2f, 0x1.afc19ep-4f,  0x1.111112p-5f,  0x1.5967b2p-7f,
    0x1.b4e81ap-9f, 0x1.1452f6p-10f, 0x1.5d867ep-12f, 0x1.ba1e56p-14f};

TEST(RopeTest, FrequenciesAreThoseOfPyTorch) {
  EXPECT_TRUE(AllNear(RopeInvFreq(10000.0f, 16), kTheta1e4Dim16, 0.0f, 0.0f));
  EXPECT_TRUE(AllNear(RopeInvFreq(1e6f, 32), kTheta1e6Dim32, 0.0f, 0.0f));
  EXPECT_TRUE(
      AllNear(RopeInvFreq(500000.0f, 128), kTheta5e5Dim128, 0.0f, 0.0f));
}

TEST(RopeTest, Llama3ScalingIsThatOfTransformers) {
  EXPECT_TRUE(AllNear(ScaleLlama3({.factor = 8.0,
                                   .low_freq_factor = 1.0,
                                   .high_freq_factor = 4.0,
                                   .original_positions = 64.0},
                                  RopeInvFreq(500000.0f, 64)),
                      kLlama3Dim64, 0.0f, 0.0f));
  EXPECT_TRUE(AllNear(ScaleLlama3({.factor = 32.0,
                                   .low_freq_factor = 1.0,
                                   .high_freq_factor = 4.0,
                                   .original_positions = 8192.0},
                                  RopeInvFreq(500000.0f, 128)),
                      kLlama3Dim128, 0.0f, 0.0f));
  EXPECT_TRUE(AllNear(ScaleLlama3({.factor = 3.0,
                                   .low_freq_factor = 1.5,
                                   .high_freq_factor = 5.0,
                                   .original_positions = 100.0},
                                  RopeInvFreq(10000.0f, 32)),
                      kLlama3Dim32, 0.0f, 0.0f));
}

TEST(RopeTest, LinearScalingDivides) {
  EXPECT_TRUE(AllNear(ScaleLinear(3.0, RopeInvFreq(10000.0f, 16)), kLinearDim16,
                      0.0f, 0.0f));
}

}  // namespace
}  // namespace strata
