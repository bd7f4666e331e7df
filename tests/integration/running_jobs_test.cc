// SPDX-License-Identifier: Apache-2.0
// Tests `dynamiccl top` and `dynamiccl ctl` beside running jobs.
#include <chrono>
#include <cstdio>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/integration/job_fixture.h"
#include "tools/launch/shell_quote.h"

namespace dynamiccl::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

struct Answer {
  int exit_code = -1;
  std::string output;  // both streams
};

Answer Ask(const std::vector<std::string>& words) {
  std::vector<std::string> command = {DYNAMICCL_TEST_PROGRAM};
  command.insert(command.end(), words.begin(), words.end());
  Answer answer;
  FILE* pipe = ::popen((ShellQuote(command) + " 2>&1").c_str(), "r");
  char text[4096];
  for (size_t n = 0; (n = std::fread(text, 1, sizeof(text), pipe)) > 0;) answer.output.append(text, n);
  const int status = ::pclose(pipe);
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return answer;
}

// Runs a job of two ranks in mode adaptive until End(). The job writes traces.
class RunningJob : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    JobOptions options{.n_ranks = 2, .rounds = "1", .extras = {"stalls"}};
    options.environment = {{"JOB_GOES_ON", File("go_on", "")},
                           {"DYNAMICCL_POLICY", path_},
                           {"DYNAMICCL_MODE", "adaptive"},
                           {"DYNAMICCL_TIMES", "0"},
                           {"DYNAMICCL_VALUES", folder_ + "/values"},
                           {"DYNAMICCL_TRACE", folder_ + "/%r.ctrace"},
                           {"DYNAMICCL_METRICS", folder_ + "/%r.prom"},
                           {"DYNAMICCL_DECISION_LOG", folder_ + "/decisions.%r"}};
    running_ = std::async(std::launch::async, [this, options] { return Run(options); });
    while (!Decided(" v1")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  bool Decided(const char* version) const {
    std::ifstream log(folder_ + "/decisions.0", std::ios::binary);
    return !LinesWith(std::string(std::istreambuf_iterator<char>(log), {}), version).empty();
  }
  JobResult End() {
    std::filesystem::remove(folder_ + "/go_on");
    return running_.get();
  }

  const std::string path_ = PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple);
  std::future<JobResult> running_;
};

TEST_F(RunningJob, IsSeenByTopWhichNamesItsCallsAndWhoDecided) {
  const Answer answer =
      Ask({"top", folder_ + "/0.ctrace", folder_ + "/1.ctrace", "--json", "--seconds", "30"});
  ASSERT_EQ(answer.exit_code, 0) << answer.output;
  const Json top = Json::parse(answer.output);
  ASSERT_EQ(top["processes"].size(), 2u);
  for (int rank = 0; rank < 2; ++rank) {
    const Json& process = top["processes"][static_cast<size_t>(rank)];
    EXPECT_EQ(process["rank"], rank);
    EXPECT_GT(process["calls"], 0);
    EXPECT_GT(process["decisions"]["policy"], 0);
    uint64_t calls = 0;
    for (const Json& key : process["keys"]) calls += key["calls"].get<uint64_t>();
    EXPECT_EQ(calls, process["calls"]);
  }
  const Answer table = Ask({"top", folder_ + "/0.ctrace", "--once"});
  EXPECT_THAT(table.output, HasSubstr("AllReduce"));
  EXPECT_TRUE(End().ok());
}

TEST_F(RunningJob, IsListedByCtlWithItsPolicyAndTrace) {
  const Answer answer = Ask({"ctl", "status", "--json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.output;
  const Json status = Json::parse(answer.output);
  std::set<int> ranks;
  for (const Json& process : status["processes"]) {
    if (process["policy"] != path_) continue;  // another test's job
    ranks.insert(process["rank"].get<int>());
    EXPECT_EQ(process["mode"], "adaptive");
    EXPECT_EQ(process["trace"], folder_ + "/" + std::to_string(process["rank"].get<int>()) + ".ctrace");
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1}));
  const std::string text = Ask({"ctl", "status"}).output, metrics = folder_ + "/0.prom";
  if (!std::filesystem::exists(metrics)) {  // the file is first written after 10 s
    EXPECT_THAT(text, HasSubstr("decisions  not known yet: " + metrics + " is written every 10 s"));
  }
  EXPECT_TRUE(End().ok());
}

TEST_F(RunningJob, TakesUpWhatCtlSwapsInAndWhatItRollsBackTo) {
  const std::string other = PolicyFile("other.dcpolicy", Algorithm::kRing, Protocol::kLL);
  const Answer swapped = Ask({"ctl", "swap", other, "--policy", path_});
  ASSERT_EQ(swapped.exit_code, 0) << swapped.output;
  while (!Decided(" v2")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Answer back = Ask({"ctl", "rollback", "--policy", path_});
  ASSERT_EQ(back.exit_code, 0) << back.output;
  while (!Decided(" v3")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(End().ok());
  std::ifstream log(folder_ + "/decisions.0", std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(log), {});
  EXPECT_THAT(LinesWith(text, " v2").front(), HasSubstr("Ring/LL/"));
  EXPECT_THAT(LinesWith(text, " v3").front(), HasSubstr("Ring/Simple/"));
}

TEST_F(RunningJob, KeepsItsPolicyWhenAFileThatIsNoneIsToBeSwappedIn) {
  const Answer answer = Ask({"ctl", "swap", File("notes.txt", "no policy"), "--policy", path_});
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_THAT(answer.output, HasSubstr("notes.txt"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".previous"));
  EXPECT_EQ(Ask({"ctl", "rollback", "--policy", path_}).exit_code, 2);
  EXPECT_TRUE(End().ok());
}

TEST_F(RunningJob, HasItsValuesSetInTheFileThatItWatches) {
  const Answer answer = Ask({"ctl", "set", "--file", folder_ + "/values", "bucket=3", "window=-1", "--json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.output;
  const Json set = Json::parse(answer.output);
  EXPECT_EQ(set["file"], folder_ + "/values");
  EXPECT_EQ(set["values"], (Json{{"bucket", 3}, {"window", -1}}));
  const Answer wrong = Ask({"ctl", "set", "--file", folder_ + "/values", "bucket=three"});
  EXPECT_NE(wrong.exit_code, 0);
  EXPECT_THAT(wrong.output, HasSubstr("'three' for bucket is no whole number"));
  EXPECT_TRUE(End().ok());
}

}  // namespace
}  // namespace dynamiccl::testing
