// SPDX-License-Identifier: Apache-2.0
// Tests files that contain the output of several ranks or jobs, and files that were renamed, rewritten or
// cut.
#include <nlohmann/json.hpp>

#include "tests/traces/import/damaged_copies.h"

namespace dynamiccl {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

const std::string kSamples = DYNAMICCL_SOURCE_DIR "/traces/samples/";

TEST(JoinedFiles, ProfilesOfTwoProcessesInOneFileAreRefused) {
  Json profile = Json::parse(ContentOf(kSamples + "ddp_resnet_2_ranks.pt.trace.json"));
  Json events = profile["traceEvents"];
  for (Json event : events) {
    if (event.contains("pid") && event["pid"].is_number()) event["pid"] = event["pid"].get<int64_t>() + 1;
    profile["traceEvents"].push_back(event);
  }
  EXPECT_THAT(ErrorOf(profile.dump(), "kineto"), HasSubstr("profiles of several ranks in one file"));
}

// A progress bar may begin or end with a carriage return. Other output of a program may end without one.
TEST(JoinedFiles, ALineBehindAProgressBarIsOfItsRank) {
  const std::string log = ContentOf(kSamples + "nccl_debug/2.28.9_communicators.log");
  const auto whole = ImportText(log, "nccl-debug");
  ASSERT_TRUE(whole) << whole.error().message;
  for (const std::string bar :
       {"\r 50%|#####     | 5/10 [00:01<00:01,  4.75it/s]", "50%|#####     | 5/10 [00:01]\r", "loss 3.25"}) {
    std::string mixed;
    int number = 0;
    for (size_t at = 0, end; (end = log.find('\n', at)) != std::string::npos; at = end + 1)
      mixed += (++number % 3 == 0 ? bar : "") + log.substr(at, end + 1 - at);
    const auto imported = ImportText(mixed, "nccl-debug");
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(SizeOf(*imported), SizeOf(*whole)) << bar;
    EXPECT_EQ(imported->trace->sections.size(), 2u);
    EXPECT_EQ(imported->trace->sections[0].host, "node");
    EXPECT_EQ(imported->notes, whole->notes);
  }
}

TEST(JoinedFiles, TwoVersionsOfTheLibraryInALogAreNotTakenForOne) {
  const std::string log = ContentOf(kSamples + "nccl_debug/2.28.9_communicators.log");
  std::string other = log.substr(0, log.size() / 2);
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"node:17028:", "node:18000:"},
                                 {"version 2.28.9", "version 2.29.1"}}) {
    for (size_t at = 0; (at = other.find(from, at)) != std::string::npos; at += to.size())
      other.replace(at, from.size(), to);
  }
  const auto imported = ImportText(other + log, "nccl-debug");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->trace->sections[0].library, "")
      << "the calls are those of 2.28.9, the first line 2.29.1";
  EXPECT_THAT(imported->notes,
              Contains(HasSubstr("NCCL 2.29.1+cuda12.9 and NCCL 2.28.9+cuda12.9 in one log")));
  EXPECT_EQ(ImportText("nccl-library=22809\n" + log, "nccl-debug")->trace->sections[0].library.substr(0, 11),
            "NCCL 2.28.9")
      << "nccl-tests names the same version in another form";
}

TEST(JoinedFiles, WordsAboutVersionsAreNoSecondLibrary) {
  const std::string log = ContentOf(kSamples + "nccl_debug/2.28.9_communicators.log");
  for (const char* const line :
       {R"(RuntimeError('NCCL error in: x.cpp:1, NCCL version 2.28.9\nncclSystemError: call failed'))",
        "built with NCCL version 2.28.9.", "NCCL version 2.28.9, on 8 GPUs",
        "this feature needs NCCL version 2.18 or later"}) {
    const auto imported = ImportText(log + line + "\n", "nccl-debug");
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(imported->trace->sections[0].library, "NCCL 2.28.9+cuda12.9") << line;
  }
}

// Returns the log as two containers on two hosts write it: their only processes have the same id. The second
// host is the first to name its rank.
std::string OnTwoHosts(const std::string& log, const std::string& first, const std::string& second) {
  std::string changed;
  for (const auto& [process, host] :
       {std::pair{"node:17028:17029 [0]", first}, {"node:17028:17030 [1]", second}}) {
    changed = changed.empty() ? log : changed;
    for (size_t at = 0; (at = changed.find(process, at)) != std::string::npos; at += host.size())
      changed.replace(at, std::string(process).size(), host + ":1:10 [0]");
  }
  const size_t start = changed.find('\n') + 1;
  const size_t next = changed.find('\n', start) + 1;
  const size_t after = changed.find('\n', next) + 1;
  return changed.substr(0, start) + changed.substr(next, after - next) + changed.substr(start, next - start) +
         changed.substr(after);
}

TEST(JoinedFiles, AHostWhoseNameEndsWithAnothersIsAHostOfItsOwn) {
  const std::string log = ContentOf(kSamples + "nccl_debug/2.28.9_communicators.log");
  const auto whole = ImportText(log, "nccl-debug");
  ASSERT_TRUE(whole) << whole.error().message;
  ASSERT_EQ(whole->trace->sections.size(), 2u);
  for (const auto& [first, second] :
       {std::pair<std::string, std::string>{"gpu1", "mgpu1"}, {"10.0.0.1", "110.0.0.1"}}) {
    const auto imported = ImportText(OnTwoHosts(log, first, second), "nccl-debug");
    ASSERT_TRUE(imported) << imported.error().message;
    ASSERT_EQ(imported->trace->sections.size(), 2u);
    EXPECT_EQ(imported->trace->sections[0].host, first);
    EXPECT_EQ(imported->trace->sections[1].host, second);
    EXPECT_EQ(imported->trace->sections[1].rank, 1);
    EXPECT_EQ(SizeOf(*imported), SizeOf(*whole));
  }
}

TEST(JoinedFiles, ACallThatAProgressBarCutIsCounted) {
  const std::string log = ContentOf(kSamples + "nccl_debug/2.28.9_communicators.log");
  const auto imported =
      ImportText(log + "node:1:2 [0] NCCL INFO AllReduce: opCount 1 sendbuff 0x1\r 12%|#\n", "nccl-debug");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_THAT(imported->notes, Contains(HasSubstr("1 call in lines that are cut")));
}

TEST(JoinedFiles, ADumpOfTheFlightRecorderHasTheRankOfItsNameOnly) {
  const std::string dump = ContentOf(kSamples + "flight_recorder_rank_1.json");
  const auto rank = [&](const std::string& name) {
    return ImportText(dump, "flight-recorder", name)->trace->sections[0].rank;
  };
  EXPECT_EQ(rank("nccl_trace_rank_1.json"), 1);
  EXPECT_EQ(rank("dump.rank1.host7.json"), 1);
  EXPECT_EQ(rank("frank_dump_0.json"), -1) << "no number follows the word";
  EXPECT_EQ(rank("nccl_trace_rank_2026.json"), -1) << "no group has this rank";
}

TEST(JoinedFiles, TimesOfIssueWithAnExponentAreTimes) {
  Json dump = Json::parse(ContentOf(kSamples + "flight_recorder_rank_1.json"));
  for (Json& entry : dump["entries"]) {
    const auto created_ns = static_cast<double>(entry["time_created_ns"].get<int64_t>());
    const bool send = entry["profiling_name"].get<std::string>().starts_with("nccl:send");
    entry["time_created_ns"] = send ? Json("yesterday") : Json(created_ns);
  }
  const auto imported = ImportText(dump.dump(), "flight-recorder");
  ASSERT_TRUE(imported) << imported.error().message;
  const SectionCalls calls = CallsOf(imported->trace->sections[0]);
  EXPECT_NEAR(static_cast<double>(calls.calls.at(1).issued.issued_ns), 1724779239936775119., 1000.)
      << "behind the send, whose time is 0";
  EXPECT_EQ(CountOf(*imported, "time of issue"), 1u);
}

TEST(JoinedFiles, ATableWhoseLastLineIsOpenMayBeCut) {
  const std::string tables[] = {"collective,ranks,bytes,us\nAllReduce,8,1024,93.2\n",
                                "coll,ranks,bytes,oop_us\nall_reduce,8,1024,93.2\n",
                                "MICRO\n1\nlayer\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLREDUCE\t4096\t100\n"};
  for (const std::string& table : tables) {
    const auto whole = ImportText(table, "");
    ASSERT_TRUE(whole) << whole.error().message;
    EXPECT_THAT(whole->notes, IsEmpty());
    for (const size_t cut : {1, 2}) {
      const auto imported = ImportText(table.substr(0, table.size() - cut), "");
      ASSERT_TRUE(imported) << imported.error().message;
      EXPECT_THAT(imported->notes, Contains(HasSubstr("the last line has no newline")));
    }
  }
}

}  // namespace
}  // namespace dynamiccl
