// SPDX-License-Identifier: Apache-2.0
// Tests a chained tuner that edits NCCL's constants. Under every tuner version, NCCL and the cost model must
// see the edits.
#include "plugin/chain/chained_tuner.h"

#include <gtest/gtest.h>

#include <cstring>

#include "src/cost_model/tuner_constants.h"
#include "src/nccl_plugin/tuner_constants_rows.h"

namespace dynamiccl {
namespace {

constexpr double kEdited = 77, kEditedRubin = 99;  // as in editing_tuner.c

ncclTunerConstants_v5_t Constants() {
  CostModelInput input;
  input.constants = NcclHopperConstants(1);
  input.fabric = {4, 1, 8, {1, 10}, {5, 5}};
  return ToTunerConstants(input);
}

class EditingTuner : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto found = ChainedTuner::Find(GetParam());
    ASSERT_TRUE(found) << found.error().message;
    tuner_ = std::move(*found);
  }

  bool edits_rubin() const { return std::strstr(GetParam(), "_v7") != nullptr; }

  std::unique_ptr<ChainedTuner> tuner_;
  void* context_ = nullptr;
};

TEST_P(EditingTuner, BehindVersions5And6) {
  ncclTunerConstants_v5_t constants = Constants();
  ncclTunerConstants_v5_t expected = constants;
  expected.baseLatencies[0][1] = kEdited;
  ASSERT_EQ(tuner_->Init({.n_ranks = 4, .n_nodes = 1, .constants = &constants}, &context_), ncclSuccess);
  EXPECT_EQ(std::memcmp(&constants, &expected, sizeof constants), 0);
}

TEST_P(EditingTuner, BehindVersion7) {
  ncclTunerConstants_v5_t constants = Constants();
  ncclTunerConstants_v7_t all = WithRubinRow(constants);
  ncclTunerConstants_v5_t expected = constants;
  expected.baseLatencies[0][1] = kEdited;
  const double rubin = edits_rubin() ? kEditedRubin : all.llMaxBws[4][0];
  ASSERT_EQ(
      tuner_->Init({.n_ranks = 4, .n_nodes = 1, .constants = &constants, .all_constants = &all}, &context_),
      ncclSuccess);
  EXPECT_EQ(std::memcmp(&constants, &expected, sizeof constants), 0) << "what the cost model is given";
  EXPECT_EQ(all.baseLatencies[0][1], kEdited) << "what NCCL is given";
  EXPECT_EQ(all.llMaxBws[4][0], rubin);
}

TEST_P(EditingTuner, WithoutConstants) {
  EXPECT_EQ(tuner_->Init({.n_ranks = 4, .n_nodes = 1}, &context_), ncclSuccess);
}

INSTANTIATE_TEST_SUITE_P(Chained, EditingTuner,
                         testing::Values(DYNAMICCL_TEST_EDITING_V5, DYNAMICCL_TEST_EDITING_V7),
                         [](const auto& one) { return one.index == 0 ? "Version5" : "Version7"; });

}  // namespace
}  // namespace dynamiccl
