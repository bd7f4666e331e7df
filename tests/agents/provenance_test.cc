// SPDX-License-Identifier: Apache-2.0
#include "agents/provenance.h"

#include <gtest/gtest.h>

namespace dynamiccl::agents {
namespace {

TEST(Provenance, SurvivesItsText) {
  const Provenance before{
      "program", 7, {3, {"slow links", "sim*"}, 8}, {{"trace", "dir/a.ctrace", "ab12"}}, {"took 3 s"}};
  const Provenance after = ParseProvenance(FormatProvenance(before));
  EXPECT_EQ(after.program, "program");
  EXPECT_EQ(after.seed, 7u);
  EXPECT_EQ(after.hold_out.sizes, 3);
  EXPECT_EQ(after.hold_out.ranks, 8);
  EXPECT_EQ(after.hold_out.topologies, before.hold_out.topologies);
  ASSERT_EQ(after.inputs.size(), 1u);
  EXPECT_EQ(after.inputs[0].path, "a.ctrace") << "folders are not told";
  EXPECT_EQ(after.inputs[0].sha256, "ab12");
  EXPECT_EQ(after.notes, before.notes);
  EXPECT_EQ(TrainingDataId(after), TrainingDataId(before));
}

TEST(Provenance, ForeignTextIsNoProvenance) {
  const Provenance provenance = ParseProvenance("hello\nseed\nhold_out_sizes: many\n");
  EXPECT_EQ(provenance.hold_out.sizes, 0);
  EXPECT_TRUE(provenance.inputs.empty());
}

TEST(HashInput, MissingFilesAreErrorsWithANextStep) {
  const auto input = HashInput("trace", "/does/not/exist.ctrace");
  ASSERT_FALSE(input);
  EXPECT_EQ(input.error().kind, ErrorKind::kNotFound);
  EXPECT_FALSE(input.error().hint.empty());
}

}  // namespace
}  // namespace dynamiccl::agents
