// SPDX-License-Identifier: Apache-2.0
// Tests every interposed function over hostccl: it must reach the library once, with its arguments and its
// result, and advance the call number exactly when it should.
#include <set>

#include "src/nccl_abi/nccl_function_list.h"
#include "tests/integration/job_fixture.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::testing {
namespace {

std::set<std::string> InterposedFunctions() {
  std::set<std::string> names;
#define DYNAMICCL_INTERPOSED(since, door, result, name, parameters, arguments) \
  if (std::string_view(#door) != "Passed") names.insert(#name);
  DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_INTERPOSED)
  DYNAMICCL_NCCL_FURTHER_FUNCTIONS(DYNAMICCL_INTERPOSED)
#undef DYNAMICCL_INTERPOSED
  return names;
}

class EveryFunction : public JobTest {
 protected:
  JobOptions Options() const {
    JobOptions options{.n_ranks = 1};

    options.also_preload = DYNAMICCL_TEST_WITNESS;
    return options;
  }

  // Requires that each call that the job printed reached the library unchanged. Returns the names of the
  // called functions.
  static std::set<std::string> ExpectUnchanged(const JobResult& job) {
    std::set<std::string> called;
    for (const std::string& line : LinesWith(job.output[0], " reached ")) {
      std::istringstream words(line);
      std::string rank, name, reached_word, reached;
      words >> rank >> name >> reached_word >> reached;
      // The library's ncclBcast calls the public ncclBroadcast. The preload must not see that inner call, so
      // the name that reached the library is the one that the job called.
      EXPECT_EQ(reached, name) << line;
      EXPECT_NE(line.find(" arguments same result same "), std::string::npos) << line;
      called.insert(name);
    }
    return called;
  }
};

TEST_F(EveryFunction, ReachesTheLibraryOnceUnchangedInEveryMode) {
  const Environment modes[] = {
      {},
      {{"DYNAMICCL_TRACE", "%d/t.ctrace"}},
      {{"DYNAMICCL_RULES", File("r.csv", "allreduce,0,1000000000,ring,simple,2,-1,-1\n")}},
      {{"DYNAMICCL_MODE", "adaptive"},
       {"DYNAMICCL_POLICY", PolicyFile("p", Algorithm::kRing, Protocol::kLL)}},
  };
  for (const Environment& mode : modes) {
    SCOPED_TRACE(mode.empty() ? "off" : mode.begin()->first);
    JobOptions options = Options();
    options.environment = mode;
    const JobResult job = Run(options);
    EXPECT_TRUE(job.ok()) << job.AllOutput();
    EXPECT_EQ(ExpectUnchanged(job), InterposedFunctions());
  }
}

using NumberedCall = std::tuple<uint64_t, Collective, int>;  // call number, collective, root or peer

// Returns the calls that each rank of the job's first communicator issued.
std::map<int, std::vector<NumberedCall>> CallsOfTheFirst(const std::vector<TraceRecord>& records) {
  std::map<uint32_t, CommunicatorInfo> communicators;
  uint64_t first = 0;
  for (const TraceRecord& record : records) {
    if (record.kind != static_cast<uint16_t>(RecordKind::kCommunicator)) continue;
    communicators[record.communicator] = CommunicatorOf(record);
    if (first == 0) first = CommunicatorOf(record).id;
  }
  std::map<int, std::vector<NumberedCall>> calls;
  for (const TraceRecord& record : records) {
    const auto of = communicators.find(record.communicator);
    const bool moved = record.kind == static_cast<uint16_t>(RecordKind::kCollective) ||
                       record.kind == static_cast<uint16_t>(RecordKind::kPointToPoint);
    if (!moved || of == communicators.end() || of->second.id != first) continue;
    calls[of->second.rank].push_back(
        {record.call_number, static_cast<Collective>(record.collective), record.root_or_peer});
  }
  return calls;
}

TEST_F(EveryFunction, MovesTheCallNumberExactlyWhenItShould) {
  JobOptions options = Options();
  options.environment = {{"DYNAMICCL_TRACE", "%d/t.ctrace"}};
  const JobResult job = Run(options);
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  const auto trace = ReadTrace(job.folder + "/t.ctrace");
  ASSERT_TRUE(trace) << trace.error().message;
  auto calls = CallsOfTheFirst(trace->sections.at(0).records);
  using enum Collective;
  const std::vector<NumberedCall> of_rank_0 = {
      {0, kAllReduce, -1},
      {1, kAllGather, -1},
      {2, kReduceScatter, -1},
      {3, kBroadcast, 1},
      {4, kBroadcast, 1},
      {5, kReduce, 1},
      // The group of a send and a receive does not advance the number. The AllToAll does, because all ranks
      // must call it.
      {6, kSend, 1},
      {6, kRecv, 1},
      {6, kAllToAll, -1},
      {7, kSend, 1},
      {8, kRecv, 1},
      {9, kAllReduce, -1},
      {10, kAllGather, -1},
      {11, kReduceScatter, -1},
      {12, kBroadcast, 0},
      {13, kReduce, 0},
      {14, kAllToAll, -1},
      // Gather and Scatter: the root's own part, and what the root receives or sends.
      {15, kSend, 0},
      {15, kRecv, 0},
      {15, kRecv, 1},
      {16, kRecv, 0},
      {16, kSend, 0},
      {16, kSend, 1},
      // A call without bytes, refused calls and a simulated group leave no record. A group and one more call
      // follow.
      {17, kAllReduce, -1},
      {17, kAllReduce, -1},
      {17, kAllReduce, -1},
      {17, kSend, 0},
      {17, kRecv, 0},
      {17, kRecv, 1},
      {18, kAllReduce, -1}};
  EXPECT_EQ(calls[0], of_rank_0);
  const std::vector<NumberedCall>& of_rank_1 = calls[1];
  // Rank 0 is the root of the Gather in the last group, so it has two more records than rank 1.
  ASSERT_EQ(of_rank_1.size(), of_rank_0.size() - 2);
  const auto last = [](const std::vector<NumberedCall>& all) { return std::get<0>(all.back()); };
  EXPECT_EQ(last(of_rank_1), last(of_rank_0));
}

// Communicators of every origin must be distinguished, and their size must be known.
TEST_F(EveryFunction, CommunicatorsOfEveryOriginAgreeAndAreTunedTheSame) {
  JobOptions options = Options();
  options.environment =
      With(kShowChoices, {{"NCCL_DEBUG_SUBSYS", "INIT,TUNING"},
                          {"DYNAMICCL_LOG", "info"},
                          {"DYNAMICCL_RULES", File("r.csv", "allreduce,0,1000,ring,simple,2,-1,-1\n")},
                          {"DYNAMICCL_TRACE", "%d/t.ctrace"}});
  const JobResult job = Run(options);
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_THAT(job.AllOutput(), Not(::testing::HasSubstr("keeps NCCL's choice"))) << job.AllOutput();
  const auto trace = ReadTrace(job.folder + "/t.ctrace");
  ASSERT_TRUE(trace) << trace.error().message;
  std::map<uint64_t, std::multiset<std::pair<int, int>>> members;  // rank and size, by communicator
  for (const TraceRecord& record : trace->sections.at(0).records) {
    if (record.kind != static_cast<uint16_t>(RecordKind::kCommunicator)) continue;
    const CommunicatorInfo info = CommunicatorOf(record);
    members[info.id].insert({info.rank, info.n_ranks});
  }
  std::multiset<std::multiset<std::pair<int, int>>> shapes;
  for (const auto& [id, ranks] : members) shapes.insert(ranks);
  const std::multiset<std::pair<int, int>> two{{0, 2}, {1, 2}}, three{{0, 3}, {1, 3}, {2, 3}}, one{{0, 1}};
  // The first one, the split one, the configured one and the scalable one; then the grown one; then the
  // shrunk ones.
  EXPECT_EQ(shapes, (std::multiset<std::multiset<std::pair<int, int>>>{two, two, two, two, three, one, one}));
}

}  // namespace
}  // namespace dynamiccl::testing
