// SPDX-License-Identifier: Apache-2.0
// Prints digests of results that every machine must compute bit for bit, one per line: golden vectors,
// recognised structures, choices of configs and the hashes of files, for random policies.
// tests/portable/other_machine.sh compares the lines of this machine with those of another kind of machine.
//   same_answers write FILE     writes a policy with this machine's golden vectors
//   same_answers [FILE]         prints the digests; this machine must reproduce the golden vectors of FILE
#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "src/base/sha256.h"
#include "src/policy/config_inference.h"
#include "src/policy/policy_file.h"
#include "src/policy/structure_inference.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl {
namespace {

constexpr uint64_t kPolicies = 6;
constexpr int kCalls = 20'000;    // per policy
constexpr int kQuestions = 1000;  // per policy

class Digest {
 public:
  template <typename T>
  void Add(const T& value) {
    sha_.Update(std::as_bytes(std::span(&value, 1)));
  }
  std::string Finish() { return ToHex(sha_.Finish()); }

 private:
  Sha256 sha_;
};

CollectiveCall RandomCall(std::mt19937_64& random) {
  CollectiveCall call;
  call.collective = static_cast<Collective>(random() % kTunableCollectives);
  call.bytes = random() >> (random() % 60);
  call.group_size = static_cast<uint16_t>(1 + random() % 4);
  call.n_ranks = 8;
  return call;
}

std::string GoldenDigest(const PolicyTensors& tensors) {
  Digest digest;
  digest.Add(tensors.golden_logits);
  digest.Add(tensors.golden_residuals);
  digest.Add(tensors.golden_tree_residuals);
  return digest.Finish();
}

std::string StructureDigest(const Policy& policy, std::mt19937_64& random) {
  Digest digest;
  StructureAgent agent(policy);
  for (int call = 0; call < kCalls; ++call) {
    const RecognisedStructure& recognised = agent.Step(RandomCall(random));
    digest.Add(recognised.next_role);
    digest.Add(recognised.phase);
    digest.Add(recognised.stage);
    digest.Add(recognised.surprise);
  }
  return digest.Finish();
}

CostModelInput RandomFabric(std::mt19937_64& random) {
  CostModelInput input;
  const int n_nodes = 1 << (random() % 4);
  const int n_ranks = n_nodes * (1 << (random() % 4));
  input.fabric = {n_ranks, n_nodes, 1 + static_cast<int>(random() % 32), {1.5, 20}, {12, 2.5}};
  input.constants = NcclHopperConstants(n_nodes);
  input.gpu_corrections = random() % 2 == 0;
  return input;
}

std::string ChoiceDigest(const Policy& policy, std::mt19937_64& random) {
  Digest digest;
  for (int i = 0; i < kQuestions; ++i) {
    const CostModelInput input = RandomFabric(random);
    const auto collective = static_cast<Collective>(random() % kTunableCollectives);
    const ConfigQuestion question{collective, 1 + (random() >> (24 + random() % 40)),
                                  NcclConfigs(collective)};
    const ConfigChoice choice = ChooseConfig(policy, input, question);
    for (const CollectiveConfig& config : {choice.config, choice.default_config}) {
      digest.Add(config.algorithm);
      digest.Add(config.protocol);
      digest.Add(config.channels);
    }
    digest.Add(choice.reason);
    digest.Add(choice.predicted_gain);
    digest.Add(choice.predicted_log2);
  }
  return digest.Finish();
}

std::string FileHashes(const Policy& policy) {
  const std::vector<std::byte> bytes = FormatPolicy(policy);
  return fmt::format("{} {:016x}", ToHex(Sha256Of(bytes)), XXH3_64bits(bytes.data(), bytes.size()));
}

void PrintDigests() {
  for (uint64_t seed = 1; seed <= kPolicies; ++seed) {
    const std::unique_ptr<Policy> policy = test::MakeRandomPolicy(seed);
    std::mt19937_64 random(seed);
    fmt::print("policy {} file {}\n", seed, FileHashes(*policy));
    fmt::print("policy {} golden {}\n", seed, GoldenDigest(policy->tensors));
    fmt::print("policy {} structure {}\n", seed, StructureDigest(*policy, random));
    fmt::print("policy {} choices {}\n", seed, ChoiceDigest(*policy, random));
  }
}

int Say(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  return 1;
}

int Run(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "write") == 0) {
    const auto written = WritePolicyFile(argv[2], *test::MakeRandomPolicy(99));
    return written ? 0 : Say(written.error());
  }
  if (argc == 2) {
    const auto read = ReadPolicyFile(argv[1]);
    if (!read) return Say(read.error());
    fmt::print("read {} golden {}\n", ToHex((*read)->sha256), GoldenDigest((*read)->tensors));
  }
  PrintDigests();
  return 0;
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  return dynamiccl::Run(argc, argv);
}
