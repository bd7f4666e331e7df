// SPDX-License-Identifier: Apache-2.0
// Tests the shipped policy. Outside the fabrics of its training it leaves the choice to NCCL.
#include <gtest/gtest.h>

#include "src/policy/config_inference.h"
#include "src/policy/policy_file.h"

namespace dynamiccl {
namespace {

struct Changes {
  int asked = 0;
  int changed = 0;
};

// Asks about every collective from 1 KiB to 1 GiB.
void AskAll(const Policy& policy, const CostModelInput& model, Changes& changes) {
  for (int c = 0; c < kTunableCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    for (uint64_t bytes = 1 << 10; bytes <= 1 << 30; bytes *= 4) {
      const ConfigQuestion question{collective, bytes, NcclConfigs(collective)};
      ++changes.asked;
      changes.changed += !ChooseConfig(policy, model, question).config.leaves_nccl_alone();
    }
  }
}

TEST(StarterPolicy, LeavesNcclAloneOnGpuClusters) {
  const auto policy = ReadPolicyFile(STARTER_POLICY);
  ASSERT_TRUE(policy) << Describe(policy.error());
  Changes changes;
  for (const int per_node : {1, 2, 4, 8}) {
    for (const int nodes : {1, 2, 4, 16, 128}) {
      if (per_node * nodes == 1) continue;
      for (const int channels : {2, 8, 16, 24, 32, 64}) {
        for (const double inside : {12.0, 20.0, 60.0, 150.0, 370.0}) {  // In GB/s, from PCIe to NVLink.
          for (const double between : {12.5, 25.0, 50.0, 400.0}) {
            CostModelInput model;
            model.fabric = {.n_ranks = per_node * nodes,
                            .n_nodes = nodes,
                            .max_channels = channels,
                            .intra = {1, inside},
                            .inter = {nodes > 1 ? 5.0 : 0.0, nodes > 1 ? between : 0.0}};
            model.constants = NcclHopperConstants(nodes);
            AskAll(**policy, model, changes);
          }
        }
      }
    }
  }
  EXPECT_GT(changes.asked, 10'000);
  EXPECT_EQ(changes.changed, 0);
}

TEST(StarterPolicy, LeavesNcclAloneWithMoreRanksOrOtherChannels) {
  const auto policy = ReadPolicyFile(STARTER_POLICY);
  ASSERT_TRUE(policy) << Describe(policy.error());
  Changes changes;
  for (const int ranks : {3, 4, 8, 64, 1024}) {
    for (const int channels : {1, 2, 4, 8, 16}) {
      CostModelInput model;
      model.fabric = {
          .n_ranks = ranks, .n_nodes = 2, .max_channels = channels, .intra = {0, 8}, .inter = {30, 1.5}};
      model.gpu_corrections = false;
      AskAll(**policy, model, changes);
    }
  }
  EXPECT_EQ(changes.changed, 0);
}

}  // namespace
}  // namespace dynamiccl
