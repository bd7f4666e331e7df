// SPDX-License-Identifier: Apache-2.0
// `dynamiccl top`: shows what running jobs are doing, from the traces that they are writing. No job is
// contacted or stopped. Each rank of the user's jobs has one line; below follow the collectives of the first
// rank:
//
//    RANK      PID   CALLS/S     GB/S STEPS/S  STAGE, PHASE      DECIDED BY                       NOW
//       0    12730       964    0.060    0.00  0, backward       nothing was asked
//
//   COLLECTIVE       SIZE   CALLS/S     GB/S        US  ROLE             CONFIG           BY
//   AllReduce         64K     921.5    0.060         -  gradient_reduce  -                -
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "src/base/clock.h"
#include "src/collective/legal_configs.h"
#include "src/collective/size_class.h"
#include "src/policy/policy_file.h"
#include "tools/command_table.h"
#include "tools/console_log.h"
#include "tools/exit_code.h"
#include "tools/launch/installation.h"
#include "tools/report/json_output.h"
#include "tools/report/recognised_labels.h"
#include "tools/running/live_calls.h"
#include "tools/running/running_process.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

struct TopOptions {
  std::vector<std::string> traces;
  double seconds = 2;
  uint64_t rows = 20;
  bool once = false;
  bool json = false;
};

// Number of the newest records of each thread that are read. For a job with more records in its window, the
// rates are computed over the records that were read.
constexpr uint64_t kNewest = 16384;
// Seconds: a call that has lasted longer is shown.
constexpr double kLongInside = 1;

// The named traces, or those of this user's running processes.
Result<std::vector<std::string>> TracesToWatch(const TopOptions& options) {
  if (!options.traces.empty()) return options.traces;
  std::vector<std::string> traces;
  const std::vector<RunningProcess> processes = RunningProcesses();
  for (const RunningProcess& process : processes) {
    if (!process.trace.empty()) traces.push_back(process.trace);
  }
  if (!traces.empty()) return traces;
  return WithHint(MakeError(ErrorKind::kNotFound,
                            "no process of yours on this machine is recording ({} have "
                            "DynamICCL loaded)",
                            processes.size()),
                  "start the job with DYNAMICCL_TRACE=folder/%r.ctrace, or name trace files");
}

// Returns the shipped policy, which recognises unlabelled programs; null without one.
std::shared_ptr<const Policy> Recogniser() {
  const std::string path = ShippedPolicy();
  const auto policy = path.empty() ? Result<std::shared_ptr<const Policy>>(nullptr) : ReadPolicyFile(path);
  return policy.value_or(nullptr);
}

// Reads all traces once. A trace that cannot be read is left out with a warning.
std::vector<LiveProcess> Look(const std::vector<std::string>& traces, double seconds,
                              const Policy* recogniser) {
  std::vector<LiveProcess> processes;
  for (const std::string& path : traces) {
    Result<Trace> trace = ReadTraceTail(path, kNewest);
    if (!trace) {
      spdlog::warn("left out: {}", trace.error().message);
      continue;
    }
    for (TraceSection& section : trace->sections) {
      if (!LabelByDecisions(section) && recogniser != nullptr) LabelByPolicy(*recogniser, section);
      processes.push_back(LiveCallsOf(section, MonotonicNanoseconds(), static_cast<int64_t>(seconds * 1e9)));
    }
  }
  return processes;
}

std::string ShareOfTop(uint64_t part, uint64_t all) {
  return fmt::format("{:.0f} %", 100 * static_cast<double>(part) / static_cast<double>(all));
}

std::string DecidersText(const LiveProcess& process) {
  uint64_t all = 0;
  for (const auto& [by, calls] : process.decisions) all += calls;
  std::string text;
  for (const auto& [by, calls] : process.decisions)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Name(by), ShareOfTop(calls, all));
  return text.empty() ? "nothing was asked" : text;
}

// Describes a process that is inside a long call, idle, or has not issued a call yet.
std::string NowText(const LiveProcess& process) {
  if (process.inside_seconds > kLongInside)
    return fmt::format("in {} for {:.0f} s", process.inside, process.inside_seconds);
  if (process.idle_seconds < 0) return "no call yet";
  return process.idle_seconds > process.seconds ? fmt::format("no call for {:.0f} s", process.idle_seconds)
                                                : "";
}

std::string DoingText(const LiveProcess& process) {
  if (process.stage == ZeroStage::kUnknown && process.phase == Phase::kUnknown) return "-";
  return fmt::format("{}, {}", process.stage == ZeroStage::kUnknown ? "-" : Name(process.stage),
                     Name(process.phase));
}

void PrintProcesses(const std::vector<LiveProcess>& processes) {
  fmt::print("{:>5} {:>8} {:>9} {:>8} {:>7}  {:<16}  {:<32} {}\n", "RANK", "PID", "CALLS/S", "GB/S",
             "STEPS/S", "STAGE, PHASE", "DECIDED BY", "NOW");
  for (const LiveProcess& process : processes) {
    fmt::print("{:>5} {:>8} {:>9.0f} {:>8.3f} {:>7.2f}  {:<16}  {:<32} {}\n", process.rank,
               process.process_id, static_cast<double>(process.calls) / process.seconds,
               static_cast<double>(process.bytes) / process.seconds * 1e-9,
               static_cast<double>(process.steps) / process.seconds, DoingText(process),
               DecidersText(process), NowText(process));
  }
}

void PrintKeys(const LiveProcess& process, uint64_t rows) {
  fmt::print("\nrank {}\n{:<14} {:>6} {:>9} {:>8} {:>9}  {:<16} {:<16} {}\n", process.rank, "COLLECTIVE",
             "SIZE", "CALLS/S", "GB/S", "US", "ROLE", "CONFIG", "BY");
  for (const LiveKey& key : process.keys) {
    if (rows-- == 0) break;
    fmt::print("{:<14} {:>6} {:>9.1f} {:>8.3f} {:>9}  {:<16} {:<16} {}\n", Name(key.collective),
               FormatBytes(key.bytes), static_cast<double>(key.calls) / process.seconds,
               static_cast<double>(key.all_bytes) / process.seconds * 1e-9,
               key.median_us ? fmt::format("{:.1f}", *key.median_us) : "-",
               key.role == Role::kUnknown ? "-" : Name(key.role), key.config ? Describe(*key.config) : "-",
               key.config ? Name(key.decided_by) : "-");
  }
}

Json KeyJson(const LiveKey& key) {
  Json json{{"collective", Name(key.collective)},
            {"bytes", key.bytes},
            {"calls", key.calls},
            {"all_bytes", key.all_bytes},
            {"role", Name(key.role)}};
  if (key.median_us) json["median_us"] = *key.median_us;
  if (key.config) json["config"] = Describe(*key.config);
  if (key.config) json["decided_by"] = Name(key.decided_by);
  return json;
}

Json ProcessJson(const LiveProcess& process) {
  Json keys = Json::array();
  for (const LiveKey& key : process.keys) keys.push_back(KeyJson(key));
  Json decisions = Json::object();
  for (const auto& [by, calls] : process.decisions) decisions[std::string(Name(by))] = calls;
  Json json{{"rank", process.rank},         {"process_id", process.process_id},
            {"host", process.host},         {"seconds", process.seconds},
            {"calls", process.calls},       {"bytes", process.bytes},
            {"steps", process.steps},       {"idle_seconds", process.idle_seconds},
            {"decisions", decisions},       {"keys", keys},
            {"stage", Name(process.stage)}, {"phase", Name(process.phase)}};
  if (!process.inside.empty())
    json["inside"] = {{"call", process.inside}, {"seconds", process.inside_seconds}};
  if (process.free_memory) json["free_memory"] = *process.free_memory;
  return json;
}

void PrintTop(const std::vector<LiveProcess>& processes, const TopOptions& options) {
  if (options.json) {
    Json list = Json::array();
    for (const LiveProcess& process : processes) list.push_back(ProcessJson(process));
    PrintJson({{"schema", 1}, {"processes", list}});
    return;
  }
  PrintProcesses(processes);
  if (!processes.empty()) PrintKeys(processes.front(), options.rows);
  std::fflush(stdout);
}

}  // namespace

Result<int> TopCommand(CommandLine& line) {
  TopOptions options;
  line.app().add_option("traces", options.traces,
                        "Traces that are being written (default: those of your processes on this machine)");
  line.app()
      .add_option("-s,--seconds", options.seconds, "What is counted, and how long between two looks")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  line.app()
      .add_option("--rows", options.rows, "Collectives and sizes that are shown")
      ->capture_default_str();
  line.app().add_flag("--once", options.once, "Look once; so it does where the output is no terminal");
  line.app().add_flag("--json", options.json, "As JSON, once");
  if (const auto exit_code = line.Parse()) return *exit_code;
  StartConsoleLog();
  const std::shared_ptr<const Policy> recogniser = Recogniser();
  const bool once = options.once || options.json || ::isatty(STDOUT_FILENO) == 0;
  while (true) {
    DYNAMICCL_TRY(const std::vector<std::string> traces, TracesToWatch(options));
    const std::vector<LiveProcess> processes = Look(traces, options.seconds, recogniser.get());
    // ECMA-48: move to the upper left corner and clear the screen.
    if (!once)
      fmt::print("\033[H\033[2J{:%H:%M:%S}  {} processes\n\n", fmt::localtime(std::time(nullptr)),
                 processes.size());
    PrintTop(processes, options);
    if (once) return processes.empty() ? kExitUsage : kExitOk;
    std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  }
}

}  // namespace dynamiccl
