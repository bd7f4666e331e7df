// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/exit_code.h"
#include "tools/launch/orphans.h"
#include "tools/launch/signal_scope.h"

namespace dynamiccl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LauncherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("dynamiccl-launcher-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  LaunchPlan Shell(int n_ranks, const std::string& script) const {
    return {.command = {"bash", "-c", script}, .n_ranks = n_ranks, .output_path = Output()};
  }
  std::string Output() const { return (folder_ / "output").string(); }
  std::string Written() const {
    std::stringstream text;
    text << std::ifstream(Output()).rdbuf();
    return text.str();
  }

  // Reads the program's terminal output until it contains "ready".
  static void WaitUntilReady(int terminal) {
    std::string said;
    for (char letter = 0; said.find("ready") == std::string::npos && ::read(terminal, &letter, 1) == 1;)
      said += letter;
  }

  std::filesystem::path folder_;
};

TEST_F(LauncherTest, RanksSeeTheVariablesOfTorchrun) {
  const auto outcome =
      Launch(Shell(3, "echo rank=$RANK/$WORLD_SIZE local=$LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR"));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->ok());
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_THAT(Written(), HasSubstr(std::string("rank=") + rank + "/3 local=" + rank + "/3 127.0.0.1"));
  }
}

TEST_F(LauncherTest, RanksShareOnePort) {
  ASSERT_TRUE(Launch(Shell(2, "echo $MASTER_PORT")).has_value());
  std::istringstream lines(Written());
  int first = 0;
  int second = -1;
  lines >> first >> second;
  EXPECT_GT(first, 0);
  EXPECT_EQ(first, second);
}

TEST_F(LauncherTest, WithoutRanksTheCommandRunsOnceAndUnnumbered) {
  LaunchPlan plan = Shell(0, "echo rank=${RANK-none}");
  plan.environment["DYNAMICCL_MODE"] = "observe";
  ASSERT_TRUE(Launch(plan).has_value());
  EXPECT_EQ(Written(), "rank=none\n");
}

TEST_F(LauncherTest, ChangesOfTheEnvironmentReachEveryRank) {
  LaunchPlan plan = Shell(2, "echo $DYNAMICCL_MODE:$PATH");
  plan.environment["DYNAMICCL_MODE"] = "observe";
  ASSERT_TRUE(Launch(plan).has_value());
  EXPECT_EQ(Written(),
            "observe:" + std::string(std::getenv("PATH")) + "\nobserve:" + std::getenv("PATH") + "\n");
}

TEST_F(LauncherTest, FirstFailingRankIsNamedAndTheOthersAreEnded) {
  const auto outcome = Launch(Shell(3, "[ $RANK = 1 ] && exit 7; exec sleep 600"));
  ASSERT_TRUE(outcome.has_value() && outcome->first_failed);
  EXPECT_EQ(outcome->first_failed->rank, 1);
  EXPECT_EQ(outcome->first_failed->exit_code, 7);
  EXPECT_EQ(ExitCodeOf(*outcome), kExitJobFailed);
  EXPECT_THAT(Describe(*outcome), HasSubstr("rank 1 of 3 ended with exit code 7"));
  EXPECT_EQ(outcome->ranks[0].signal, SIGTERM);
  EXPECT_TRUE(outcome->ranks[0].ended_by_us);
}

// Rank 2 stops this process until the other two ranks have ended. This process then learns of both ends at
// once.
TEST_F(LauncherTest, RanksThatFailedBeforeTheJobWasEndedFailedByThemselves) {
  const std::string script = "cd " + folder_.string() +
                             R"(
    if [ $RANK != 2 ]; then echo $$ > pid_$RANK.new; mv pid_$RANK.new pid_$RANK; fi
    until [ -e pid_0 ] && [ -e pid_1 ]; do :; done
    if [ $RANK != 2 ]; then until [ -e stopped ]; do :; done; exit $((4 + RANK)); fi
    kill -STOP $PPID
    touch stopped
    for rank in 0 1; do until grep -q '^State:.Z' /proc/$(cat pid_$rank)/status; do :; done; done
    kill -CONT $PPID
    exec sleep 600)";
  const auto outcome = Launch(Shell(3, script));
  ASSERT_TRUE(outcome.has_value() && outcome->first_failed);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(outcome->ranks[static_cast<size_t>(rank)].exit_code, 4 + rank);
    EXPECT_FALSE(outcome->ranks[static_cast<size_t>(rank)].ended_by_us) << rank;
  }
  EXPECT_TRUE(outcome->ranks[2].ended_by_us);
}

TEST_F(LauncherTest, ASingleProgramIsNoRank) {
  const auto outcome = Launch(Shell(1, "exit 3"));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_THAT(Describe(*outcome), HasSubstr("the program ended with exit code 3"));
}

TEST_F(LauncherTest, KilledRankIsReportedWithItsSignal) {
  const auto outcome = Launch(Shell(2, "[ $RANK = 0 ] && kill -9 $$; exec sleep 600"));
  ASSERT_TRUE(outcome.has_value() && outcome->first_failed);
  EXPECT_EQ(outcome->first_failed->signal, SIGKILL);
  EXPECT_THAT(Describe(*outcome), HasSubstr("rank 0 of 2 was killed by signal 9 (SIGKILL)"));
}

TEST_F(LauncherTest, RankThatIgnoresSigtermIsKilledAfterTheGrace) {
  LaunchPlan plan =
      Shell(2, "[ $RANK = 0 ] && sleep 0.2 && exit 1; trap '' TERM; sleep 600 & wait; sleep 600");
  plan.grace = std::chrono::milliseconds(200);
  const auto outcome = Launch(plan);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->ranks[1].signal, SIGKILL);
}

TEST_F(LauncherTest, GrandchildrenDoNotOutliveTheLaunch) {
  ASSERT_TRUE(Launch(Shell(1, "sleep 600 >/dev/null 2>&1 & echo $!")).has_value());
  const pid_t grandchild = std::stoi(Written());
  pollfd ended{.fd = static_cast<int>(::syscall(SYS_pidfd_open, grandchild, 0)), .events = POLLIN};
  if (ended.fd < 0) return;  // The grandchild is already gone.
  EXPECT_EQ(::poll(&ended, 1, 10'000), 1) << "it still runs";
  ::close(ended.fd);
}

// A shell that gets SIGTERM ends and leaves its command running. That command would then run beside those of
// further starts.
TEST_F(LauncherTest, ACommandOfAShellDoesNotOutliveTheTimeLimit) {
  LaunchPlan plan =
      Shell(0, "sh -c 'setsid sleep 600 & echo $!; trap \"echo term; exit\" TERM; sleep 600 & wait'; :");
  plan.time_limit = std::chrono::milliseconds(3000);
  const auto outcome = Launch(plan);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->timed_out);
  std::istringstream said(Written());
  pid_t orphan = 0;
  std::string word;
  said >> orphan >> word;
  EXPECT_EQ(word, "term");
  ASSERT_GT(orphan, 0);
  EXPECT_NE(::kill(orphan, 0), 0) << "it still runs";
}

// The command's group got no signal before, because the rank had ended by itself.
TEST_F(LauncherTest, ACommandOfARankThatFailedIsAskedToEnd) {
  const std::string ready = (folder_ / "ready").string();
  const std::string command = "sh -c 'trap \"echo term; exit\" TERM; echo > " + ready + "; sleep 600 & wait'";
  const auto outcome = Launch(Shell(2, "[ $RANK = 0 ] && exec sleep 600; " + command + " & while [ ! -e " +
                                           ready + " ]; do sleep 0.01; done; exit 1"));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(Written(), "term\n");
}

TEST_F(LauncherTest, ProcessesThatOutlivedTheirParentAreCollectedWhileTheJobRuns) {
  const auto outcome = Launch(
      Shell(0, "pid=$(sh -c 'true >/dev/null & echo $!'); while [ -e /proc/$pid ]; do sleep 0.01; done"));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->ok());
}

// Otherwise another process could get the process id of an ended rank, and a signal to the rank's group would
// kill a wrong group. The launcher collects the orphan after it has looked at the ranks.
TEST_F(LauncherTest, AnEndedRankKeepsItsNumberUntilTheLaunchIsOver) {
  const std::string script = "cd " + folder_.string() +
                             R"(
    if [ $RANK = 0 ]; then echo $$ > pid.new; mv pid.new pid; exit; fi
    until [ -e pid ]; do :; done
    until ! [ -e /proc/$(cat pid) ] || grep -q '^State:.Z' /proc/$(cat pid)/status; do :; done
    orphan=$(sh -c 'true >/dev/null & echo $!')
    while [ -e /proc/$orphan ]; do :; done
    [ -e /proc/$(cat pid) ] && echo kept)";
  ASSERT_TRUE(Launch(Shell(2, script)).has_value());
  EXPECT_EQ(Written(), "kept\n");
  std::string rank;
  std::ifstream(folder_ / "pid") >> rank;
  EXPECT_FALSE(std::filesystem::exists("/proc/" + rank)) << "it was not collected";
}

// Otherwise the scope would take it for a new orphan and send it the first signal again.
TEST(OrphanScope, KeepsAnOrphanWhileProcCannotBeRead) {
  OrphanScope scope;
  const pid_t orphan = ::fork();
  if (orphan == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_THAT(scope.Running({}), ElementsAre(orphan));
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const rlimit none{.rlim_cur = 0, .rlim_max = files.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::vector<pid_t> found = scope.Running({});
  ::setrlimit(RLIMIT_NOFILE, &files);
  EXPECT_THAT(found, ElementsAre(orphan));
  ::kill(orphan, SIGKILL);
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(orphan), &ended, WEXITED | WNOWAIT);
  EXPECT_THAT(scope.Running({}), IsEmpty());
}

TEST_F(LauncherTest, TimeLimitEndsTheRanks) {
  LaunchPlan plan = Shell(2, "exec sleep 600");
  plan.time_limit = std::chrono::milliseconds(100);
  const auto outcome = Launch(plan);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->timed_out);
  EXPECT_FALSE(outcome->first_failed);
  EXPECT_EQ(ExitCodeOf(*outcome), kExitJobFailed);
}

TEST_F(LauncherTest, SignalIsPassedOnAndGivesTheExitCode) {
  const std::string script = "trap 'echo got; exit 0' INT; kill -INT $PPID; sleep 600 & wait";
  const auto outcome = Launch(Shell(1, script));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->interrupted_by, SIGINT);
  EXPECT_EQ(ExitCodeOf(*outcome), kExitSignalBase + SIGINT);
  EXPECT_EQ(Written(), "got\n");
}

TEST_F(LauncherTest, ASignalThatCameBeforeTheLaunchStartsNothing) {
  const SignalScope signals;
  ASSERT_EQ(::raise(SIGINT), 0);
  const auto outcome = Launch(Shell(2, "echo started"));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->interrupted_by, SIGINT);
  EXPECT_TRUE(outcome->ranks.empty());
  EXPECT_FALSE(std::filesystem::exists(Output()));
}

// nohup ignores SIGHUP, so that a job goes on when the connection of its user is lost.
TEST_F(LauncherTest, AnIgnoredHangupEndsNothing) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  const auto outcome = Launch(Shell(1, "kill -HUP $PPID; echo goes on"));
  std::signal(SIGHUP, before);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->ok());
  EXPECT_EQ(Written(), "goes on\n");
}

// The program answers Ctrl-C with SIGTERM to the launcher. The launcher passes signals on in order, so a
// second SIGINT would come before SIGTERM.
TEST_F(LauncherTest, ASingleProgramGetsATerminalsSignalOnce) {
  int terminal = -1;
  const pid_t launcher = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (launcher == 0) {
    const auto outcome = Launch(
        Shell(0,
              "trap 'echo int; kill -TERM $PPID' INT; trap 'echo term; kill $! 2>/dev/null; exit' TERM;"
              "sleep 600 & echo ready >/dev/tty; while :; do wait; done"));
    ::_exit(outcome ? ExitCodeOf(*outcome) : 1);
  }
  WaitUntilReady(terminal);
  ASSERT_EQ(::write(terminal, "\x03", 1), 1);
  int status = 0;
  ::waitpid(launcher, &status, 0);
  ::close(terminal);
  EXPECT_GT(WEXITSTATUS(status), kExitSignalBase);
  EXPECT_EQ(Written(), "int\nterm\n");
}

// The terminal disappears, as when the connection of `ssh -t HOST dynamiccl run` is lost.
TEST_F(LauncherTest, TheHangupOfATerminalIsPassedOnByItsSessionsLeader) {
  int terminal = -1;
  const pid_t launcher = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (launcher == 0) {
    std::signal(SIGHUP, SIG_DFL);  // nohup, which may run this test, ignores it
    const auto outcome = Launch(Shell(
        0, "trap 'echo hup; kill $!; exit' HUP; sleep 600 & echo ready >/dev/tty; while :; do wait; done"));
    ::_exit(outcome ? ExitCodeOf(*outcome) : 1);
  }
  WaitUntilReady(terminal);
  ::close(terminal);
  int status = 0;
  ::waitpid(launcher, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), kExitSignalBase + SIGHUP);
  EXPECT_EQ(Written(), "hup\n");
}

TEST_F(LauncherTest, MissingProgramIsAnErrorWithItsName) {
  const auto outcome = Launch({.command = {"/no/such/program"}, .n_ranks = 2});
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(outcome.error().message, HasSubstr("/no/such/program"));
}

TEST(RuntimeEnvironment, PutsOurFoldersBeforeWhatIsSet) {
  ::setenv("LD_LIBRARY_PATH", "/theirs", 1);
  const Installation installation{
      .home = "/h", .preload = "/h/lib/libdynamiccl.so", .hostccl_dir = "/h/lib/hostccl"};
  const auto changes = RuntimeEnvironment(installation, {.mode = "observe", .hostccl = true});
  ::unsetenv("LD_LIBRARY_PATH");
  ASSERT_TRUE(changes.has_value());
  EXPECT_EQ(changes->at("LD_LIBRARY_PATH"), "/h/lib/hostccl:/theirs");
  EXPECT_EQ(changes->at("DYNAMICCL_MODE"), "observe");
  EXPECT_EQ(changes->count("DYNAMICCL_POLICY"), 0u);
}

TEST(RuntimeEnvironment, SaysWhichPartTheBuildLacks) {
  const auto changes = RuntimeEnvironment({.home = "/h"}, {.preload = true});
  ASSERT_FALSE(changes.has_value());
  EXPECT_EQ(changes.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(changes.error().message, HasSubstr("libdynamiccl.so"));
}

}  // namespace
}  // namespace dynamiccl
