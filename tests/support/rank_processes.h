// SPDX-License-Identifier: Apache-2.0
// Runs ranks as processes of a program, called as PROGRAM RANK N_RANKS READ_FD WRITE_FD BEHAVIOUR. Each has
// an environment of its own and, if asked for, a network namespace.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace dynamiccl::testing {

struct RankPlace {
  std::map<std::string, std::string> environment;
  std::string network_namespace;  // as `ip netns` names it; empty: the test's own
};

struct RankRun {
  std::string program;
  int n_ranks = 2;
  std::string behaviour;
  std::function<RankPlace(int rank)> place = [](int) { return RankPlace{}; };
  // Time after which all ranks that still run are killed, so that a hang ends as a failure.
  std::chrono::seconds limit{120};
  // If the last running rank is stopped (SIGSTOP), lets it continue.
  bool continue_last = false;
  // If above 0, all stopped ranks continue this long after the last stop.
  std::chrono::milliseconds stopped_for{0};
};

// How one rank ended: its wait status, and whether it had to be killed at the limit.
struct RankEnd {
  int status = 0;
  bool hung = false;

  bool exited_with(int code) const { return !hung && WIFEXITED(status) && WEXITSTATUS(status) == code; }
  bool killed() const { return !hung && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }
};

inline void EnterNamespace(const std::string& name) {
  if (name.empty()) return;
  const int fd = ::open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) ::_exit(126);
}

inline pid_t StartRank(const RankRun& run, int rank, const int (&pipe_ends)[2]) {
  const std::vector<std::string> words = {run.program,
                                          std::to_string(rank),
                                          std::to_string(run.n_ranks),
                                          std::to_string(pipe_ends[0]),
                                          std::to_string(pipe_ends[1]),
                                          run.behaviour};
  const RankPlace place = run.place(rank);
  const pid_t child = ::fork();
  if (child != 0) return child;
  for (const auto& [name, value] : place.environment) ::setenv(name.c_str(), value.c_str(), 1);
  EnterNamespace(place.network_namespace);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

// The stopped ranks, and since when they are stopped.
struct Stopped {
  std::set<size_t> ranks;
  std::chrono::steady_clock::time_point last;
};

// Returns true if the rank has ended. If it has only stopped, notes that.
inline bool HasEnded(pid_t child, size_t rank, int& status, Stopped& stopped) {
  int now = 0;
  if (::waitpid(child, &now, WNOHANG | WUNTRACED) != child) return false;
  if (WIFSTOPPED(now)) {
    stopped.ranks.insert(rank);
    stopped.last = std::chrono::steady_clock::now();
    return false;
  }
  status = now;
  return true;
}

// The ranks of a run from their start on. The process must have no threads.
class RunningRanks {
 public:
  explicit RunningRanks(RankRun run)
      : run_(std::move(run)), limit_(std::chrono::steady_clock::now() + run_.limit) {
    int pipe_ends[2];
    if (::pipe(pipe_ends) != 0) return;
    for (int rank = 0; rank < run_.n_ranks; ++rank) children_.push_back(StartRank(run_, rank, pipe_ends));
    ::close(pipe_ends[0]);
    ::close(pipe_ends[1]);
    ends_.resize(children_.size());
    for (size_t rank = 0; rank < children_.size(); ++rank) running_.insert(rank);
  }

  // Returns true if all ranks have ended. Lets ranks continue that were stopped for long enough, and kills
  // all at the limit.
  bool HaveEnded() {
    std::erase_if(running_,
                  [&](size_t rank) { return HasEnded(children_[rank], rank, ends_[rank].status, stopped_); });
    const auto now = std::chrono::steady_clock::now();
    if (run_.stopped_for.count() > 0 && now - stopped_.last > run_.stopped_for) {
      for (const size_t rank : stopped_.ranks) ::kill(children_[rank], SIGCONT);
      stopped_.ranks.clear();
    }
    if (run_.continue_last && running_.size() == 1) ::kill(children_[*running_.begin()], SIGCONT);
    for (const size_t rank : now > limit_ ? running_ : std::set<size_t>()) {
      ::kill(children_[rank], SIGKILL);
      ends_[rank].hung = true;
    }
    return running_.empty();
  }

  const std::vector<RankEnd>& ends() const { return ends_; }  // by rank

 private:
  const RankRun run_;
  const std::chrono::steady_clock::time_point limit_;
  std::vector<pid_t> children_;
  std::vector<RankEnd> ends_;
  std::set<size_t> running_;
  Stopped stopped_;
};

// Runs all jobs at the same time. Returns the ends by run and by rank.
inline std::vector<std::vector<RankEnd>> RunAtOnce(const std::vector<RankRun>& runs) {
  std::vector<std::unique_ptr<RunningRanks>> running;
  for (const RankRun& run : runs) running.push_back(std::make_unique<RunningRanks>(run));
  std::vector<std::vector<RankEnd>> ends;
  for (const auto& ranks : running) {
    while (!ranks->HaveEnded()) {
      for (const auto& each : running) each->HaveEnded();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ends.push_back(ranks->ends());
  }
  return ends;
}

// Runs one job and returns how its ranks ended, rank by rank.
inline std::vector<RankEnd> RunRanks(const RankRun& run) {
  return RunAtOnce({run}).front();
}

// Gives this process and the ranks that it starts their own /dev/shm and network, so that Leftovers() finds
// nothing of other tests. Without the permission to create them it changes nothing, and the test must run
// alone (tests/src/hostccl/CMakeLists.txt). The process must have no threads.
class OwnNamespaces : public ::testing::Environment {
 public:
  void SetUp() override {
    const std::string user = std::to_string(::getuid());
    if (::unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) {
      if (::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0) return;
      std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    }
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    ::mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
    ifreq loopback{};
    loopback.ifr_flags = IFF_UP | IFF_RUNNING;
    std::string("lo").copy(loopback.ifr_name, IFNAMSIZ - 1);
    const int any_socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ::ioctl(any_socket, SIOCSIFFLAGS, &loopback);
    ::close(any_socket);
  }
};

// Returns what a dead rank could leave behind: names in /dev/shm, abstract sockets of hostccl, and files in
// the folder for temporary files.
inline std::set<std::string> Leftovers() {
  std::set<std::string> names;
  for (const char* folder : {"/dev/shm", "/tmp"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename();
      if (std::string(folder) == "/dev/shm" || name.find("hostccl") != std::string::npos) names.insert(name);
    }
  }
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const size_t at = line.find("@hostccl-");
    if (at != std::string::npos) names.insert(line.substr(at));
  }
  return names;
}

}  // namespace dynamiccl::testing
