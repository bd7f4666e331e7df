// SPDX-License-Identifier: Apache-2.0
#include "agents/provenance.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/policy/policy_layout.h"

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

Provenance TrainingOn(const std::string& name, const std::string& sha256) {
  Provenance provenance{"program", 7, {}, {{"measurements", name, sha256}}, {}};
  provenance.libraries = "LibTorch 2";
  provenance.structure_iterations = 5, provenance.config_iterations = 6;
  provenance.learnt = {"calls 00ff"};
  return provenance;
}

TEST(Provenance, KeepsTheTrainingsFromWhichItWentOn) {
  Provenance second = TrainingOn("b", "bb"), third = TrainingOn("c", "cc");
  second.seed = 8;
  second.earlier = EarlierLines(FormatProvenance(TrainingOn("a", "aa")));
  third.earlier = EarlierLines(FormatProvenance(second));
  const std::vector<Provenance> all = AllTrainings(FormatProvenance(third));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].inputs.at(0).sha256, "cc");
  EXPECT_EQ(all[1].inputs.at(0).sha256, "bb");
  EXPECT_EQ(all[1].seed, 8u);
  EXPECT_EQ(all[2].inputs.at(0).path, "a");
  EXPECT_EQ(all[2].libraries, "LibTorch 2");
  EXPECT_EQ(all[2].structure_iterations, 5);
  EXPECT_EQ(all[2].config_iterations, 6);
  EXPECT_EQ(all[2].learnt, third.learnt);
  EXPECT_TRUE(all[2].earlier.empty());
}

TEST(Provenance, TheEarliestTrainingsGoWhereTheTextWouldBeTooLong) {
  Provenance last = TrainingOn("first", "f");
  for (int i = 0; i < 500; ++i) {
    Provenance next = TrainingOn(fmt::format("{}", i), std::string(64, 'a'));
    next.earlier = EarlierLines(FormatProvenance(last));
    last = next;
  }
  const std::string text = FormatProvenance(last);
  EXPECT_LE(text.size(), kMaxProvenanceBytes);
  EXPECT_GT(text.size(), kMaxProvenanceBytes * 9 / 10);
  const std::vector<Provenance> all = AllTrainings(text);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].inputs.at(0).path, fmt::format("{}", 499 - i));
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
