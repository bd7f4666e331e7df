// SPDX-License-Identifier: Apache-2.0
// Calls the tuner as a library might: in any order, and with numbers of later releases. Input, repeated: {u8
// what, ...}. DYNAMICCL_POLICY names a policy that prefers one config.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

#include "src/cost_model/tuner_constants.h"
#include "src/nccl_abi/tuner_v2.h"
#include "src/nccl_abi/tuner_v3.h"
#include "src/nccl_abi/tuner_v4.h"
#include "src/nccl_abi/tuner_v7.h"
#include "src/nccl_plugin/tuner_constants_rows.h"
#include "src/policy/policy_file.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/sample_policy.h"

extern "C" {
extern const ncclTuner_v2_t ncclTunerPlugin_v2;
extern const ncclTuner_v3_t ncclTunerPlugin_v3;
extern const ncclTuner_v4_t ncclTunerPlugin_v4;
extern const ncclTuner_v5_t ncclTunerPlugin_v5;
extern const ncclTuner_v6_t ncclTunerPlugin_v6;
extern const ncclTuner_v7_t ncclTunerPlugin_v7;
}

namespace {

using namespace dynamiccl;

// Sets the policy. It must run before the first call, which reads the settings.
bool UsePolicy() {
  const std::string path =
      std::filesystem::temp_directory_path() / ("tuner_calls." + std::to_string(::getpid()));
  const auto digest =
      WritePolicyFile(path, *test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kSimple));
  fuzz::Require(digest.has_value(), "a policy can be written");
  ::setenv("DYNAMICCL_POLICY", path.c_str(), 1);
  ::setenv("DYNAMICCL_POLICY_SHA256", ToHex(*digest).c_str(), 1);
  std::atexit([] { (void)::unlink(std::getenv("DYNAMICCL_POLICY")); });
  return true;
}

constexpr int kVersions = 6;

// The communicators that the input made, by {version, number}.
class Doors {
 public:
  ~Doors() {
    for (auto& [key, context] : contexts_) Finalize(key.first, context);
  }

  void Init(ByteReader& input) {
    const Key key = NextKey(input);
    if (contexts_.contains(key)) return;
    const size_t ranks = input.Get<uint16_t>();
    const size_t nodes = input.Get<uint16_t>();
    ncclNvlDomainInfo_v5_t domains{1, 1, 1};
    ncclTunerConstants_v5_t constants = input.Get<uint8_t>() % 2 == 0
                                            ? input.Get<ncclTunerConstants_v5_t>()
                                            : True(static_cast<int>(ranks), static_cast<int>(nodes));
    const bool tells = input.Get<uint8_t>() % 4 != 0;
    void*& context = contexts_[key];
    const uint64_t id = key.second;
    ncclTunerConstants_v5_t* const told = tells ? &constants : nullptr;
    ncclResult_t result = ncclSuccess;
    if (key.first == 0) result = ncclTunerPlugin_v2.init(ranks, nodes, nullptr, &context);
    if (key.first == 1) result = ncclTunerPlugin_v3.init(ranks, nodes, nullptr, &context);
    if (key.first == 2) result = ncclTunerPlugin_v4.init(ranks, nodes, nullptr, &context);
    if (key.first == 3) result = ncclTunerPlugin_v5.init(&context, id, ranks, nodes, nullptr, &domains, told);
    if (key.first == 4) result = ncclTunerPlugin_v6.init(&context, id, ranks, nodes, nullptr, &domains, told);
    ncclTunerConstants_v7_t all = WithRubinRow(constants);
    if (key.first == 5)
      result = ncclTunerPlugin_v7.init(&context, id, ranks, nodes, nullptr, &domains, tells ? &all : nullptr);
    fuzz::Require(result == ncclSuccess, "init never fails the job's communicator");
  }

  void Ask(ByteReader& input) {
    const Key key = NextKey(input);
    void* const context = contexts_.contains(key) ? contexts_.at(key) : nullptr;
    const auto function = static_cast<ncclFunc_t>(input.Get<uint8_t>());
    const auto bytes = input.Get<size_t>() >> input.Get<uint8_t>() % 64;
    const int operations = input.Get<int8_t>();
    const int algorithms = input.Get<uint8_t>() % 10;
    const int protocols = input.Get<uint8_t>() % 5;
    std::vector<float> table;
    for (int i = 0; i < algorithms * protocols; ++i) table.push_back(NextCost(input));
    Answer(key.first, context, {function, bytes, operations, algorithms, protocols}, table);
  }

  void End(ByteReader& input) {
    const Key key = NextKey(input);
    if (!contexts_.contains(key)) return;
    Finalize(key.first, contexts_.at(key));
    contexts_.erase(key);
  }

 private:
  using Key = std::pair<int, int>;
  struct Question {
    ncclFunc_t function;
    size_t bytes;
    int operations;
    int algorithms;
    int protocols;
  };

  static Key NextKey(ByteReader& input) {
    const auto byte = input.Get<uint8_t>();
    return {byte % kVersions, byte / kVersions % 3};
  }
  static float NextCost(ByteReader& input) {
    const auto byte = input.Get<uint8_t>();
    if (byte == 0) return input.Get<float>();
    return byte < 20 ? -1.0f : static_cast<float>(byte);
  }
  static ncclTunerConstants_v5_t True(int ranks, int nodes) {
    CostModelInput input;
    input.constants = NcclHopperConstants(std::max(1, nodes));
    input.fabric = {ranks, nodes, 8, {1, 10}, {5, 5}};
    return ToTunerConstants(input);
  }

  void Answer(int version, void* context, const Question& q, std::vector<float>& table) {
    const std::vector<float> before = table;
    auto** const costs = reinterpret_cast<float**>(table.data());
    int channels = 0;
    int algorithm = -1;
    int protocol = -1;
    ncclResult_t result = ncclSuccess;
    if (version == 0)
      result = ncclTunerPlugin_v2.getCollInfo(context, q.function, q.bytes, 1, 1, q.operations, &algorithm,
                                              &protocol, &channels);
    if (version == 1)
      result = ncclTunerPlugin_v3.getCollInfo(context, q.function, q.bytes, q.operations, costs, q.algorithms,
                                              q.protocols, &channels);
    if (version == 2)
      result = ncclTunerPlugin_v4.getCollInfo(context, q.function, q.bytes, q.operations, costs, q.algorithms,
                                              q.protocols, 0, &channels);
    if (version == 3)
      result = ncclTunerPlugin_v5.getCollInfo(context, q.function, q.bytes, q.operations, costs, q.algorithms,
                                              q.protocols, 0, &channels);
    if (version == 4)
      result = ncclTunerPlugin_v6.getCollInfo(context, q.function, q.bytes, q.operations, costs, q.algorithms,
                                              q.protocols, 0, &channels);
    if (version == 5)
      result = ncclTunerPlugin_v7.getCollInfo(context, q.function, q.bytes, q.operations, costs, q.algorithms,
                                              q.protocols, 0, &channels);
    fuzz::Require(result == ncclSuccess, "a question never fails the job's call");
    ExpectLegal(before, table);
    fuzz::Require(channels >= 0, "no negative number of channels");
    fuzz::Require((algorithm == -1) == (protocol == -1), "both are named or none");
  }

  // Requires that at most one entry was written, as the cheapest, and none that NCCL had ruled out.
  static void ExpectLegal(const std::vector<float>& before, const std::vector<float>& after) {
    int changed = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      if (std::memcmp(&before[i], &after[i], sizeof(float)) == 0) continue;
      ++changed;
      fuzz::Require(after[i] == 0.0f && before[i] >= 0.0f, "only what NCCL offers is chosen");
    }
    fuzz::Require(changed <= 1, "one entry is chosen");
  }

  static void Finalize(int version, void* context) {
    ncclResult_t result = ncclSuccess;
    if (version == 0) result = ncclTunerPlugin_v2.destroy(context);
    if (version == 1) result = ncclTunerPlugin_v3.destroy(context);
    if (version == 2) result = ncclTunerPlugin_v4.destroy(context);
    if (version == 3) result = ncclTunerPlugin_v5.finalize(context);
    if (version == 4) result = ncclTunerPlugin_v6.finalize(context);
    if (version == 5) result = ncclTunerPlugin_v7.finalize(context);
    fuzz::Require(result == ncclSuccess, "finalize never fails");
  }

  std::map<Key, void*> contexts_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool ready = UsePolicy();
  fuzz::Require(ready, "a policy is in use");
  ByteReader input(fuzz::BytesOf(data, size));
  Doors doors;
  while (input.ok() && input.remaining() > 0) {
    const auto what = input.Get<uint8_t>() % 8;
    if (what == 0) {
      doors.Init(input);
    } else if (what == 7) {
      doors.End(input);
    } else {
      doors.Ask(input);
    }
  }
  return 0;
}
