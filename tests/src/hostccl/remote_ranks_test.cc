// SPDX-License-Identifier: Apache-2.0
// Ranks on several hosts. One test pretends the hosts over loopback (HOSTCCL_HOSTID) and runs everywhere. The
// other joins two network namespaces by a veth pair and needs the right to create them.
#include <gtest/gtest.h>

#include "tests/support/rank_processes.h"

namespace dynamiccl {
namespace {

using testing::Leftovers;
using testing::RankEnd;
using testing::RankPlace;
using testing::RankRun;
using testing::RunRanks;

const auto* const kOwnNamespaces = ::testing::AddGlobalTestEnvironment(new testing::OwnNamespaces);

struct Case {
  int n_ranks;
  const char* behaviour;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.n_ranks << " ranks, " << c.behaviour;
}

void ExpectGoodEnds(const std::vector<RankEnd>& ends, const Case& c) {
  ASSERT_EQ(ends.size(), static_cast<size_t>(c.n_ranks));
  for (int rank = 0; rank < c.n_ranks; ++rank) {
    const RankEnd& end = ends[static_cast<size_t>(rank)];
    const bool dies = rank == 1 && std::string(c.behaviour) == "die";
    EXPECT_TRUE(dies ? end.killed() : end.exited_with(0))
        << "rank " << rank << ": status " << end.status << (end.hung ? ", hung" : "");
  }
}

class PretendedHosts : public ::testing::TestWithParam<Case> {};

// Ranks 0 and 1 are on different hosts, and the others alternate between both. With three or more ranks, a
// rank has peers on its own host and on the other one.
TEST_P(PretendedHosts, Work) {
  const auto before = Leftovers();
  const auto on_host = [](int rank) {
    return RankPlace{{{"HOSTCCL_HOSTID", rank % 2 == 0 ? "even" : "odd"}}, ""};
  };
  ExpectGoodEnds(RunRanks({DYNAMICCL_RANDOM_RANK_PROGRAM, GetParam().n_ranks, GetParam().behaviour, on_host}),
                 GetParam());
  EXPECT_EQ(Leftovers(), before);
}

constexpr Case kCases[] = {{2, "random"}, {3, "random"}, {4, "random"},
                           {4, "split"},  {3, "abort"},  {3, "die"}};
INSTANTIATE_TEST_SUITE_P(Ranks, PretendedHosts, ::testing::ValuesIn(kCases));

// Two namespaces with the addresses 10.83.77.1 and .2. The destructor removes them with all their contents.
class TwoNamespaces {
 public:
  TwoNamespaces() : tag_("hcl" + std::to_string(::getpid())) {
    ready_ = Run("ip netns add " + Name(0)) && Run("ip netns add " + Name(1)) &&
             Run("ip -n " + Name(0) + " link add v0 type veth peer name v1 netns " + Name(1)) &&
             Up(0, "v0") && Up(1, "v1");
  }
  ~TwoNamespaces() {
    Run("ip netns del " + Name(0));
    Run("ip netns del " + Name(1));
  }
  bool ready() const { return ready_; }
  std::string Name(int which) const { return tag_ + (which == 0 ? "a" : "b"); }

 private:
  static bool Run(const std::string& command) {
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
  }
  bool Up(int which, const std::string& interface) const {
    const std::string here = "ip -n " + Name(which) + " ";
    return Run(here + "addr add 10.83.77." + std::to_string(which + 1) + "/24 dev " + interface) &&
           Run(here + "link set " + interface + " up") && Run(here + "link set lo up");
  }

  std::string tag_;
  bool ready_ = false;
};

class NetworkNamespaces : public ::testing::TestWithParam<Case> {};

TEST_P(NetworkNamespaces, Work) {
  const TwoNamespaces namespaces;
  if (!namespaces.ready()) GTEST_SKIP() << "no right to make network namespaces (ip netns add)";
  const auto in_namespace = [&](int rank) {
    return RankPlace{{{"HOSTCCL_INTERFACE", "v"}}, namespaces.Name(rank % 2)};
  };
  ExpectGoodEnds(
      RunRanks({DYNAMICCL_RANDOM_RANK_PROGRAM, GetParam().n_ranks, GetParam().behaviour, in_namespace}),
      GetParam());
}

INSTANTIATE_TEST_SUITE_P(Ranks, NetworkNamespaces, ::testing::ValuesIn(kCases));

}  // namespace
}  // namespace dynamiccl
