// SPDX-License-Identifier: Apache-2.0
#include "src/policy/policy_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "src/policy/policy_checks.h"
#include "src/policy/policy_layout.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

class TemporaryFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "policy_file_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

std::vector<std::byte> Sample() {
  return FormatPolicy(*test::MakeRandomPolicy(1));
}

// Corrects the digest of damaged bytes, so that the checks after the digest are reached.
void Reseal(std::vector<std::byte>& bytes) {
  const size_t end = bytes.size() - kTrailerBytes;
  const Sha256Digest digest = Sha256Of(std::span<const std::byte>(bytes).first(end));
  std::memcpy(bytes.data() + end, digest.data(), digest.size());
}

std::string MessageOf(const std::vector<std::byte>& bytes) {
  const auto policy = ParsePolicy(bytes, "x.dcpolicy");
  return policy ? "accepted" : policy.error().message;
}

template <typename T>
std::string MessageWith(size_t offset, T value) {
  std::vector<std::byte> bytes = Sample();
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  Reseal(bytes);
  return MessageOf(bytes);
}

TEST_F(TemporaryFolder, PolicySurvivesWritingAndReading) {
  const auto policy = test::MakeRandomPolicy(3);
  const auto digest = WritePolicyFile(Path("a.dcpolicy"), *policy);
  ASSERT_TRUE(digest) << digest.error().message;
  const auto read = ReadPolicyFile(Path("a.dcpolicy"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->sha256, *digest);
  EXPECT_EQ((*read)->provenance, policy->provenance);
  EXPECT_EQ((*read)->training_data_id, 3u);
  EXPECT_EQ(FormatPolicy(**read), FormatPolicy(*policy));
}

// Returns a file of format version 3.
std::vector<std::byte> SampleWithEffects() {
  return FormatPolicy(*test::MakeRandomPolicyWithEffects(1));
}

TEST_F(TemporaryFolder, EffectsOnStepsSurviveWritingAndReading) {
  const auto policy = test::MakeRandomPolicyWithEffects(3);
  ASSERT_TRUE(WritePolicyFile(Path("a.dcpolicy"), *policy));
  const auto read = ReadPolicyFile(Path("a.dcpolicy"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(std::memcmp(&(*read)->tensors, &policy->tensors, sizeof(PolicyTensors)), 0);
  EXPECT_EQ(FormatPolicy(**read), FormatPolicy(*policy));
}

TEST(PolicyFile, OnlyPoliciesWithEffectsHaveTheNewVersion) {
  uint32_t version = 0;
  std::memcpy(&version, Sample().data() + 8, sizeof(version));
  EXPECT_EQ(version, 2u);
  std::memcpy(&version, SampleWithEffects().data() + 8, sizeof(version));
  EXPECT_EQ(version, 3u);
}

TEST(PolicyFile, OneOfTheOlderVersionIsReadAndHasNoEffects) {
  const auto policy = ParsePolicy(Sample(), "sample");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ((*policy)->tensors.effect.count, 0);
}

TEST(PolicyFile, TheStarterPolicyHasEffects) {
  const auto policy = ReadPolicyFile(STARTER_POLICY);
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_GT((*policy)->tensors.effect.count, 0);
}

TEST(PolicyFile, DamagedOrTruncatedEffectsAreRefused) {
  const std::vector<std::byte> whole = SampleWithEffects();
  std::mt19937_64 random(13);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> damaged = whole;
    damaged[random() % whole.size()] ^= std::byte{1} << (random() % 8);
    ASSERT_FALSE(ParsePolicy(damaged, "damaged"));
    const auto length = static_cast<std::ptrdiff_t>(random() % whole.size());
    ASSERT_FALSE(ParsePolicy(std::vector<std::byte>(whole.begin(), whole.begin() + length), "cut"));
  }
}

TEST(PolicyFile, FaultsOfEffectsAreNamed) {
  const auto with = [](auto change) {
    const auto policy = test::MakeRandomPolicyWithEffects(5);
    change(policy->tensors);
    return MessageOf(FormatPolicy(*policy));
  };
  EXPECT_THAT(with([](PolicyTensors& t) { t.effect.count = -1; }), HasSubstr("effect: a scale, the error"));
  EXPECT_THAT(with([](PolicyTensors& t) { t.effect.error = -1; }), HasSubstr("effect: a scale, the error"));
  EXPECT_THAT(with([](PolicyTensors& t) { t.effect.fraction_bits[2] = 3; }), HasSubstr("effect: a scale"));
  EXPECT_THAT(with([](PolicyTensors& t) { t.effect_domain_min[2] = 5, t.effect_domain_max[2] = 4; }),
              HasSubstr("effect_domain_min: "));
  EXPECT_THAT(with([](PolicyTensors& t) { t.golden_effect_features[3][0] = 4097; }),
              HasSubstr("golden_effect_features: "));
  EXPECT_THAT(with([](PolicyTensors& t) { t.golden_effects[3][0] += 1; }),
              HasSubstr("golden_effects: this machine computes other effects"));
  EXPECT_THAT(with([](PolicyTensors& t) {
                for (auto& weight : t.effect_weights_2[1][3]) weight = -32768;
                for (auto& weight : t.effect_weights_1[1][2]) weight = -32768;
              }),
              HasSubstr("effect_weights_1: a sum of products can exceed int32"));
  std::vector<std::byte> other = SampleWithEffects();
  other[64] ^= std::byte{1};
  Reseal(other);
  EXPECT_THAT(MessageOf(other), HasSubstr("byte 64: trained on other inputs about steps"));
}

TEST(PolicyFile, EqualPoliciesGiveEqualBytes) {
  EXPECT_EQ(Sample(), Sample());
}

TEST(PolicyFile, TruncatedAnywhereIsRefused) {
  const std::vector<std::byte> whole = Sample();
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    ASSERT_FALSE(ParsePolicy(cut, "cut")) << length << " bytes";
  }
}

TEST(PolicyFile, AnyFlippedBitIsRefused) {
  const std::vector<std::byte> whole = Sample();
  std::mt19937_64 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::byte> damaged = whole;
    // Half of the flips hit the header and the table.
    const size_t at = random() % (i % 2 == 0 ? 1200 : whole.size());
    damaged[at] ^= std::byte{1} << (random() % 8);
    ASSERT_FALSE(ParsePolicy(damaged, "damaged")) << "byte " << at;
  }
}

TEST(PolicyFile, RandomBytesAreRefused) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::byte> noise(random() % 4096);
    for (auto& byte : noise) byte = static_cast<std::byte>(random());
    if (noise.size() > 8 && i % 2 == 0) std::memcpy(noise.data(), kPolicyMagic, 8);
    ASSERT_FALSE(ParsePolicy(noise, "noise"));
  }
}

TEST(PolicyFile, HeaderFaultsNameTheirByteAndCheck) {
  EXPECT_THAT(MessageWith<char>(0, 'X'), HasSubstr("x.dcpolicy: byte 0: not a policy file"));
  EXPECT_THAT(MessageWith<uint32_t>(8, 4), HasSubstr("byte 8: format version 4, this build reads 2 and 3"));
  EXPECT_THAT(MessageWith<uint32_t>(12, 64), HasSubstr("byte 12: header of 64 bytes"));
  EXPECT_THAT(MessageWith<uint64_t>(16, 7), HasSubstr("byte 16: 7 bytes announced"));
  EXPECT_THAT(MessageWith<uint64_t>(24, 7), HasSubstr("byte 24: trained on other tokens"));
  EXPECT_THAT(MessageWith<uint64_t>(32, 7), HasSubstr("byte 32: trained on other config features"));
  EXPECT_THAT(MessageWith<uint32_t>(48, 1), HasSubstr("byte 48: arithmetic 1, this build computes 2"));
  EXPECT_THAT(MessageWith<uint32_t>(52, 3), HasSubstr("byte 52: 3 sections"));
  EXPECT_THAT(MessageWith<char>(127, 1), HasSubstr("byte 72: reserved bytes"));
}

TEST(PolicyFile, NothingMayStandBetweenSections) {
  const std::vector<std::byte> sample = Sample();
  size_t gaps = 0;
  size_t end = sizeof(PolicyHeader) + 25 * sizeof(PolicySection);
  for (size_t i = 0; i < 25; ++i) {
    PolicySection section;
    std::memcpy(&section, sample.data() + sizeof(PolicyHeader) + i * sizeof(section), sizeof(section));
    for (size_t at = end; at < section.offset; ++at, ++gaps)
      ASSERT_THAT(MessageWith<char>(at, 'y'), HasSubstr(fmt::format("byte {}: padding is not zero", at)));
    end = section.offset + section.bytes;
  }
  for (size_t at = end; at < sample.size() - kTrailerBytes; ++at, ++gaps)
    ASSERT_THAT(MessageWith<char>(at, 'y'), HasSubstr("padding is not zero"));
  EXPECT_GT(gaps, 0u);
}

TEST(PolicyFile, SectionFaultsNameTheirByteAndCheck) {
  constexpr size_t kFirst = sizeof(PolicyHeader);
  EXPECT_THAT(MessageWith<uint32_t>(kFirst, 9), HasSubstr("byte 128: section 1 has another kind"));
  EXPECT_THAT(MessageWith<uint32_t>(kFirst + 8, 9), HasSubstr("byte 128: section 1 has another")) << "dims";
  EXPECT_THAT(MessageWith<uint64_t>(kFirst + 24, 1 << 30), HasSubstr("byte 128: section 1 has another"))
      << "offset";
  EXPECT_THAT(MessageWith<uint64_t>(kFirst + 40, 9), HasSubstr("checksum of section 1 is wrong"));
  constexpr size_t kLast = kFirst + 24 * sizeof(PolicySection);
  EXPECT_THAT(MessageWith<uint64_t>(kLast + 32, 1 << 20), HasSubstr("provenance of 1048576 bytes"));
  std::vector<std::byte> bytes = Sample();
  bytes.back() ^= std::byte{1};
  EXPECT_THAT(MessageOf(bytes), HasSubstr("SHA-256 of the file is wrong"));
  bytes.resize(kMaxPolicyBytes + 1);
  EXPECT_THAT(MessageOf(bytes), HasSubstr("longer than any policy"));
}

TEST(PolicyFile, ValuesThatCouldOverflowAreRefused) {
  const auto policy = test::MakeRandomPolicy(5);
  for (auto& weight : policy->tensors.gate_weights[7]) weight = 32767;
  EXPECT_THAT(MessageOf(FormatPolicy(*policy)),
              HasSubstr("gate_weights: a sum of products can exceed int32"));
  const auto other = test::MakeRandomPolicy(5);
  for (auto& weight : other->tensors.config_weights_2[1][3]) weight = -32768;
  EXPECT_THAT(MessageOf(FormatPolicy(*other)),
              HasSubstr("config_weights_2: a sum of products can exceed int32"));
}

TEST(PolicyFile, ThresholdsAndTablesOutOfRangeAreRefused) {
  const auto with = [](auto change) {
    const auto policy = test::MakeRandomPolicy(5);
    change(policy->tensors);
    return MessageOf(FormatPolicy(*policy));
  };
  EXPECT_THAT(with([](PolicyTensors& t) { t.structure.gate_fraction_bits = 0; }), HasSubstr("structure: "));
  EXPECT_THAT(with([](PolicyTensors& t) { t.structure.stage_hold_calls = 0; }), HasSubstr("structure: "));
  EXPECT_THAT(with([](PolicyTensors& t) { t.config.gate = 0; }), HasSubstr("config: a scale or the gate"));
  EXPECT_THAT(with([](PolicyTensors& t) { t.domain_min[2] = 5, t.domain_max[2] = 4; }),
              HasSubstr("domain_min: "));
  EXPECT_THAT(with([](PolicyTensors& t) { t.sigmoid_table[9] = -1; }), HasSubstr("sigmoid_table: "));
  EXPECT_THAT(with([](PolicyTensors& t) { t.tanh_table[9] = 5000; }), HasSubstr("tanh_table: "));
  EXPECT_THAT(with([](PolicyTensors& t) { t.golden_tokens[3][8] = 4097; }), HasSubstr("golden_tokens: "));
  EXPECT_THAT(with([](PolicyTensors& t) { t.trees.count = kTrees + 1; }), HasSubstr("trees: the number"));
  EXPECT_THAT(with([](PolicyTensors& t) { t.trees.count = -1; }), HasSubstr("trees: the number"));
  EXPECT_THAT(with([](PolicyTensors& t) { t.trees.base = kTreeBaseLimit + 1; }), HasSubstr("trees: "));
  EXPECT_THAT(with([](PolicyTensors& t) { t.tree_nodes[127][30][0] = kConfigFeatures; }),
              HasSubstr("tree_nodes: a tree asks for a feature"));
  EXPECT_THAT(with([](PolicyTensors& t) { t.tree_nodes[0][0][0] = -1; }), HasSubstr("tree_nodes: "));
  EXPECT_THAT(with([](PolicyTensors& t) { t.tree_leaves[9][31] = -kTreeLeafLimit - 1; }),
              HasSubstr("tree_leaves: a leaf"));
}

TEST(PolicyFile, GoldenVectorsMustBeReproducedBitForBit) {
  const auto policy = test::MakeRandomPolicy(5);
  policy->tensors.golden_logits[77][3] += 1;
  EXPECT_THAT(MessageOf(FormatPolicy(*policy)),
              HasSubstr("golden_logits: this machine computes other logits"));
  const auto other = test::MakeRandomPolicy(5);
  other->tensors.golden_residuals[127][2] -= 1;
  EXPECT_THAT(MessageOf(FormatPolicy(*other)),
              HasSubstr("golden_residuals: this machine computes other residuals"));
  const auto third = test::MakeRandomPolicy(5);
  third->tensors.golden_tree_residuals[64] += 1;
  EXPECT_THAT(MessageOf(FormatPolicy(*third)),
              HasSubstr("golden_tree_residuals: this machine's trees compute another residual"));
}

TEST_F(TemporaryFolder, OnlyRegularFilesAreRead) {
  ASSERT_TRUE(WritePolicyFile(Path("a.dcpolicy"), *test::MakeRandomPolicy(3)));
  std::filesystem::create_symlink(Path("a.dcpolicy"), Path("link"));
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(ReadPolicyFile(Path("link")).error().message, HasSubstr("is a symbolic link"));
  EXPECT_THAT(ReadPolicyFile(Path("pipe")).error().message, HasSubstr("not a regular file"));
  EXPECT_THAT(ReadPolicyFile(folder_.string()).error().message, HasSubstr("not a regular file"));
  EXPECT_EQ(ReadPolicyFile(Path("none")).error().kind, ErrorKind::kNotFound);
}

TEST_F(TemporaryFolder, WhatReadingRefusesIsNotWritten) {
  const auto policy = test::MakeRandomPolicy(3);
  policy->tensors.golden_logits[0][0] += 1;
  EXPECT_FALSE(WritePolicyFile(Path("bad.dcpolicy"), *policy));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  const auto missing = WritePolicyFile(Path("none/a.dcpolicy"), *test::MakeRandomPolicy(3));
  ASSERT_FALSE(missing);
  EXPECT_FALSE(missing.error().hint.empty());
}

}  // namespace
}  // namespace dynamiccl
