// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "src/nccl_abi/tuner_v2.h"
#include "src/nccl_abi/tuner_v3.h"
#include "src/nccl_abi/tuner_v4.h"
#include "src/nccl_abi/tuner_v7.h"
#include "tests/src/nccl_abi/abi_values.h"

namespace dynamiccl::abi {
namespace {

TEST(NcclAbi, EqualsNvidiasHeader) {
  const std::vector<AbiValue> own = OwnValues();
  const std::vector<AbiValue> nvidia = NvidiaValues();
  if (nvidia.empty()) {
    GTEST_SKIP() << "NVIDIA's nccl.h 2.32.3 was not found when this was built: run tools/setup/fetch_nccl.sh "
                    "and configure "
                    "again, or pass -DDYNAMICCL_NCCL_INCLUDE=/folder/of/nccl.h";
  }
  ASSERT_EQ(own.size(), nvidia.size());
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_EQ(own[i].name, nvidia[i].name);
    EXPECT_EQ(own[i].value, nvidia[i].value) << own[i].name;
  }
}

// These are the sizes in NVIDIA's library, read from its debug information (`gdb -ex 'ptype /o
// ncclTuner_v6_t' libnccl.so.2`).
TEST(TunerAbi, LayoutsAreNvidias) {
  EXPECT_EQ(offsetof(ncclTuner_v2_t, getCollInfo), 16u);
  EXPECT_EQ(offsetof(ncclTuner_v3_t, getCollInfo), 16u);
  EXPECT_EQ(offsetof(ncclTuner_v4_t, destroy), 24u);
  EXPECT_EQ(sizeof(ncclTuner_v5_t), 32u);
  EXPECT_EQ(sizeof(ncclTuner_v6_t), 40u);
  EXPECT_EQ(offsetof(ncclTuner_v6_t, getCollInfo), 16u);
  EXPECT_EQ(offsetof(ncclTuner_v6_t, getChunkSize), 32u);
  EXPECT_EQ(sizeof(ncclTunerConstants_v5_t), 1152u);
  EXPECT_EQ(offsetof(ncclTunerConstants_v5_t, hwLatencies), 168u);
  EXPECT_EQ(offsetof(ncclTunerConstants_v5_t, llMaxBws), 672u);
  EXPECT_EQ(offsetof(ncclTunerConstants_v5_t, perChMaxNVLSTreeBws), 1056u);
  EXPECT_EQ(sizeof(ncclNvlDomainInfo_v5_t), 12u);
}

// The sizes are those of the header of NCCL 2.32.6 (src/include/plugin/tuner/tuner_v7.h), not of a library.
TEST(TunerAbi, Version7HasARowMore) {
  EXPECT_EQ(sizeof(ncclTuner_v7_t), sizeof(ncclTuner_v6_t));
  EXPECT_EQ(offsetof(ncclTuner_v7_t, getChunkSize), 32u);
  EXPECT_EQ(offsetof(ncclTunerConstants_v7_t, llMaxBws), 672u);
  EXPECT_EQ(offsetof(ncclTunerConstants_v7_t, perChMaxRingLL128Bws), 672u + 5 * 3 * 8);
  EXPECT_EQ(sizeof(ncclTunerConstants_v7_t), 1152u + 5 * 3 * 8);
}

}  // namespace
}  // namespace dynamiccl::abi
