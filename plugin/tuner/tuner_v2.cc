// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner interface, version 2 (NCCL 2.21). The tuner names one pair of algorithm and protocol instead
// of a cost for each pair. NCCL 2.21 uses the named pair unchecked, even against the user's NCCL_ALGO and
// NCCL_PROTO. So only pairs that every machine has are named, and none if the user pinned an algorithm or a
// protocol.
#include "src/nccl_abi/tuner_v2.h"

#include "plugin/runtime/mask_votes.h"
#include "plugin/tuner/tuner_calls.h"

namespace dynamiccl {
namespace {

// A cost table as in the later versions, in which all possible pairs of algorithm and protocol cost the same.
class NamedPair {
 public:
  explicit NamedPair(Collective collective) {
    const ConfigMask possible = OfferedEverywhere(collective);
    for (size_t i = 0; i < possible.size(); ++i) costs_[i] = possible.test(i) ? 1.0f : NCCL_ALGO_PROTO_IGNORE;
  }
  float* costs() { return costs_; }

  // Returns the pair with cost 0; leaves both arguments unchanged if there is none.
  void Read(int* algorithm, int* protocol) const {
    for (int i = 0; i < kAlgorithms * kProtocols; ++i) {
      if (costs_[i] != 0.0f) continue;
      *algorithm = i / kProtocols;
      *protocol = i % kProtocols;
      return;
    }
  }

 private:
  float costs_[kAlgorithms * kProtocols];
};

// This version passes no cost table, so the session gets a table made here.
ncclResult_t GetCollInfo(void* context, ncclFunc_t function, size_t bytes, int, int, int n_pipe_ops,
                         int* algorithm, int* protocol, int* channels) {
  static const bool pinned = PairsArePinned();
  if (context == nullptr || pinned || function < 0 || function >= kTunableCollectives) return ncclSuccess;
  NamedPair pair(static_cast<Collective>(function));
  static_cast<TunerSession*>(context)->Answer(
      {function, bytes, n_pipe_ops, pair.costs(), kAlgorithms, kProtocols, /*registered=*/0, channels});
  pair.Read(algorithm, protocol);
  return ncclSuccess;
}

}  // namespace
}  // namespace dynamiccl

extern "C" __attribute__((visibility("default"))) const ncclTuner_v2_t ncclTunerPlugin_v2 = {
    "DynamICCL", dynamiccl::BeginSession, dynamiccl::GetCollInfo, dynamiccl::EndSession};
