// SPDX-License-Identifier: Apache-2.0
// Tests receipts at the end of a run, made from the job's files. A count without an answer must give "not
// provable". Unreadable files must not affect the other receipts.
#include "tools/receipt/run_receipts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tools/launch/written_files.h"

namespace dynamiccl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns metrics as a process writes them. `lines` follow the first metric.
std::string Metrics(const std::string& mode, const std::string& lines, const std::string& policy = "") {
  return fmt::format(
      "# HELP dynamiccl_info Build, mode and policy of the loaded object; always 1.\n"
      "# TYPE dynamiccl_info gauge\n"
      "dynamiccl_info{{version=\"0.1.0\",mode=\"{}\",policy=\"{}\",rank=\"0\"}} 1\n{}",
      mode, policy, lines);
}

std::string Calls(const char* collective, const char* coverage, int calls) {
  return fmt::format("dynamiccl_calls_total{{collective=\"{}\",coverage=\"{}\",rank=\"0\"}} {}\n", collective,
                     coverage, calls);
}

std::string Decisions(const char* collective, const char* who, int calls) {
  return fmt::format("dynamiccl_decisions_total{{collective=\"{}\",decided_by=\"{}\",rank=\"0\"}} {}\n",
                     collective, who, calls);
}

std::string Timed(const char* config, int calls) {
  return fmt::format(
      "dynamiccl_collective_seconds_count{{communicator=\"f5\",collective=\"AllReduce\",bytes=\"8\",config="
      "\"{}\","
      "rank=\"0\"}} {}\n",
      config, calls);
}

// Removes the settings of this test's own process, because they are not the job's.
void ClearSettings() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.starts_with("NCCL_") || text.starts_with("DYNAMICCL_"))
      names.push_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

class ReceiptsAfterRun : public ::testing::Test {
 protected:
  ReceiptsAfterRun() {
    std::filesystem::create_directories(folder_);
    ClearSettings();
    run_.begun = LaunchTime();
    run_.hostccl = true;
  }
  ~ReceiptsAfterRun() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  Receipt One() {
    const RunReceipts receipts = ReceiptsOfRun(run_);
    EXPECT_EQ(receipts.receipts.size(), 1u);
    return receipts.receipts.empty() ? Receipt{} : receipts.receipts.front();
  }
  Receipt One(const std::string& name, const std::string& value, const std::string& metrics) {
    run_.environment = {{name, value}};
    run_.metrics = {metrics};
    return One();
  }

  std::string folder_ = ::testing::TempDir() + fmt::format("run_receipts_{}", ::getpid());
  FinishedRun run_;
};

TEST_F(ReceiptsAfterRun, WithoutASettingThereIsNoBlock) {
  run_.environment = {{"LD_PRELOAD", "x.so"}, {"DYNAMICCL_JOBS", "2"}, {"NCCL_ALGO", ""}};
  EXPECT_THAT(RunReceiptLines(ReceiptsOfRun(run_)), IsEmpty());
}

TEST_F(ReceiptsAfterRun, PinnedCallsProveOverHostcclAlone) {
  const std::string metrics = Metrics("observe", Calls("AllReduce", "pinned", 40));
  EXPECT_EQ(One("NCCL_ALGO", "Ring", metrics).standing, Standing::kInEffect);
  run_.hostccl = false;
  const Receipt receipt = One();
  EXPECT_EQ(receipt.standing, Standing::kNotProvable) << "NCCL's choice is not in the counts";
  EXPECT_EQ(receipt.effect, "40 calls were pinned");
}

TEST_F(ReceiptsAfterRun, FreeCallsShowThatTheVariableDidNotArrive) {
  run_.hostccl = false;
  const Receipt receipt =
      One("NCCL_PROTO", "LL",
          Metrics("observe", Calls("AllReduce", "tunable", 40) + Calls("AllGather", "pinned", 1)));
  EXPECT_EQ(receipt.standing, Standing::kNotInEffect);
  EXPECT_EQ(receipt.effect, "40 calls were free to choose for");
  EXPECT_EQ(One("NCCL_PROTO", "LL", Metrics("observe", "")).standing, Standing::kNotProvable) << "no call";
}

TEST_F(ReceiptsAfterRun, TimedCallsShowWhatRan) {
  const std::string pinned = Calls("AllReduce", "pinned", 40);
  EXPECT_EQ(One("NCCL_ALGO", "Ring", Metrics("observe", pinned + Timed("Ring/LL/2", 3))).effect,
            "AllReduce: Ring (3 calls)");
  run_.hostccl = false;
  EXPECT_EQ(One().standing, Standing::kInEffect) << "timed by NCCL itself";
  const Receipt other =
      One("NCCL_ALGO", "Ring", Metrics("observe", pinned + Timed("Ring/LL/2", 3) + Timed("Tree/LL/2", 1)));
  EXPECT_EQ(other.standing, Standing::kNotInEffect);
  EXPECT_EQ(other.effect, "AllReduce: Tree (1 call); AllReduce: Ring (3 calls)");
}

TEST_F(ReceiptsAfterRun, BoundsOnChannels) {
  const std::string timed = Metrics("observe", Calls("AllReduce", "tunable", 40) + Timed("Ring/LL/4", 3));
  EXPECT_EQ(One("NCCL_MAX_NCHANNELS", "2", timed).standing, Standing::kNotInEffect);
  EXPECT_EQ(One("NCCL_MAX_NCHANNELS", "4", timed).standing, Standing::kInEffect);
  EXPECT_EQ(One("NCCL_MIN_NCHANNELS", "8", timed).standing, Standing::kNotProvable)
      << "small calls use fewer channels than there are";
  EXPECT_EQ(One("NCCL_MAX_NCHANNELS", "many", timed).reason,
            "hostccl ignores what is no number from 1 to 1024");
  run_.hostccl = false;
  EXPECT_EQ(One("NCCL_MAX_NCHANNELS", "4", timed).standing, Standing::kNotProvable)
      << "NCCL may use four without it";
  const std::string nvls = Metrics("observe", Calls("AllReduce", "tunable", 4) + Timed("NVLS/Simple/16", 3));
  EXPECT_EQ(One("NCCL_MAX_NCHANNELS", "4", nvls).standing, Standing::kNotProvable) << "NVLS has its own";
}

TEST_F(ReceiptsAfterRun, HostcclHasFewOfNcclsVariables) {
  const Receipt receipt = One("NCCL_BUFFSIZE", "65536", "");
  EXPECT_EQ(receipt.standing, Standing::kNotInEffect);
  EXPECT_THAT(receipt.reason, HasSubstr("hostccl, which does not have"));
  EXPECT_EQ(One("NCCL_PROFILER_PLUGIN", "none", "").standing, Standing::kNotProvable);
  run_.hostccl = false;
  EXPECT_EQ(One("NCCL_BUFFSIZE", "65536", "").standing, Standing::kNotProvable);
}

TEST_F(ReceiptsAfterRun, CountsTellRulesByCollective) {
  const std::string rules = Write("rules.csv",
                                  "allreduce,0,128,ring,ll,4,-1,-1\n"
                                  "allreduce,129,4096,tree,ll,4,-1,-1\n"
                                  "allgather,0,128,ring,ll,4,-1,-1\n"
                                  "broadcast,0,128,ring,ll,4,-1,-1\n"
                                  "reduce,0,128,ring,ll,4,-1,-1\n");
  run_.environment = {{"DYNAMICCL_RULES", rules}, {"DYNAMICCL_MODE", "frozen"}};
  run_.metrics = {Metrics("frozen", Calls("AllReduce", "tunable", 9) + Decisions("AllReduce", "rule", 4) +
                                        Decisions("AllReduce", "nccl", 5) +
                                        Decisions("AllGather", "rule", 2) +
                                        Decisions("Broadcast", "nccl", 7))};
  const std::vector<Receipt> receipts = ReceiptsOfRun(run_).receipts;
  ASSERT_EQ(receipts.size(), 7u);
  EXPECT_EQ(receipts[0].effect, "6 decisions") << "the mode";
  EXPECT_EQ(receipts[1].effect, "6 of 18 decisions are the rule's");
  EXPECT_EQ(receipts[2].reason, "2 rules decided 4 of 9 calls of AllReduce, and the counts hold no rule");
  EXPECT_EQ(receipts[3].standing, Standing::kNotProvable);
  EXPECT_EQ(receipts[4].effect, "it decided 2 of 2 calls of AllGather");
  EXPECT_EQ(receipts[5].reason, "rules decided 0 of 7 calls of Broadcast");
  EXPECT_EQ(receipts[6].reason, "NCCL asked for no Reduce");
}

TEST_F(ReceiptsAfterRun, APolicyThatDecidesNothingIsLoadedAllTheSame) {
  const std::string calls = Calls("AllReduce", "tunable", 9) + Decisions("AllReduce", "nccl", 9);
  const Receipt loaded =
      One("DYNAMICCL_POLICY", "p.dcpolicy", Metrics("frozen", calls, "0f8b3df283334b33aa"));
  EXPECT_EQ(loaded.standing, Standing::kInEffect);
  EXPECT_EQ(loaded.effect, "policy 0f8b3df283334b33 is loaded, and decided none of 9 calls");
  EXPECT_EQ(One("DYNAMICCL_POLICY", "p.dcpolicy", Metrics("off", calls)).standing, Standing::kNotInEffect);
  EXPECT_EQ(One("DYNAMICCL_MODE", "adaptive", Metrics("frozen", calls)).effect, "mode frozen");
}

// The log of NCCL_DEBUG_FILE is read only if this job wrote it. An older log is ignored.
TEST_F(ReceiptsAfterRun, TheLogThatTheJobWroteIsRead) {
  Write("nccl.log",
        "node:7:7 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n"
        "node:7:7 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}\n");
  run_.hostccl = false;
  run_.environment = {
      {"NCCL_ALGO", "Ring"}, {"NCCL_DEBUG", "info"}, {"NCCL_DEBUG_FILE", folder_ + "/%h.log"}};
  RunReceipts receipts = ReceiptsOfRun(run_);
  ASSERT_EQ(receipts.receipts.size(), 3u);
  EXPECT_EQ(receipts.receipts[0].effect, "AllReduce: Ring (1 call)");
  EXPECT_EQ(receipts.receipts[2].effect, "files written: 1");
  run_.begun += std::chrono::hours(1);
  receipts = ReceiptsOfRun(run_);
  EXPECT_EQ(receipts.receipts[0].standing, Standing::kNotProvable) << "an older job's log";
}

TEST_F(ReceiptsAfterRun, AFileThatCannotBeReadIsSaidAndNothingElseIsLost) {
  run_.environment = {{"DYNAMICCL_RULES", Write("rules.csv", "allreduce,no,number\n")},
                      {"DYNAMICCL_TRACE", Write("t.ctrace", "")},
                      {"NCCL_ALGO", "Ring"}};
  run_.metrics = {"", "no metrics", Metrics("frozen", Calls("AllReduce", "pinned", 40))};
  const RunReceipts receipts = ReceiptsOfRun(run_);
  EXPECT_EQ(receipts.left_out.size(), 2u);
  const std::vector<std::string> lines = RunReceiptLines(receipts);
  EXPECT_THAT(lines, Contains(HasSubstr("yes  NCCL_ALGO=Ring: 40 calls were pinned")));
  EXPECT_THAT(lines, Contains(HasSubstr("not read: ")).Times(2));
}

TEST_F(ReceiptsAfterRun, AFileThatTheJobDidNotWriteIsNamed) {
  run_.environment = {{"DYNAMICCL_TRACE", folder_ + "/none/%r.ctrace"}};
  EXPECT_THAT(
      RunReceiptLines(ReceiptsOfRun(run_)),
      ElementsAre("settings asked for: 0 in effect, 0 not, 1 not provable",
                  fmt::format("  ?    DYNAMICCL_TRACE={}/none/%r.ctrace: the job wrote no such file on this "
                              "machine",
                              folder_)));
}

TEST_F(ReceiptsAfterRun, TheBlockIsShort) {
  run_.environment.clear();
  for (int i = 0; i < 20; ++i) run_.environment[fmt::format("NCCL_IB_SL{}", i)] = "1";
  run_.environment["NCCL_ALGO"] = "Ring";
  run_.environment["NCCL_BUFFSIZE"] = "1";
  const std::vector<std::string> lines = RunReceiptLines(ReceiptsOfRun(run_));
  EXPECT_EQ(lines.front(), "settings asked for: 0 in effect, 21 not, 1 not provable");
  EXPECT_EQ(lines.size(), 1u + 12 + 1 + 2);
  EXPECT_THAT(lines, Contains("  and 9 more, which `dynamiccl receipt` shows"));
  EXPECT_THAT(lines, Contains("  ?    NCCL_ALGO=Ring: not provable from what is here"));
}

TEST(WrittenFiles, OldFilesAndOthersAreLeftOut) {
  const std::string folder = ::testing::TempDir() + fmt::format("written_files_{}", ::getpid());
  std::filesystem::create_directories(folder);
  for (const char* const name : {"a.1.log", "b.2.log", "a.1.txt", "[x].3.log"})
    std::ofstream(folder + "/" + name) << "x";
  const auto begun = LaunchTime();
  EXPECT_EQ(FilesWrittenSince(folder + "/%h.%p.log", begun).size(), 3u);
  EXPECT_THAT(FilesWrittenSince(folder + "/[x].%p.log", begun), ElementsAre(folder + "/[x].3.log"))
      << "letters that mean something to glob are letters";
  EXPECT_THAT(FilesWrittenSince(folder + "/%h.%p.log", begun + std::chrono::hours(1)), IsEmpty());
  EXPECT_THAT(FilesWrittenSince("", begun), IsEmpty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace dynamiccl
