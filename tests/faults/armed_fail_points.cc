// SPDX-License-Identifier: Apache-2.0
// This file is linked into the object that tests preload. It arms the points of src/base/job_fail_point.h.
//   FAIL_NOTE=path       each point that a process passes is written there, once per process
//   FAIL_AT=name:what[:n]  acts when the point is passed for the n-th time, from 1:
//     kill    SIGKILL    stop  SIGSTOP, and SIGCONT after FAIL_STOP_MS (default 700)
//   FAIL_MESSAGES=what   changes a fourth of the control messages that the process sends, by FAIL_SEED:
//     late    up to 80 ms later    twice   sent two times
//     lost    not sent             cut     not sent, and the connection ends
//   FAIL_PLEDGES=n       the process's first n pledges about situations are not sent
// The function `dynamiccl_fail_points` lists the points, one per line.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <string>

#include "src/base/job_fail_point.h"
#include "src/decision/control_messages.h"

namespace dynamiccl {
namespace {

constexpr const char* kNames[] = {
#define X(id, name) name,
#include "src/base/job_fail_points.def"
#undef X
};
constexpr size_t kPoints = std::size(kNames);

struct Armed {
  const char* note = nullptr;
  std::string at;
  std::string what;
  int passes = 1;
  std::string message;
  unsigned seed = 1;
  int lost_pledges = 0;
};
// A function, because Arm() may run before other objects of this file are constructed.
Armed& TheArmed() {
  static Armed armed;
  return armed;
}

const char* Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Starts a process that wakes this one, because a stopped process cannot wake itself.
void WakeLater() {
  const int wait_ms = std::atoi(Variable("FAIL_STOP_MS"));
  const double seconds = (wait_ms > 0 ? wait_ms : 700) / 1000.0;
  const std::string command =
      "sleep " + std::to_string(seconds) + "; kill -CONT " + std::to_string(::getpid());
  const char* arguments[] = {"sh", "-c", command.c_str(), nullptr};
  char* nothing[] = {nullptr};
  pid_t waker = 0;
  ::posix_spawn(&waker, "/bin/sh", nullptr, nullptr, const_cast<char**>(arguments), nothing);
}

void Note(JobFailPoint point) {
  static std::array<std::atomic<bool>, kPoints> noted{};
  if (TheArmed().note == nullptr || noted[static_cast<size_t>(point)].exchange(true)) return;
  const std::string line = std::string(kNames[static_cast<size_t>(point)]) + "\n";
  const int file = ::open(TheArmed().note, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || ::write(file, line.data(), line.size()) < 0) std::abort();
  ::close(file);
}

void Act(JobFailPoint point) {
  Note(point);
  if (TheArmed().at != kNames[static_cast<size_t>(point)]) return;
  static std::atomic<int> passed{0};
  if (++passed != TheArmed().passes) return;
  if (TheArmed().what == "kill") ::raise(SIGKILL);
  if (TheArmed().what != "stop") return;
  WakeLater();
  ::raise(SIGSTOP);
}

// Returns true for one of the first pledges about situations, which must be lost.
bool IsLostPledge(std::span<const std::byte> bytes) {
  static std::atomic<int> pledges{0};
  // The kind comes after two tokens and two numbers (docs/formats/control_plane.md).
  constexpr size_t kAbout = kMessageHeaderBytes + 2 * sizeof(ControlToken) + 2 * sizeof(int32_t);
  return KindOf(bytes) == ControlKind::kPledge &&
         bytes[kAbout] == static_cast<std::byte>(VoteKind::kSituation) && pledges++ < TheArmed().lost_pledges;
}

Status Disturb(int fd, std::span<const std::byte> bytes, SendBytes send) {
  static std::mutex mutex;
  static std::minstd_rand random(TheArmed().seed);
  unsigned drawn = 0;
  {
    const std::lock_guard lock(mutex);
    drawn = static_cast<unsigned>(random());
  }
  if (IsLostPledge(bytes)) return {};
  if (TheArmed().message.empty() || drawn % 4 != 0) return send(fd, bytes);
  if (TheArmed().message == "lost") return {};
  if (TheArmed().message == "cut") {
    ::shutdown(fd, SHUT_RDWR);
    return {};
  }
  if (TheArmed().message == "late") ::usleep(drawn / 4 % 80'000);
  if (TheArmed().message == "twice") {
    if (const Status first = send(fd, bytes); !first) return first;
  }
  return send(fd, bytes);
}

__attribute__((constructor)) void Arm() {
  const std::string at = Variable("FAIL_AT");
  const size_t colon = at.find(':');
  const size_t second = at.find(':', colon + 1);
  TheArmed().at = at.substr(0, colon);
  if (colon != std::string::npos) TheArmed().what = at.substr(colon + 1, second - colon - 1);
  if (colon != std::string::npos && second != std::string::npos)
    TheArmed().passes = std::atoi(at.c_str() + second + 1);
  if (*Variable("FAIL_NOTE") != '\0') TheArmed().note = Variable("FAIL_NOTE");
  TheArmed().message = Variable("FAIL_MESSAGES");
  TheArmed().seed = static_cast<unsigned>(std::atoi(Variable("FAIL_SEED"))) + 1;
  TheArmed().lost_pledges = std::atoi(Variable("FAIL_PLEDGES"));
  g_act_at_fail_point.store(&Act);
  if (!TheArmed().message.empty() || TheArmed().lost_pledges > 0) g_send_message.store(&Disturb);
}

}  // namespace
}  // namespace dynamiccl

extern "C" __attribute__((visibility("default"))) const char* dynamiccl_fail_points() {
  static std::string all;
  if (all.empty()) {
    for (const char* name : dynamiccl::kNames) all += std::string(name) + "\n";
  }
  return all.c_str();
}
