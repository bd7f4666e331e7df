// SPDX-License-Identifier: Apache-2.0
// The tests stop child processes and write the files in which the kernel shows frozen control groups.
#include "tools/hang/stopped_processes.h"
#include "tools/hang/hang_findings.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace dynamiccl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string TraceFile() {
  const std::string path = testing::TempDir() + fmt::format("stopped_{}.ctrace", getpid());
  std::ofstream(path) << std::string(4096, 'x');
  return std::filesystem::canonical(path);
}

// A child process that has mapped the file and stops itself. The destructor ends it.
class StoppedChild {
 public:
  explicit StoppedChild(const std::string& path, bool traced = false) {
    id_ = fork();
    if (id_ != 0) {
      int status = 0;
      EXPECT_EQ(waitpid(id_, &status, WUNTRACED), id_);
      EXPECT_TRUE(WIFSTOPPED(status));
      return;
    }
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0 || mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED) _exit(1);
    if (traced && ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(2);
    raise(SIGSTOP);
    while (true) pause();
  }
  ~StoppedChild() {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  void Continue() const {
    kill(id_, SIGCONT);
    int status = 0;
    EXPECT_EQ(waitpid(id_, &status, WCONTINUED), id_);
  }
  pid_t id() const { return id_; }

 private:
  pid_t id_ = 0;
};

JobProcess Noted(int64_t id, const std::string& path, const std::string& root = "") {
  JobProcess process;
  process.process_id = id;
  NoteWhatStops(path, process, root);
  return process;
}

TEST(StoppedProcesses, AStopSignalIsSeenAndItsEndToo) {
  const std::string path = TraceFile();
  const StoppedChild child(path);
  const JobProcess stopped = Noted(child.id(), path);
  EXPECT_TRUE(stopped.alive);
  EXPECT_THAT(stopped.stopped, HasSubstr(fmt::format("`kill -CONT {}`", child.id())));
  child.Continue();
  const JobProcess goes_on = Noted(child.id(), path);
  EXPECT_TRUE(goes_on.alive);
  EXPECT_THAT(goes_on.stopped, IsEmpty());
}

TEST(StoppedProcesses, ADebuggerIsNamed) {
  const std::string path = TraceFile();
  const StoppedChild child(path, true);
  EXPECT_THAT(Noted(child.id(), path).stopped, HasSubstr(fmt::format("stopped by process {} (", getpid())));
}

// The trace's process id may now belong to another process or to another machine.
TEST(StoppedProcesses, AProcessThatDoesNotWriteTheTraceIsNotTheRank) {
  const std::string path = TraceFile(), other = path + ".other";
  std::ofstream(other) << "x";
  const StoppedChild child(path);
  for (const std::string& file : {other, path + ".missing"}) {
    EXPECT_FALSE(Noted(child.id(), file).alive);
    EXPECT_THAT(Noted(child.id(), file).stopped, IsEmpty());
  }
  JobProcess ended;
  ended.process_id = child.id();
  ended.closed = true;
  NoteWhatStops(path, ended);
  EXPECT_FALSE(ended.alive);
}

// Writes the /proc files of process 42, whose name contains brackets and blanks.
std::string FakeProcess(const std::string& name, const std::string& path, const std::string& group) {
  const std::string root = testing::TempDir() + fmt::format("stopped_{}_{}", getpid(), name);
  const std::string folder = root + "/proc/42";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/maps") << "7f00-7f01 rw-s 00000000 08:01 7  " << path << "\n";
  std::ofstream(folder + "/stat") << "42 (a) T (b) S 1 42";
  std::ofstream(folder + "/cgroup") << group << "\n";
  return root;
}

void WriteFile(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(StoppedProcesses, AFrozenControlGroupIsNamedInBothVersions) {
  const std::string path = TraceFile();
  const std::string two = FakeProcess("v2", path, "0::/job/a");
  WriteFile(two + "/sys/fs/cgroup/job/a/cgroup.events", "populated 1\nfrozen 0\n");
  EXPECT_TRUE(Noted(42, path, two).alive);
  EXPECT_THAT(Noted(42, path, two).stopped, IsEmpty());
  WriteFile(two + "/sys/fs/cgroup/job/a/cgroup.events", "populated 1\nfrozen 1\n");
  EXPECT_THAT(Noted(42, path, two).stopped, HasSubstr("frozen with its control group /sys/fs/cgroup/job/a"));
  const std::string one = FakeProcess("v1", path, "8:cpu,cpuacct:/x\n7:freezer:/job");
  WriteFile(one + "/sys/fs/cgroup/freezer/job/freezer.state", "FROZEN\n");
  EXPECT_THAT(Noted(42, path, one).stopped, HasSubstr("/sys/fs/cgroup/freezer/job"));
}

// Returns a job of two ranks in which rank 1 did not issue call 1.
JobCalls JobWithALateRank() {
  JobCalls job;
  JobCommunicator& communicator = job.communicators[0xa11];
  communicator.n_ranks = 2;
  for (const int32_t rank : {0, 1}) {
    JobProcess& process = job.processes.emplace_back();
    process.rank = rank;
    process.process_id = 1000 + rank;
    process.host = "node";
    JobMember& member = communicator.members[rank];
    member.process = static_cast<size_t>(rank);
    member.next = rank == 0 ? 2 : 1;
    member.collectives.resize(member.next);
    member.collectives.back().call.call_number = member.next - 1;
  }
  return job;
}

TEST(StoppedProcesses, AStoppedRankIsNamedBeforeTheOneThatIsBehind) {
  JobCalls job = JobWithALateRank();
  EXPECT_EQ(DiagnoseHang(job).findings.at(0).kind, HangKind::kBehind);
  job.processes[1].alive = true;
  EXPECT_THAT(DiagnoseHang(job).findings.at(0).text.back(),
              AllOf(HasSubstr("its process runs and is not inside the library"), Not(HasSubstr("_exit"))));
  job.processes[1].stopped = "stopped by a signal";
  const HangDiagnosis diagnosis = DiagnoseHang(job);
  ASSERT_EQ(diagnosis.findings.size(), 2u);
  EXPECT_EQ(diagnosis.findings[0].kind, HangKind::kStopped);
  EXPECT_THAT(diagnosis.findings[0].ranks, ElementsAre(1));
  EXPECT_THAT(diagnosis.findings[0].text,
              ElementsAre("rank 1 (process 1001 on node) is stopped by a signal"));
  EXPECT_THAT(diagnosis.findings[1].text.back(), HasSubstr("; it is stopped by a signal"));
}

}  // namespace
}  // namespace dynamiccl
