// SPDX-License-Identifier: Apache-2.0
#include "agents/policy_export.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "agents/eval_command.h"
#include "agents/train_command.h"
#include "src/policy/policy_file.h"
#include "tests/support/sample_policy.h"
#include "tests/support/synthetic_sweep.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl::agents {
namespace {

class PolicyExport : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "policy_export_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ASSERT_TRUE(WriteMeasurementFile(Path("a.measurements"), test::MakeSweep({.topologies = 2})));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  TrainSettings Short(const std::string& output) const {
    TrainSettings settings;
    settings.measurements = {Path("a.measurements")};
    settings.output = Path(output);
    settings.hold_out = {3, {"t1"}};
    settings.structure_iterations = 4;
    settings.config_iterations = 20;
    return settings;
  }

  std::filesystem::path folder_;
};

TEST_F(PolicyExport, TrainingWritesAFileThatReadsBackAndSaysWhereItCameFrom) {
  const Status status = Train(Short("p.dcpolicy"));
  ASSERT_TRUE(status) << status.error().message;
  const auto policy = ReadPolicyFile(Path("p.dcpolicy"));
  ASSERT_TRUE(policy) << policy.error().message;
  const Provenance provenance = ParseProvenance((*policy)->provenance);
  EXPECT_EQ(provenance.hold_out.sizes, 3);
  EXPECT_EQ(provenance.hold_out.topologies, std::vector<std::string>{"t1"});
  ASSERT_EQ(provenance.inputs.size(), 1u);
  EXPECT_EQ(provenance.inputs[0].path, "a.measurements");
  EXPECT_EQ(TrainingDataId(provenance), (*policy)->training_data_id);
}

TEST_F(PolicyExport, GoldenVectorsThatDifferLeaveNoFile) {
  const auto policy = test::MakeRandomPolicy(4);
  policy->tensors.golden_residuals[100][1] += 1;
  EXPECT_FALSE(ExportPolicy(Path("bad.dcpolicy"), *policy));
  EXPECT_FALSE(std::filesystem::exists(Path("bad.dcpolicy")));
}

TEST_F(PolicyExport, WrongInputsAreNamed) {
  TrainSettings settings = Short("p.dcpolicy");
  settings.measurements = {Path("none.measurements")};
  EXPECT_NE(Train(settings).error().message.find("none.measurements"), std::string::npos);
  settings = Short("p.dcpolicy");
  settings.hold_out.sizes = 1;
  EXPECT_EQ(Train(settings).error().kind, ErrorKind::kInvalidArgument) << "everything is held out";
  EXPECT_FALSE(Evaluate({.policies = {Path("none.dcpolicy")}, .measurements = {Path("a.measurements")}}));
  EXPECT_FALSE(Evaluate({.policies = {Path("none.dcpolicy")}}));
}

}  // namespace
}  // namespace dynamiccl::agents
