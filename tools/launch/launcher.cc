// SPDX-License-Identifier: Apache-2.0
// The launcher is one loop that sleeps in sigtimedwait. It wakes when a child ends (SIGCHLD), when a signal
// must be passed on, or when a deadline comes.
//
// Each rank leads a process group, so that processes that the rank started can be ended with it. Ending a job
// has two steps: the first signal goes to all groups, and SIGKILL follows after the grace period. Processes
// that outlive their parent while the job is being ended, such as the ranks of a shell script, get the same
// signals.
//
// A rank that has ended is collected only when the launch is over. Until then no other process can get its
// number, which is also that of its group.
#include "tools/launch/launcher.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "src/base/clock.h"
#include "src/base/reserved_port.h"
#include "tools/exit_code.h"
#include "tools/launch/child_process.h"
#include "tools/launch/orphans.h"
#include "tools/launch/signal_scope.h"

namespace dynamiccl {
namespace {

constexpr int64_t kNanosecondsPerMillisecond = 1'000'000;
// How long an orphan may take to end after SIGKILL.
constexpr int64_t kNanosecondsToDie = 5'000'000'000;

// One launch from start to end. Launch() owns it on its stack and calls Start and Wait once each. The
// destructor kills whatever still runs, so an early return leaves no process behind.
class Job {
 public:
  explicit Job(const LaunchPlan& plan) : plan_(plan), started_ns_(MonotonicNanoseconds()) {}
  ~Job() { KillLeftovers(); }

  Status Start();
  Result<LaunchOutcome> Wait();

 private:
  // One started process and, once it has ended, how it ended.
  struct Child {
    RankOutcome outcome;
    pid_t pid = -1;
    bool running = true;
  };

  Status StartRank(int rank);
  void Reap();
  void Ended(Child& child, const siginfo_t& how);
  void OnSignal(const ReceivedSignal& signal);
  void EndAll(const ReceivedSignal& signal);
  void SendToRunning(const ReceivedSignal& signal);
  void EndOrphans();
  void Abandon();
  bool HadFirstSignal(pid_t orphan) const;
  bool HasFromTerminal(const Child& child) const;
  void KillLeftovers();
  int64_t NextDeadline() const;
  void CheckDeadlines(int64_t now);
  bool AnyRunning() const;

  const LaunchPlan& plan_;
  OrphanScope scope_;
  // The port on which rank 0 listens. It stays reserved until the job has ended, so that no other program
  // gets it.
  std::optional<ReservedPort> port_;
  int64_t started_ns_;
  // CLOCK_MONOTONIC time at which SIGKILL follows; 0: nothing is being ended, or SIGKILL was sent.
  int64_t kill_at_ns_ = 0;
  // The job is being ended: by a failed rank, a signal or the time limit.
  bool ending_ = false;
  // The signal that began to end the job.
  ReceivedSignal first_signal_;
  std::vector<Child> children_;
  // While the job is being ended: processes that outlived their parent.
  std::vector<pid_t> orphans_;
  int64_t abandon_at_ns_ = 0;  // when to wait no longer for orphans; 0: not set
  bool abandoned_ = false;
  // The result of Wait, filled while children end.
  LaunchOutcome outcome_;
};

// Starts all ranks. After an error the destructor ends those that were started.
Status Job::Start() {
  DYNAMICCL_TRY(port_, ReservedPort::Reserve());
  const int n_processes = std::max(plan_.n_ranks, 1);
  for (int rank = 0; rank < n_processes; ++rank) DYNAMICCL_CHECK_OK(StartRank(rank));
  return {};
}

Status Job::StartRank(int rank) {
  EnvironmentChanges environment = plan_.environment;
  if (plan_.n_ranks > 0) environment.merge(RankEnvironment(rank, plan_.n_ranks, port_->number()));
  // A single command keeps the terminal, because it may be interactive. It also keeps the caller's process
  // group: the terminal's signals reach it, and a launcher of ranks passes them on itself.
  const ChildOptions options{.output_path = plan_.output_path, .own_group = plan_.n_ranks > 0};
  DYNAMICCL_TRY(const pid_t pid, StartChild(plan_.command, environment, options));
  children_.push_back({.outcome = {.rank = rank}, .pid = pid});
  return {};
}

// Runs the main loop. It returns when no child runs and, if the job was ended, no orphan either.
Result<LaunchOutcome> Job::Wait() {
  while (AnyRunning()) {
    OnSignal(WaitForSignal(NextDeadline()));
    Reap();
    EndOrphans();
    CheckDeadlines(MonotonicNanoseconds());
  }
  for (const Child& child : children_) outcome_.ranks.push_back(child.outcome);
  outcome_.wall_ns = MonotonicNanoseconds() - started_ns_;
  return outcome_;
}

void Job::OnSignal(const ReceivedSignal& signal) {
  if (signal.number == 0 || signal.number == SIGCHLD) return;
  outcome_.interrupted_by = signal.number;
  EndAll(signal);
}

// Records every child that has ended. One SIGCHLD may stand for several children, so waitid is called for
// each running child. If a child failed by itself, the job is ended, but only after that loop. Otherwise
// children that had already ended would be recorded as ended by the launcher.
void Job::Reap() {
  for (Child& child : children_) {
    siginfo_t how{};
    const auto id = static_cast<id_t>(child.pid);
    if (child.running && ::waitid(P_PID, id, &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid != 0)
      Ended(child, how);
  }
  if (outcome_.first_failed && !ending_) EndAll({.number = SIGTERM});
}

// Records how a child ended.
void Job::Ended(Child& child, const siginfo_t& how) {
  child.running = false;
  child.outcome.ended_by_us = ending_;
  (how.si_code == CLD_EXITED ? child.outcome.exit_code : child.outcome.signal) = how.si_status;
  if (child.outcome.failed() && !ending_ && !outcome_.first_failed) outcome_.first_failed = child.outcome;
}

// Sends the signal to all running ranks. The grace period runs from the first call: a second signal from the
// user is passed on but does not shorten it.
void Job::EndAll(const ReceivedSignal& signal) {
  SendToRunning(signal);
  if (ending_) return;
  ending_ = true;
  first_signal_ = signal;
  kill_at_ns_ = MonotonicNanoseconds() + plan_.grace.count() * kNanosecondsPerMillisecond;
}

void Job::SendToRunning(const ReceivedSignal& signal) {
  for (const Child& child : children_) {
    if (!child.running || (signal.from_terminal && HasFromTerminal(child))) continue;
    SignalChild(child.pid, plan_.n_ranks > 0, signal.number);
  }
}

// Collects orphans that have ended. In a job that is being ended, a new orphan gets the signal that ended the
// job or, after the grace period, SIGKILL.
void Job::EndOrphans() {
  if (abandoned_) return;
  std::vector<pid_t> started;
  for (const Child& child : children_) started.push_back(child.pid);
  std::vector<pid_t> found = scope_.Running(started);
  if (!ending_) return;
  for (const pid_t pid : found) {
    const bool is_new = std::ranges::find(orphans_, pid) == orphans_.end();
    if (kill_at_ns_ == 0)
      SignalChild(pid, false, SIGKILL);
    else if (is_new && !HadFirstSignal(pid))
      SignalChild(pid, false, first_signal_.number);
  }
  orphans_ = std::move(found);
}

// Returns true if the signal that began to end the job was sent to the orphan's process group.
bool Job::HadFirstSignal(pid_t orphan) const {
  const pid_t group = ::getpgid(orphan);
  if (plan_.n_ranks == 0) return first_signal_.from_terminal && group == ::getpgrp();
  return std::ranges::any_of(children_, [&](const Child& child) {
    return child.pid == group && (child.running || child.outcome.ended_by_us);
  });
}

// Returns true if a terminal's signal to this process has reached the child too. A second one would interrupt
// what the child does after the first, such as saving its work.
bool Job::HasFromTerminal(const Child& child) const {
  return plan_.n_ranks == 0 && ::getpgid(child.pid) == ::getpgrp();
}

// Kills processes that ranks started and did not end, and the ranks themselves when Start failed half-way. It
// collects the ranks afterwards.
void Job::KillLeftovers() {
  for (const Child& child : children_) {
    if (plan_.n_ranks > 0) SignalChild(child.pid, true, SIGKILL);
    if (child.running) SignalChild(child.pid, false, SIGKILL);
    ::waitpid(child.pid, nullptr, 0);
  }
}

// Returns the time, on CLOCK_MONOTONIC, at which the loop must wake even without a signal; 0: never. Once the
// job is being ended, only the grace period matters and no longer the time limit.
int64_t Job::NextDeadline() const {
  const int64_t limit_ns = plan_.time_limit.count() * kNanosecondsPerMillisecond;
  if (kill_at_ns_ != 0) return kill_at_ns_;
  if (abandon_at_ns_ != 0) return abandon_at_ns_;
  return limit_ns == 0 || ending_ ? 0 : started_ns_ + limit_ns;
}

// Waits no longer for orphans: one of another user, or one that the kernel holds, does not die of SIGKILL.
void Job::Abandon() {
  abandon_at_ns_ = 0;
  abandoned_ = true;
  orphans_.clear();
}

// Acts on a deadline that has passed: sends SIGKILL after the grace period, or begins to end the job at the
// time limit.
void Job::CheckDeadlines(int64_t now) {
  const int64_t deadline = NextDeadline();
  if (deadline == 0 || now < deadline || !AnyRunning()) return;
  if (ending_ && kill_at_ns_ == 0) return Abandon();
  if (ending_) {
    kill_at_ns_ = 0;
    abandon_at_ns_ = now + kNanosecondsToDie;
    SendToRunning({.number = SIGKILL});
    return EndOrphans();
  }
  outcome_.timed_out = true;
  EndAll({.number = SIGTERM});
}

bool Job::AnyRunning() const {
  return !orphans_.empty() ||
         std::any_of(children_.begin(), children_.end(), [](const Child& child) { return child.running; });
}

// "ended with exit code 3" or "was killed by signal 9 (SIGKILL)".
std::string DescribeEnd(const RankOutcome& outcome) {
  if (outcome.exit_code) return fmt::format("ended with exit code {}", *outcome.exit_code);
  const char* name = ::sigabbrev_np(*outcome.signal);
  return fmt::format("was killed by signal {}{}", *outcome.signal,
                     name == nullptr ? "" : fmt::format(" (SIG{})", name));
}

}  // namespace

Result<LaunchOutcome> Launch(const LaunchPlan& plan) {
  if (plan.command.empty()) return MakeError(ErrorKind::kInvalidArgument, "no program to start");
  const SignalScope signals;
  if (const int pending = ReceivePendingInterrupt(); pending != 0)
    return LaunchOutcome{.interrupted_by = pending};
  Job job(plan);
  DYNAMICCL_CHECK_OK(job.Start());
  return job.Wait();
}

std::string Describe(const LaunchOutcome& outcome) {
  const size_t n = outcome.ranks.size();
  const double seconds = static_cast<double>(outcome.wall_ns) * 1e-9;
  if (outcome.first_failed) {
    // A single program may be a launcher of ranks of its own.
    const std::string who =
        n == 1 ? "the program" : fmt::format("rank {} of {}", outcome.first_failed->rank, n);
    return fmt::format("{} {} after {:.2f} s", who, DescribeEnd(*outcome.first_failed), seconds);
  }
  if (outcome.timed_out) return fmt::format("ended at the time limit after {:.2f} s", seconds);
  if (outcome.interrupted_by != 0) {
    return fmt::format("ended by signal {} after {:.2f} s", outcome.interrupted_by, seconds);
  }
  return fmt::format("{} {} ended well in {:.2f} s", n, n == 1 ? "process" : "ranks", seconds);
}

int ExitInterrupted(const Error& error, int signal_number) {
  fmt::print(stderr, "{}", Describe(error));
  return kExitSignalBase + signal_number;
}

int ExitCodeOf(const LaunchOutcome& outcome) {
  if (outcome.interrupted_by != 0) return kExitSignalBase + outcome.interrupted_by;
  return outcome.ok() ? kExitOk : kExitJobFailed;
}

}  // namespace dynamiccl
