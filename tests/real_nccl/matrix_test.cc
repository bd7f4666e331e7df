// SPDX-License-Identifier: Apache-2.0
// The cells of the matrix that every change is held to; real_nccl_matrix runs the rest by command.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/real_nccl/matrix_cell.h"

namespace dynamiccl::real_nccl {
namespace {

struct Named {
  const char* release;
  Door door;
};

void PrintTo(const Named& named, std::ostream* out) {
  *out << named.release << " " << Name(named.door);
}

class MatrixCell : public testing::TestWithParam<Named> {};

TEST_P(MatrixCell, HoldsWithoutAGpu) {
  const Cell cell{.release = *ParseRelease(GetParam().release), .door = GetParam().door};
  const std::string scratch =
      testing::TempDir() + "/matrix_" + cell.release.text() + "_" + std::string(Name(cell.door));
  std::filesystem::create_directories(scratch);
  const CellResult result = Matrix(scratch).Check(cell);
  std::filesystem::remove_all(scratch);
  if (!result.skipped.empty()) GTEST_SKIP() << result.skipped;  // it was not fetched; all cells have a door
  for (const Finding& finding : result.findings)
    EXPECT_TRUE(finding.holds) << cell.name() << ", " << finding.check << ": " << finding.detail;
}

constexpr Named kCells[] = {{"2.21.5", Door::kPreload}, {"2.21.5", Door::kTuner},
                            {"2.22.3", Door::kPreload}, {"2.22.3", Door::kTuner},
                            {"2.24.3", Door::kPreload}, {"2.24.3", Door::kTuner},
                            {"2.28.9", Door::kPreload}, {"2.28.9", Door::kTuner},
                            {"2.32.3", Door::kPreload}, {"2.32.3", Door::kTuner}};
INSTANTIATE_TEST_SUITE_P(RealNccl, MatrixCell, testing::ValuesIn(kCells), [](const auto& cell) {
  std::string name = std::string("Nccl") + cell.param.release + "_" + std::string(Name(cell.param.door));
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

// So that no version of the tuner interface goes untested because its release is not in the cache.
TEST(MatrixCells, AreOfEveryTunerVersionAndOfReleasesThatTheTestCommandFetches) {
  std::ifstream file(REAL_NCCL_TEST_COMMAND);
  const std::string command{std::istreambuf_iterator<char>(file), {}};
  std::set<int> versions;
  for (const Named& cell : kCells) {
    versions.insert(ParseRelease(cell.release)->tuner_version());
    EXPECT_NE(command.find(std::string(" ") + cell.release), std::string::npos)
        << "tools/setup/test.sh does not fetch NCCL " << cell.release;
  }
  EXPECT_EQ(versions, (std::set<int>{2, 3, 4, 5, 6}));
}

// NCCL 2.28.9's own numbers on a DGX H100, 2 x 8 ranks.
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
