// SPDX-License-Identifier: Apache-2.0
// Tests how runs become verdicts. A script replaces the program that calls NCCL. It ends each run of each
// release as the test specifies. canary_reports.bats judges real releases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tools/canary/canary.h"
#include "tools/canary/canary_text.h"
#include "tools/launch/temporary_folder.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Ends the run as the next line of the release's file `plan` says: "passes", "crashes", "hangs", or "fails
// WARNING". The last line applies to all further runs. "with WARNING" passes with a warning. "adapters 0 1"
// passes with connections over these adapters. "meets" passes as soon as a second run of the release takes
// place at the same time.
constexpr const char* kDriver = R"sh(#!/bin/sh
release="${LD_LIBRARY_PATH##*:}"
line="$(head -1 "$release/plan")"
[ "$(wc -l <"$release/plan")" -eq 1 ] || sed -i 1d "$release/plan"
warns() { echo "h:1:2 [0] graph/search.cc:1 NCCL WARN $1"; }
case "$line" in
  crashes*) warns "${line#crashes }"; warns "and then"; kill -SEGV $$ ;;
  hangs) sleep 30 ;;
  meets) if mkfifo "$release/met"; then cat "$release/met"; else echo >"$release/met"; fi ;;
  fails*) warns "${line#fails }"; exit 4 ;;
  with*) warns "${line#with }" ;;
  adapters*) for n in ${line#adapters }; do
    echo "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Described/$n"
  done ;;
esac
)sh";

class Judging : public testing::Test {
 protected:
  Judging() {
    setenv("XDG_CACHE_HOME", folder_.File("cache").c_str(), 1);
    fs::create_directories(folder_.File("objects"));
    const std::string driver = folder_.File("objects") + "/real_nccl_driver";
    EXPECT_TRUE(WriteTextFile(driver, kDriver));
    fs::permissions(driver, fs::perms::owner_all);
    installation_.real_nccl_dir = folder_.File("objects");
  }
  ~Judging() override { unsetenv("XDG_CACHE_HOME"); }

  // Puts a release into the cache. Its runs end as the lines of `plan` say.
  ReleaseLibrary Release(const char* text, const std::string& plan) {
    const std::string lib =
        fmt::format("{}/dynamiccl/wheels/nccl-{}/nvidia/nccl/lib", folder_.File("cache"), text);
    fs::create_directories(lib);
    EXPECT_TRUE(WriteTextFile(lib + "/libnccl.so.2", text));
    EXPECT_TRUE(WriteTextFile(lib + "/plan", plan + "\n"));
    return {*real_nccl::ParseRelease(text), lib};
  }

  // Judges the second release against the first and bisects any fault.
  CanaryAnswer Judged(const ReleaseLibrary& in_use, const ReleaseLibrary& judged) {
    request_.releases = {in_use, judged};
    const auto known = ParseKnownIssues(ReadTextFile(KNOWN_ISSUES).value()).value();
    const auto answer = RunCanary(CellRunner(installation_, false, 2), request_, known, [](const auto&) {});
    EXPECT_TRUE(answer) << answer.error().message;
    return *answer;
  }

  TemporaryFolder folder_ = TemporaryFolder::Create("judging").value();
  Installation installation_;
  CanaryRequest request_{.machines = {{.name = "node", .gpus = 1, .adapters = 1, .architecture = 80}},
                         .ranks_of_nodes = {1, 1},
                         .bytes = {1024},
                         .connecting = {Connecting::kAtFirstCall},
                         .seeks_remedies = false,
                         .bisects = true,
                         .limit_s = 1};
};

// Before 2.22, init connects all algorithms. From 2.22 on, it connects only those that the calls use.
TEST_F(Judging, FewerAdaptersAreGraveWhereBothReleasesConnectAlike) {
  const auto verdict = [&](const char* in_use, const char* judged) {
    const auto answer = Judged(Release(in_use, "adapters 0 1"), Release(judged, "adapters 0"));
    return std::string(Name(answer.judged.front().verdict));
  };
  EXPECT_EQ(verdict("2.24.3", "2.28.9"), "worse");
  EXPECT_EQ(verdict("2.20.5", "2.21.5"), "worse");
  EXPECT_EQ(verdict("2.21.5", "2.22.3"), "changed");
}

TEST_F(Judging, RunsThatDoNotDependOnEachOtherTakePlaceAtTheSameTime) {
  request_.connecting = {Connecting::kAtFirstCall, Connecting::kAtInit};
  const CanaryAnswer answer = Judged(Release("2.24.3", "meets"), Release("2.28.9", "passes"));
  EXPECT_EQ(answer.in_use_cells.size(), 2u);
  EXPECT_EQ(answer.judged.front().verdict, CanaryVerdict::kSame);
}

// The number of adapters does not tell whether a job loses speed. NVIDIA/nccl#2097 is about which of them a
// ring uses.
TEST_F(Judging, FewerAdaptersAreSaidToMatterToLargeCallsBetweenNodes) {
  const CanaryAnswer answer = Judged(Release("2.24.3", "adapters 0 1"), Release("2.28.9", "adapters 0"));
  EXPECT_THAT(
      FormatCanary(request_, answer),
      AllOf(HasSubstr("2 of a node used -> 1 of a node used"),
            HasSubstr("a communicator across nodes loses bandwidth by it, in calls large enough to be "
                      "bound by it; --trace judges those of your job")));
}

TEST_F(Judging, TheGpusOfTheRanksAreToldNodeByNode) {
  const CanaryAnswer answer = Judged(Release("2.24.3", "passes"), Release("2.28.9", "passes"));
  request_.ranks_of_nodes = {2, 2};
  request_.gpus = {0, 2};
  EXPECT_THAT(FormatCanary(request_, answer), HasSubstr(", ranks on GPUs 0,2 of each node\n"));
  request_.gpus = {0, 1, 2, 3};
  EXPECT_THAT(FormatCanary(request_, answer), HasSubstr(", ranks on GPUs 0,1 of node 0, 2,3 of node 1\n"));
}

// The answer omits issues about a variable that the job does not set, or a part that its machine lacks.
TEST(KnownIssues, FitTheVariablesAndTheTopologyOfTheJob) {
  const auto known = ParseKnownIssues(ReadTextFile(KNOWN_ISSUES).value()).value();
  const auto has = [&](const char* id, const std::map<std::string, std::string>& environment,
                       const std::string& topology) {
    const auto found = IssuesOfJob(known, environment, {{.topology = topology}});
    return std::ranges::any_of(found, [&](const KnownIssue& one) { return one.id == id; });
  };
  EXPECT_TRUE(has("NVIDIA/nccl#1946", {}, ""));
  EXPECT_TRUE(has("NVIDIA/nccl#1304", {{"NCCL_PROTO", "Simple"}}, ""));
  EXPECT_FALSE(has("NVIDIA/nccl#1304", {{"NCCL_ALGO", "Tree"}}, ""));
  EXPECT_TRUE(has("NVIDIA/nccl#2053", {}, "<gpu><c2c bw=\"1\"/></gpu>"));
  EXPECT_FALSE(has("NVIDIA/nccl#2053", {}, "<gpu/>"));
}

// No run can show these issues, so the answer lists them for every release that has them.
TEST(KnownIssues, ThatNoRunCanShowAreToldWithTheReason) {
  const auto issues = ParseKnownIssues(ReadTextFile(KNOWN_ISSUES).value());
  ASSERT_TRUE(issues);
  const auto ids = [&](const std::map<std::string, std::string>& environment, real_nccl::NcclRelease in_use,
                       real_nccl::NcclRelease judged, int architecture) {
    std::vector<std::string> found;
    for (const KnownIssue& one :
         IssuesFor(IssuesOfJob(*issues, environment, {{.topology = ""}}), in_use, judged, architecture, {})) {
      EXPECT_THAT(Describe(one, ""), HasSubstr("; not judgeable here: " + one.unjudged + " (https://"));
      found.push_back(one.id);
    }
    return found;
  };
  EXPECT_THAT(ids({}, {2, 24, 3}, {2, 28, 9}, 100), ElementsAre("NVIDIA/nccl#1646"));
  EXPECT_THAT(ids({}, {2, 24, 3}, {2, 28, 9}, 90), IsEmpty()) << "another architecture";
  EXPECT_THAT(ids({{"NCCL_NETDEVS_POLICY", "MAX:1"}}, {2, 28, 9}, {2, 29, 2}, 90),
              ElementsAre("ROCm/rocm-systems#6552"));
  EXPECT_THAT(ids({}, {2, 28, 9}, {2, 29, 2}, 90), IsEmpty()) << "a variable that the job does not set";
  EXPECT_FALSE(
      ParseKnownIssues(R"({"schema": 1, "issues": [{"id": "a", "title": "b", "url": "c", "since": "2.25.1",
    "shows_as": [], "where": "d"}]})"));
}

TEST_F(Judging, AGraveDifferenceCountsWhenTheSecondRunShowsTheSame) {
  const ReleaseLibrary good = Release("2.24.3", "passes");
  const auto verdict = [&](const std::string& plan) {
    const JudgedRelease judged = Judged(good, Release("2.25.1", plan)).judged.front();
    return judged.problem.empty() ? std::string(Name(judged.verdict)) : judged.problem;
  };
  EXPECT_EQ(verdict("crashes"), "fails");
  EXPECT_EQ(verdict("crashes\npasses"), "same");
  EXPECT_EQ(verdict("hangs\nhangs\ncrashes"), "fails");
  // A crash does not confirm a hang. The third run decides.
  EXPECT_EQ(verdict("hangs\ncrashes\nhangs\ncrashes"), "fails");
  EXPECT_THAT(verdict("hangs\ncrashes\npasses"),
              AllOf(HasSubstr("three runs"), HasSubstr("hangs, 0 of 2 ranks joined"), HasSubstr("crashes"),
                    HasSubstr("--fresh")));
}

TEST_F(Judging, NothingIsJudgedWhereTheReleaseInUseFailsItself) {
  const ReleaseLibrary in_use = Release("2.24.3", "fails XML Topology has wrong version 99, 1 needed");
  for (const char* plan : {"crashes", "fails XML Topology has wrong version 99, 1 needed", "passes"}) {
    const CanaryAnswer answer = Judged(in_use, Release("2.28.9", plan));
    const std::string text = FormatCanary(request_, answer);
    EXPECT_THAT(text, HasSubstr("NCCL 2.24.3 -> 2.28.9: no verdict"));
    EXPECT_THAT(text, AllOf(HasSubstr("XML Topology has wrong version 99"), HasSubstr("NCCL_TOPO_DUMP_FILE"),
                            Not(HasSubstr("grave"))));
  }
}

// As in NVIDIA/nccl#1748 and #1946, the crash ends in an earlier release than the search that gives up.
TEST_F(Judging, AFailureIsBisectedApartFromOtherDifferences) {
  const char* gave_up = "with no path for pattern 1, falling back to simple order";
  const ReleaseLibrary in_use = Release("2.24.3", "passes");
  const ReleaseLibrary judged = Release("2.25.1", "crashes falling back to simple order");
  Release("2.26.2", "fails falling back to simple order");
  Release("2.27.3", gave_up);
  Release("2.28.9", gave_up);
  Release("2.29.2", "passes");
  const JudgedRelease its = Judged(in_use, judged).judged.front();
  ASSERT_EQ(its.periods.size(), 2u);
  EXPECT_THAT(its.periods[0].kinds, ElementsAre(DifferenceKind::kEnd));
  EXPECT_EQ(its.periods[0].releases.first_with.text(), "2.25.1");
  EXPECT_EQ(its.periods[0].releases.last_with->text(), "2.26.2");
  EXPECT_EQ(its.periods[0].releases.free_again->text(), "2.27.3");
  EXPECT_THAT(its.periods[1].kinds, ElementsAre(DifferenceKind::kSearch));
  EXPECT_EQ(its.periods[1].releases.free_again->text(), "2.29.2");
}

TEST_F(Judging, AHangEndsAReleaseThatOnlyCrashesOrHangsOnceHidesIt) {
  const ReleaseLibrary in_use = Release("2.24.3", "passes");
  const ReleaseLibrary judged = Release("2.26.2", "hangs");
  Release("2.25.1", "hangs\npasses");
  Release("2.27.3", "crashes");
  Release("2.28.9", "passes");
  const auto found = Judged(in_use, judged).judged.front().periods.at(0).releases;
  EXPECT_EQ(found.last_without.text() + " " + found.first_with.text(), "2.25.1 2.26.2");
  EXPECT_EQ(found.free_again->text(), "2.28.9");
  EXPECT_THAT(found.hidden, ElementsAre(NcclRelease{2, 27, 3}));
}

TEST_F(Judging, TheTextNamesGapsAndTheCommandThatClosesThem) {
  const ReleaseLibrary in_use = Release("2.24.3", "passes"), judged = Release("2.28.9", "crashes");
  Release("2.32.3", "passes");
  const std::string text = FormatCanary(request_, Judged(in_use, judged));
  EXPECT_THAT(text,
              HasSubstr("first seen in 2.28.9; 2.24.3 is free of it; last seen in 2.28.9, free again in "
                        "2.32.3"));
  EXPECT_THAT(text, HasSubstr("not looked at: 2.25.1 to 2.28.7, 2.29.2 to 2.31.2"));
  EXPECT_THAT(text, HasSubstr("tools/setup/fetch_nccl.sh 2.25.1 2.26.2 2.26.5 2.27.3 "));
  Release("2.25.1", "crashes");
  Release("2.29.2", "passes");
  EXPECT_THAT(FormatCanary(request_, Judged(in_use, judged)),
              HasSubstr("since               2.25.1; 2.24.3 is free of it; free again from 2.29.2\n"));
}

TEST_F(Judging, AKnownIssueFitsByAnyWarningOfTheRun) {
  const ReleaseLibrary in_use = Release("2.24.3", "passes");
  const auto issues = [&](const char* plan) {
    std::string found;
    const CanaryAnswer answer = Judged(in_use, Release("2.25.1", plan));
    for (const KnownIssue& one : answer.judged.front().issues) found += one.id;
    return found;
  };
  // The script prints another warning before it crashes, so this warning is not the last one.
  EXPECT_EQ(issues("crashes Could not find NET with id 0"), "NVIDIA/nccl#1748");
  EXPECT_EQ(issues("crashes Could not find something\ncrashes Could not find NET with id 0"),
            "NVIDIA/nccl#1748")
      << "only the second run warns before it crashes";
  EXPECT_EQ(issues("crashes Could not find something"), "");
}

}  // namespace
}  // namespace dynamiccl
