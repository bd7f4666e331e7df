// SPDX-License-Identifier: Apache-2.0
// Starts the processes of one library's ranks and sends each command to all of them.
#include "tools/bench/against/side.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include "tools/launch/child_process.h"

namespace dynamiccl {
namespace {

// Time limit until all ranks have started. To import LibTorch on a busy machine takes the longest.
constexpr std::chrono::milliseconds kStart{120'000};
// Time limit for the answer to one command. The slowest command, single calls of 64 MiB over sockets, takes
// seconds.
constexpr std::chrono::milliseconds kAnswer{300'000};
// Time that ranks have to end after "quit".
constexpr std::chrono::milliseconds kEnd{3'000};

// The last lines of a log, about 600 characters, on one line.
std::string LastLines(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) text = text.size() > 600 ? line : text + (text.empty() ? "" : " | ") + line;
  }
  return text;
}

}  // namespace

Side::Side(Side&& other) noexcept
    : name_(std::move(other.name_)),
      log_(std::move(other.log_)),
      processes_(std::exchange(other.processes_, {})),
      port_(std::move(other.port_)),
      ranks_(std::move(other.ranks_)) {}

Side::~Side() {
  for (ControlLine& rank : ranks_) static_cast<void>(rank.Send("quit"));
  ranks_.clear();
  const auto end = std::chrono::steady_clock::now() + kEnd;
  for (const pid_t pid : processes_) {
    pid_t ended = 0;
    while ((ended = ::waitpid(pid, nullptr, WNOHANG)) == 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    // If the process is a launcher that has ended, its ranks may still run in its process group.
    SignalChild(pid, true, SIGKILL);
    if (ended == 0) ::waitpid(pid, nullptr, 0);
  }
}

Result<Side> Side::Start(const SideProgram& program, int n_ranks, const std::string& folder) {
  Side side(program.name);
  side.log_ = fmt::format("{}/{}-{}.log", folder, program.name, n_ranks);
  DYNAMICCL_TRY(ControlListener listener,
                ControlListener::Open(fmt::format("{}/{}-{}.socket", folder, program.name, n_ranks)));
  DYNAMICCL_CHECK_OK(side.Launch(program, n_ranks, listener.path()));
  DYNAMICCL_CHECK_OK(side.Meet(listener, n_ranks));
  return side;
}

// Fills the placeholders of the command and starts it once, or once for each rank.
Status Side::Launch(const SideProgram& program, int n_ranks, const std::string& socket) {
  std::vector<std::string> command = program.command;
  std::replace(command.begin(), command.end(), std::string("@socket"), socket);
  std::replace(command.begin(), command.end(), std::string("@ranks"), std::to_string(n_ranks));
  DYNAMICCL_TRY(port_, ReservedPort::Reserve());
  for (int rank = 0; rank < (program.starts_all_ranks ? 1 : n_ranks); ++rank) {
    EnvironmentChanges environment = program.environment;
    if (!program.starts_all_ranks) environment.merge(RankEnvironment(rank, n_ranks, port_->number()));
    DYNAMICCL_TRY(const pid_t pid, StartChild(command, environment, {.output_path = log_}));
    processes_.push_back(pid);
  }
  return {};
}

tl::unexpected<Error> Side::Failed(const Error& error) const {
  const std::string said = LastLines(log_);
  return Wrap({error.kind, fmt::format("{}{}{}", error.message, said.empty() ? "" : ": ", said), error.hint},
              name_);
}

Status Side::Meet(ControlListener& listener, int n_ranks) {
  std::vector<std::optional<ControlLine>> lines(static_cast<size_t>(n_ranks));
  const auto end = std::chrono::steady_clock::now() + kStart;
  constexpr std::chrono::milliseconds kLook{200};
  for (int met = 0; met < n_ranks;) {
    auto line = listener.Accept(kLook);
    const bool ended = ::waitpid(processes_.front(), nullptr, WNOHANG) == processes_.front();
    if (!line && (ended || std::chrono::steady_clock::now() > end))
      return Failed({ErrorKind::kUnavailable, fmt::format("only {} of {} ranks started", met, n_ranks), {}});
    if (!line) continue;
    DYNAMICCL_TRY(const std::string hello, line->Read(kStart));
    int rank = -1;
    if (std::sscanf(hello.c_str(), "hello %d", &rank) != 1 || rank < 0 || rank >= n_ranks)
      return Failed({ErrorKind::kInternal, fmt::format("a rank said '{}'", hello), {}});
    lines[static_cast<size_t>(rank)] = std::move(*line);
    ++met;
  }
  for (auto& line : lines) ranks_.push_back(std::move(*line));
  return {};
}

Result<std::string> Side::Ask(const std::string& line) {
  for (ControlLine& rank : ranks_) DYNAMICCL_CHECK_OK(rank.Send(line));
  std::vector<std::string> answers;
  for (ControlLine& rank : ranks_) {
    auto answer = rank.Read(kAnswer);
    if (!answer) return Failed(answer.error());
    answers.push_back(std::move(*answer));
  }
  for (const std::string& answer : answers) {
    if (answer.starts_with("error "))
      return MakeError(ErrorKind::kUnsupported, "{}: {}", name_, answer.substr(6));
  }
  return answers.front();
}

Result<std::string> Side::SetUp(const ComparedCall& call) {
  const uint64_t width = ElementBytes(call.type);
  DYNAMICCL_TRY(
      const std::string answer,
      Ask(fmt::format("setup {} {} {} {} {} {}", ProgramName(call.collective), Name(call.type), Name(call.op),
                      call.layout.argument, call.layout.send * width, call.layout.receive * width)));
  return answer.size() > 3 ? answer.substr(3) : std::string();
}

Result<SideTimes> Side::Time(int iterations, int warmups, int singles) {
  DYNAMICCL_TRY(const std::string answer, Ask(fmt::format("time {} {} {}", iterations, warmups, singles)));
  SideTimes times;
  if (std::sscanf(answer.c_str(), "times %lf %lf %lf", &times.microseconds, &times.p50_us, &times.p99_us) ==
      3)
    return times;
  return MakeError(ErrorKind::kInternal, "{}: answered '{}'", name_, answer);
}

Result<CopyRates> Side::Copy(double footprint, double milliseconds) {
  DYNAMICCL_TRY(const std::string answer, Ask(fmt::format("copy {:.0f} {}", footprint, milliseconds)));
  CopyRates rates;
  if (std::sscanf(answer.c_str(), "copies %lf %lf", &rates.limit, &rates.steady) == 2) return rates;
  return MakeError(ErrorKind::kInternal, "{}: answered '{}'", name_, answer);
}

}  // namespace dynamiccl
