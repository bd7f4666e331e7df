// SPDX-License-Identifier: Apache-2.0
// Each rank leads a process group of its own, so that whatever it started can be ended with it. The launcher
// sleeps in sigtimedwait: a child that ended, a signal to pass on, or a deadline wakes it.
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
#include "tools/launch/signal_scope.h"

namespace dynamiccl {
namespace {

constexpr int64_t kNanosecondsPerMillisecond = 1'000'000;

class Job {
 public:
  explicit Job(const LaunchPlan& plan) : plan_(plan), started_ns_(MonotonicNanoseconds()) {}
  ~Job() { KillLeftovers(); }

  Status Start();
  Result<LaunchOutcome> Wait();

 private:
  struct Child {
    RankOutcome outcome;
    pid_t pid = -1;
    bool running = true;
  };

  Status StartRank(int rank);
  void Reap();
  void Ended(Child& child, int wait_status);
  void OnSignal(int signal_number);
  void EndAll(int signal_number);
  void SendToRunning(int signal_number);
  void KillLeftovers();
  int64_t NextDeadline() const;
  void CheckDeadlines(int64_t now);
  bool AnyRunning() const;

  const LaunchPlan& plan_;
  std::optional<ReservedPort> port_;  // where rank 0 listens; reserved until the job has ended
  int64_t started_ns_;
  int64_t kill_at_ns_ = 0;  // 0: nothing is being ended
  bool ending_ = false;
  std::vector<Child> children_;
  LaunchOutcome outcome_;
};

Status Job::Start() {
  DYNAMICCL_TRY(port_, ReservedPort::Reserve());
  const int n_processes = std::max(plan_.n_ranks, 1);
  for (int rank = 0; rank < n_processes; ++rank) DYNAMICCL_CHECK_OK(StartRank(rank));
  return {};
}

Status Job::StartRank(int rank) {
  EnvironmentChanges environment = plan_.environment;
  if (plan_.n_ranks > 0) environment.merge(RankEnvironment(rank, plan_.n_ranks, port_->number()));
  // A single command keeps the terminal: it may be interactive, and a launcher passes signals on itself.
  const ChildOptions options{.output_path = plan_.output_path, .own_group = plan_.n_ranks > 0};
  DYNAMICCL_TRY(const pid_t pid, StartChild(plan_.command, environment, options));
  children_.push_back({.outcome = {.rank = rank}, .pid = pid});
  return {};
}

Result<LaunchOutcome> Job::Wait() {
  while (AnyRunning()) {
    OnSignal(WaitForSignal(NextDeadline()));
    Reap();
    CheckDeadlines(MonotonicNanoseconds());
  }
  for (const Child& child : children_) outcome_.ranks.push_back(child.outcome);
  outcome_.wall_ns = MonotonicNanoseconds() - started_ns_;
  return outcome_;
}

void Job::OnSignal(int signal_number) {
  if (signal_number == 0 || signal_number == SIGCHLD) return;
  outcome_.interrupted_by = signal_number;
  EndAll(signal_number);
}

void Job::Reap() {
  for (Child& child : children_) {
    int wait_status = 0;
    if (child.running && ::waitpid(child.pid, &wait_status, WNOHANG) == child.pid) Ended(child, wait_status);
  }
}

void Job::Ended(Child& child, int wait_status) {
  child.running = false;
  child.outcome.ended_by_us = ending_;
  if (WIFSIGNALED(wait_status))
    child.outcome.signal = WTERMSIG(wait_status);
  else
    child.outcome.exit_code = WEXITSTATUS(wait_status);
  if (!child.outcome.failed() || ending_) return;
  outcome_.first_failed = child.outcome;
  EndAll(SIGTERM);
}

// The first request counts; a second signal of the user shortens nothing but is passed on.
void Job::EndAll(int signal_number) {
  SendToRunning(signal_number);
  if (ending_) return;
  ending_ = true;
  kill_at_ns_ = MonotonicNanoseconds() + plan_.grace.count() * kNanosecondsPerMillisecond;
}

void Job::SendToRunning(int signal_number) {
  for (const Child& child : children_) {
    if (child.running) SignalChild(child.pid, plan_.n_ranks > 0, signal_number);
  }
}

// What ranks started and did not end themselves; also the ranks when Start failed half-way.
void Job::KillLeftovers() {
  for (const Child& child : children_) {
    if (plan_.n_ranks > 0) SignalChild(child.pid, true, SIGKILL);
    if (child.running) {
      SignalChild(child.pid, false, SIGKILL);
      ::waitpid(child.pid, nullptr, 0);
    }
  }
}

int64_t Job::NextDeadline() const {
  const int64_t limit_ns = plan_.time_limit.count() * kNanosecondsPerMillisecond;
  if (kill_at_ns_ != 0) return kill_at_ns_;
  return limit_ns == 0 || ending_ ? 0 : started_ns_ + limit_ns;
}

void Job::CheckDeadlines(int64_t now) {
  const int64_t deadline = NextDeadline();
  if (deadline == 0 || now < deadline || !AnyRunning()) return;
  if (ending_) {
    kill_at_ns_ = 0;
    return SendToRunning(SIGKILL);
  }
  outcome_.timed_out = true;
  EndAll(SIGTERM);
}

bool Job::AnyRunning() const {
  return std::any_of(children_.begin(), children_.end(), [](const Child& child) { return child.running; });
}

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
  Job job(plan);
  DYNAMICCL_CHECK_OK(job.Start());
  return job.Wait();
}

std::string Describe(const LaunchOutcome& outcome) {
  const size_t n = outcome.ranks.size();
  const double seconds = static_cast<double>(outcome.wall_ns) * 1e-9;
  if (outcome.first_failed) {
    return fmt::format("rank {} of {} {} after {:.2f} s", outcome.first_failed->rank, n,
                       DescribeEnd(*outcome.first_failed), seconds);
  }
  if (outcome.timed_out) return fmt::format("ended at the time limit after {:.2f} s", seconds);
  if (outcome.interrupted_by != 0) {
    return fmt::format("ended by signal {} after {:.2f} s", outcome.interrupted_by, seconds);
  }
  return fmt::format("{} {} ended well in {:.2f} s", n, n == 1 ? "process" : "ranks", seconds);
}

int ExitCodeOf(const LaunchOutcome& outcome) {
  if (outcome.interrupted_by != 0) return kExitSignalBase + outcome.interrupted_by;
  return outcome.ok() ? kExitOk : kExitJobFailed;
}

}  // namespace dynamiccl
