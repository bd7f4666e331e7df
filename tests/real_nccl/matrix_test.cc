// SPDX-License-Identifier: Apache-2.0
// Checks the cells of the matrix that every change must pass. The command real_nccl_matrix runs all other
// cells.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/real_nccl/matrix_cell.h"

namespace dynamiccl::real_nccl {
namespace {

class MatrixCells : public testing::TestWithParam<const char*> {};

// The cells of a release are compared with one run of NCCL alone. The matrix makes this run for the first
// cell.
TEST_P(MatrixCells, HoldWithoutAGpu) {
  const NcclRelease release = *ParseRelease(GetParam());
  const std::string scratch = testing::TempDir() + "/matrix_" + release.text();
  std::filesystem::create_directories(scratch);
  Matrix matrix(scratch);
  const CellResult results[] = {matrix.Check({.release = release, .door = Door::kPreload}),
                                matrix.Check({.release = release, .door = Door::kTuner})};
  std::filesystem::remove_all(scratch);
  for (const CellResult& result : results) {
    for (const Finding& finding : result.findings)
      EXPECT_TRUE(finding.holds) << result.cell.name() << ", " << finding.check << ": " << finding.detail;
  }
  // All of these releases have both doors. A cell is therefore skipped only if its release was not fetched,
  // and then the other cell is skipped too.
  EXPECT_EQ(results[0].skipped.empty(), results[1].skipped.empty())
      << results[0].skipped + results[1].skipped;
  if (!results[0].skipped.empty()) GTEST_SKIP() << results[0].skipped;
}

constexpr const char* kReleases[] = {"2.21.5", "2.22.3", "2.24.3", "2.28.9", "2.32.3"};
INSTANTIATE_TEST_SUITE_P(RealNccl, MatrixCells, testing::ValuesIn(kReleases), [](const auto& release) {
  std::string name = std::string("Nccl") + release.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

// Every version of the tuner interface must be tested, by a release that the test command fetches.
TEST(MatrixReleases, AreOfEveryTunerVersionAndOfReleasesThatTheTestCommandFetches) {
  std::ifstream file(REAL_NCCL_TEST_COMMAND);
  const std::string command{std::istreambuf_iterator<char>(file), {}};
  std::set<int> versions;
  for (const char* release : kReleases) {
    versions.insert(ParseRelease(release)->tuner_version());
    EXPECT_NE(command.find(std::string(" ") + release), std::string::npos)
        << "tools/setup/test.sh does not fetch NCCL " << release;
  }
  EXPECT_EQ(versions, (std::set<int>{2, 3, 4, 5, 6}));
}

// The numbers are those of NCCL 2.28.9 on a DGX H100 with 2 x 8 ranks.
TEST(ScheduledChannels, GivesEachChannelItsLeastTraffic) {
  const auto scheduled = [](const char* function, size_t bytes, Protocol protocol, int asked) {
    return ScheduledChannels({2, 28, 9}, {function, bytes, Algorithm::kRing, protocol}, asked, 16, 16);
  };
  EXPECT_EQ(scheduled("AllReduce", 1024, Protocol::kLL, 3), 1);
  EXPECT_EQ(scheduled("AllReduce", 1 << 20, Protocol::kLL, 3), 3);
  EXPECT_EQ(scheduled("AllReduce", 256 << 20, Protocol::kSimple, 48), 16);
}

}  // namespace
}  // namespace dynamiccl::real_nccl
