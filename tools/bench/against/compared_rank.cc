// SPDX-License-Identifier: Apache-2.0
// Executes the commands that a comparison sends to a rank: "setup", "time", "copy" and "quit". Each answer is
// one line: "ok ...", "times ...", "copies ..." or "error ...".
#include "tools/bench/against/compared_rank.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "src/base/statistics.h"
#include "tools/bench/collective_bench.h"
#include "tools/bench/copy_limit.h"
#include "tools/bench/data_check.h"
#include "tools/bench/forced_config.h"
#include "tools/bench/sweep.h"

namespace dynamiccl {
namespace {

// Limits of the sweep with which "setup" picks the fastest config: the number of times that each config is
// timed, and seconds in total. These times are never reported, since the winner of a selection looks faster
// than it is.
constexpr int kPickRepeats = 5;
constexpr double kPickSeconds = 4;
// Bytes, over all ranks together, with which the copy rate of the machine is probed. The size is the same for
// every measured call, so that a changed rate means a changed machine.
constexpr double kSteadyBytes = 16 << 20;

// Executes commands one after the other. The call and the buffers of the latest "setup" are kept for the
// commands that follow. ServeComparison owns the server on its stack.
class Server {
 public:
  Server(BenchSession& session, const ComparedRankOptions& options) : session_(session), options_(options) {}

  // Executes one command and returns the answer. An error becomes an "error ..." line.
  Result<std::string> Obey(const std::string& line);

 private:
  Result<std::string> SetUp(const std::string& line);
  Result<std::string> PickBest();
  Result<std::string> Time(const std::string& line);
  Result<std::string> Copy(const std::string& line);

  BenchSession& session_;
  const ComparedRankOptions& options_;
  // The call that the latest "setup" prepared.
  BenchCall call_;
  // Bytes of each buffer. A "setup" that needs more allocates new buffers; the old ones live as long as the
  // session.
  size_t room_ = 0;
  std::byte* send_ = nullptr;
  std::byte* receive_ = nullptr;
  // Measures the copy rate. The first "copy" command creates it; a command with a larger footprint replaces
  // it.
  std::optional<CopyProbe> probe_;
  double probe_room_ = 0;
  // Forces configs through the sweep's tuner plugin. Set only if "setup" is to pick the fastest config.
  std::optional<ForcedConfig> forced_;
};

// Executes "setup COLLECTIVE TYPE OP COUNT SEND_BYTES RECEIVE_BYTES". The names are not validated, because
// only `dynamiccl bench --against` sends them.
Result<std::string> Server::SetUp(const std::string& line) {
  char collective[32], type[32], op[32];
  unsigned long long count = 0, send_bytes = 0, receive_bytes = 0;
  if (std::sscanf(line.c_str(), "setup %31s %31s %31s %llu %llu %llu", collective, type, op, &count,
                  &send_bytes, &receive_bytes) != 6)
    return MakeError(ErrorKind::kInternal, "cannot read '{}'", line);
  if (room_ < std::max(send_bytes, receive_bytes)) {
    room_ = std::max(send_bytes, receive_bytes);
    DYNAMICCL_TRY(send_, session_.AllocateBuffer(room_));
    DYNAMICCL_TRY(receive_, session_.AllocateBuffer(room_));
  }
  call_ = {.collective = *ParseTestedCollective(collective),
           .count = count,
           .type = *ParseDataType(type),
           .op = *ParseReduceOp(op),
           .send = send_,
           .receive = receive_};
  // MPI_Bcast has a single buffer, so NCCL's Broadcast gets one buffer for sending and receiving too.
  if (call_.collective == TestedCollective::kBroadcast) call_.send = call_.receive;
  const CheckedCall data{call_.collective, call_.count, call_.type, call_.op, 0, session_.place().n_ranks};
  const std::vector<std::byte> input = InputOf(data, session_.place().rank);
  DYNAMICCL_CHECK_OK(
      session_.device().CopyIn(const_cast<std::byte*>(call_.send), input.data(), input.size()));
  return options_.tuner_path.empty() || !IsTunable(call_.collective) ? std::string("ok") : PickBest();
}

// Times every config for the call, and forces the fastest one for the "time" commands that follow.
Result<std::string> Server::PickBest() {
  if (!forced_) {
    DYNAMICCL_TRY(ForcedConfig forced, ForcedConfig::Open(options_.tuner_path));
    forced_.emplace(std::move(forced));
  }
  const auto collective = static_cast<Collective>(call_.collective);
  const uint64_t bytes =
      TotalBytes(collective, call_.count, ElementBytes(call_.type), session_.place().n_ranks);
  DYNAMICCL_TRY(const SweepResult sweep, RunSweep(session_, {.topology = "pick",
                                                             .collectives = {collective},
                                                             .sizes = {bytes},
                                                             .repeats = kPickRepeats,
                                                             .budget_s = kPickSeconds,
                                                             .send = send_,
                                                             .receive = receive_,
                                                             .tuner_path = options_.tuner_path}));
  const Measurement* best = nullptr;
  double best_us = 0;
  for (const Measurement& row : sweep.rows) {
    const double us = Median(row.microseconds);
    if (best != nullptr && us >= best_us) continue;
    best = &row;
    best_us = us;
  }
  if (best == nullptr) return MakeError(ErrorKind::kUnsupported, "no config could be timed");
  forced_->Force(best->is_default ? kLeaveNcclAlone : best->config);
  const CollectiveConfig& config = best->config;
  return fmt::format("ok {}/{}/{}{}", Name(config.algorithm), Name(config.protocol), config.channels,
                     best->is_default ? " (default)" : "");
}

// Executes "time ITERATIONS WARMUPS SINGLES". The answer has three times in microseconds: one call among
// calls back to back on the slowest rank, and the median and 99th percentile of single calls.
Result<std::string> Server::Time(const std::string& line) {
  int iterations = 0, warmups = 0, singles = 0;
  if (std::sscanf(line.c_str(), "time %d %d %d", &iterations, &warmups, &singles) != 3)
    return MakeError(ErrorKind::kInternal, "cannot read '{}'", line);
  DYNAMICCL_TRY(const double own, TimeBackToBack(session_, call_, iterations, warmups));
  std::vector<double> slowest{own};
  DYNAMICCL_CHECK_OK(session_.MaxOverRanks(slowest));
  DYNAMICCL_TRY(const std::vector<double> each, TimeSingles(session_, call_, singles));
  return fmt::format("times {:.4f} {:.4f} {:.4f}", slowest[0], NearestRank(each, 0.5),
                     NearestRank(each, 0.99));
}

// Executes "copy FOOTPRINT MILLISECONDS". Answers two copy rates in GB/s (side.h, CopyRates).
Result<std::string> Server::Copy(const std::string& line) {
  double footprint = 0, milliseconds = 0;
  if (std::sscanf(line.c_str(), "copy %lf %lf", &footprint, &milliseconds) != 2)
    return MakeError(ErrorKind::kInternal, "cannot read '{}'", line);
  const double needed = std::max(footprint, kSteadyBytes);
  if (probe_room_ < needed) {
    probe_.emplace(session_, needed);
    probe_room_ = needed;
  }
  DYNAMICCL_TRY(const double limit, probe_->Measure(footprint, milliseconds));
  DYNAMICCL_TRY(const double steady, probe_->MeasureMemcpy(kSteadyBytes, milliseconds));
  return fmt::format("copies {:.4f} {:.4f}", limit, steady);
}

Result<std::string> Server::Obey(const std::string& line) {
  if (line.starts_with("setup ")) return SetUp(line);
  if (line.starts_with("time ")) return Time(line);
  if (line.starts_with("copy ")) return Copy(line);
  return MakeError(ErrorKind::kInternal, "unknown word in '{}'", line);
}

}  // namespace

void BindRank(const std::string& binding, int rank) {
  if (binding != "core") return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(rank) % std::max(1U, std::thread::hardware_concurrency()), &set);
  ::sched_setaffinity(0, sizeof(set), &set);
}

Status ServeComparison(BenchSession& session, const ComparedRankOptions& options) {
  DYNAMICCL_TRY(ControlLine control, ControlLine::Connect(options.socket));
  DYNAMICCL_CHECK_OK(control.Send(fmt::format("hello {}", session.place().rank)));
  Server server(session, options);
  // A negative limit lets a rank wait for its next command without a limit.
  constexpr std::chrono::milliseconds kForEver{-1};
  while (true) {
    const auto line = control.Read(kForEver);
    if (!line || *line == "quit") return {};
    const auto answer = server.Obey(*line);
    DYNAMICCL_CHECK_OK(control.Send(answer ? *answer : "error " + answer.error().message));
  }
}

}  // namespace dynamiccl
