// SPDX-License-Identifier: Apache-2.0
// Makes one small world of the committed data set of NCCL's choices again. The library must choose the same.
#include "tests/real_nccl/own_choices.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/real_nccl/require_release.h"
#include "traces/format/nccl_choices_file.h"

namespace dynamiccl::real_nccl {
namespace {

const NcclWorld kWorld{"dgx_h100", 1, 8};

class OwnChoices : public testing::TestWithParam<NcclRelease> {};

// Returns the choices as a file keeps them, with costs of six digits.
NcclChoices Kept(const NcclChoices& choices) {
  return ParseNcclChoices(FormatNcclChoices(choices).value(), "made").value();
}

TEST_P(OwnChoices, AreThoseOfTheCommittedDataSet) {
  const NcclRelease release = GetParam();
  REAL_NCCL_REQUIRE_RELEASE(release);
  const auto committed = ReadNcclChoices(NCCL_CHOICES_FILE);
  ASSERT_TRUE(committed) << committed.error().message;
  const std::string scratch = testing::TempDir() + "/own_choices_" + release.text();
  std::filesystem::create_directories(scratch);
  NcclChoices made;
  EXPECT_EQ(AddOwnChoices(release, kWorld, ChoiceSizes(), scratch, &made), "");
  std::filesystem::remove_all(scratch);
  ASSERT_TRUE(made.releases[release.text()].worlds.contains(kWorld));
  const NcclReleaseChoices& known = committed->releases.at(release.text());
  const NcclReleaseChoices now = Kept(made).releases.at(release.text());
  EXPECT_EQ(now.constants, known.constants);
  const NcclCommunicator& then = known.worlds.at(kWorld);
  EXPECT_EQ(now.worlds.at(kWorld).channels, then.channels);
  EXPECT_EQ(now.worlds.at(kWorld).graphs, then.graphs);
  for (int c = 0; c < kTunableCollectives; ++c) {
    const auto index = static_cast<size_t>(c);
    EXPECT_EQ(now.worlds.at(kWorld).collectives[index].calls.size(), ChoiceSizes().size());
    EXPECT_TRUE(now.worlds.at(kWorld).collectives[index] == then.collectives[index])
        << Name(static_cast<Collective>(c));
  }
}

INSTANTIATE_TEST_SUITE_P(Releases, OwnChoices,
                         testing::Values(NcclRelease{2, 21, 5}, NcclRelease{2, 28, 9}, NcclRelease{2, 32, 3}),
                         [](const auto& test) {
                           std::string name = test.param.text();
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(OwnChoicesOfAnUnknownMachine, AreAnErrorThatSaysSo) {
  const NcclRelease release = {2, 28, 9};
  REAL_NCCL_REQUIRE_RELEASE(release);
  NcclChoices made;
  const std::string scratch = testing::TempDir() + "/own_choices_nowhere";
  std::filesystem::create_directories(scratch);
  EXPECT_NE(AddOwnChoices(release, {"no_such_machine", 1, 1}, {1024}, scratch, &made), "");
  EXPECT_TRUE(made.releases.empty());
  std::filesystem::remove_all(scratch);
}

}  // namespace
}  // namespace dynamiccl::real_nccl
