// SPDX-License-Identifier: Apache-2.0
// Uses communicators and calls with configurations of their own: ncclConfig_t, and ncclCollConfig_t of 2.31
// and later.
#include "tests/real_nccl/driver/programs.h"

namespace real_nccl_driver {
namespace {

ncclConfig_t Channels(int least, int most) {
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  config.minCTAs = least;
  config.maxCTAs = most;
  return config;
}

void ReduceOn(Rank& rank, ncclComm_t communicator, size_t bytes) {
  const Buffers buffers = rank.BuffersOf(bytes);
  rank.Call("AllReduce", bytes, [&] {
    return ncclAllReduce(buffers.send, buffers.receive, bytes / sizeof(float), ncclFloat, ncclSum,
                         communicator, nullptr);
  });
}

void ReduceAs(Rank& rank, ncclComm_t communicator, size_t bytes, const ncclCollConfig_t& config) {
  const Buffers buffers = rank.BuffersOf(bytes);
  rank.Call("AllReduceConfig", bytes, [&] {
    return ncclAllReduceConfig(buffers.send, buffers.receive, bytes / sizeof(float), ncclFloat, ncclSum,
                               communicator, nullptr, &config);
  });
}

// Issues one call whose selection AllReduce has, and one whose selection NCCL may replace.
void IssueConfigured(Rank& rank, ncclComm_t communicator, size_t bytes) {
  ncclCollConfig_t config = DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
  config.maxCTAs = 1;
  config.algSelection = "RING_SIMPLE";
  ReduceAs(rank, communicator, bytes, config);
  config.algSelection = "PAT_SIMPLE";  // AllReduce has no PAT
  config.forceAlgSelection = 0;
  ReduceAs(rank, communicator, bytes, config);
}

}  // namespace

void RunConfigs(Rank& rank) {
  ncclConfig_t narrow = Channels(2, 2);
  narrow.blocking = 1;
  ncclConfig_t wide = Channels(4, 8);
  wide.cgaClusterSize = 2;
  wide.splitShare = 1;
  const ncclComm_t first = rank.Join("narrow", &narrow);
  const ncclComm_t second = rank.Join("wide", &wide);
  const ncclComm_t third = rank.Join("plain");
  for (const ncclComm_t communicator : {first, second, third}) {
    for (const size_t bytes : rank.world().bytes) ReduceOn(rank, communicator, bytes);
  }
  if (rank.world().Has(Newer("AllReduceConfig"))) IssueConfigured(rank, third, rank.world().bytes.front());
  for (const ncclComm_t communicator : {first, second, third}) rank.Destroy(communicator);
}

}  // namespace real_nccl_driver
