// SPDX-License-Identifier: Apache-2.0
// Shrink and Grow with ranks as processes, on one host and on several pretended hosts (HOSTCCL_HOSTID). The
// groups lose a host, gain a host, and lose the rank that made the id.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/rank_processes.h"

namespace dynamiccl {
namespace {

using testing::Leftovers;
using testing::RankEnd;
using testing::RankPlace;
using testing::RunRanks;

const auto* const kOwnNamespaces = ::testing::AddGlobalTestEnvironment(new testing::OwnNamespaces);

struct Case {
  const char* name;
  const char* behaviour;
  const char* hosts;  // One letter per rank names the rank's host.
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.behaviour << " on " << c.hosts;
}

class Regroup : public ::testing::TestWithParam<Case> {};

TEST_P(Regroup, TheNewCommunicatorsWork) {
  const auto before = Leftovers();
  const std::string hosts = GetParam().hosts;
  const std::string behaviour = GetParam().behaviour;
  const auto place = [&](int rank) {
    return RankPlace{{{"HOSTCCL_HOSTID", hosts.substr(static_cast<size_t>(rank), 1)}}, ""};
  };
  const auto ends = RunRanks({DYNAMICCL_REGROUP_PROGRAM, static_cast<int>(hosts.size()), behaviour, place});
  ASSERT_EQ(ends.size(), hosts.size());
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    const RankEnd& end = ends[rank];
    EXPECT_TRUE(rank == 0 && behaviour == "bereave" ? end.killed() : end.exited_with(0))
        << "rank " << rank << ": status " << end.status << (end.hung ? ", hung" : "");
  }
  EXPECT_EQ(Leftovers(), before);
}

// With two hosts, the odd ranks are on host b. "halve" leaves only host a. "shrink" leaves ranks of both
// hosts, and then one rank of each.
constexpr Case kCases[] = {{"ShrinkOneHost", "shrink", "aaaa"},    {"ShrinkTwoHosts", "shrink", "abab"},
                           {"ShrinkThreeHosts", "shrink", "abca"}, {"HalveTwoHosts", "halve", "ababa"},
                           {"BereaveOneHost", "bereave", "aaa"},   {"BereaveTwoHosts", "bereave", "abab"},
                           {"GrowOneHost", "grow", "aaa"},         {"GrowByAHost", "grow", "aab"},
                           {"GrowTwoHosts", "grow", "abba"}};
INSTANTIATE_TEST_SUITE_P(Hosts, Regroup, ::testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace dynamiccl
