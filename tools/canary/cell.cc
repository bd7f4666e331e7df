// SPDX-License-Identifier: Apache-2.0
// Writes the described machine into a folder, starts the driver (the program that calls NCCL) over the CUDA
// stand-in, a library that emulates the GPUs, and waits until the driver ends.
#include "tools/canary/cell.h"

#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "tools/canary/cell_output.h"
#include "tools/launch/child_process.h"
#include "tools/launch/temporary_folder.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

// From 2.22 on NCCL passes its table of costs to a tuner.
constexpr NcclRelease kGivesCosts{2, 22, 0};

std::string TextOrNothing(const std::string& path) {
  const auto text = ReadTextFile(path);
  return text ? *text : "";
}

// Waits for a child for at most `limit`. Returns false when the limit passed and the child still runs.
bool WaitAtMost(pid_t child, std::chrono::duration<double> limit, int* status) {
  constexpr auto kLook = std::chrono::milliseconds(10);
  for (const auto end = Clock::now() + limit; Clock::now() < end; std::this_thread::sleep_for(kLook)) {
    if (waitpid(child, status, WNOHANG) == child) return true;
  }
  return false;
}

// Returns the driver and its child processes. The driver starts one child for each node when nodes differ.
std::vector<pid_t> ProcessesOf(pid_t driver) {
  std::vector<pid_t> processes{driver};
  std::ifstream children(fmt::format("/proc/{}/task/{}/children", driver, driver));
  for (pid_t child = 0; children >> child;) processes.push_back(child);
  return processes;
}

// For each thread of the driver, by thread id: the nanoseconds that it has run or has waited for a core.
std::map<std::string, uint64_t> WorkOfThreads(pid_t driver) {
  std::map<std::string, uint64_t> work;
  std::error_code ended;
  for (const pid_t process : ProcessesOf(driver)) {
    for (const auto& thread : fs::directory_iterator(fmt::format("/proc/{}/task", process), ended)) {
      std::ifstream file(thread.path() / "schedstat");
      uint64_t ran = 0, waited = 0;
      if (file >> ran >> waited) work[thread.path().filename()] = ran + waited;
    }
  }
  return work;
}

// Returns whether a thread of the process used a core, or waited for a free one, for more than half of a
// second. A rank that searches NCCL's graphs is busy in this sense. The threads of a hung run only poll their
// sockets, which takes some percent of the time.
bool IsBusy(pid_t child) {
  constexpr uint64_t kHalfASecond = 500'000'000;
  const auto before = WorkOfThreads(child);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  for (const auto& [thread, work] : WorkOfThreads(child)) {
    const auto known = before.find(thread);
    if (known != before.end() && work - known->second > kHalfASecond) return true;
  }
  return false;
}

// Waits until the child ends; returns false when it hangs. A child hangs if it is idle after the limit. A
// busy child gets three times the limit.
bool WaitForEnd(pid_t child, int limit_s, int* status) {
  for (int waited = 0; waited < 3; ++waited) {
    if (WaitAtMost(child, std::chrono::seconds(limit_s), status)) return true;
    if (!IsBusy(child)) return false;
  }
  return false;
}

void Kill(pid_t child) {
  SignalChild(child, true, SIGKILL);
  waitpid(child, nullptr, 0);
}

// Runs a command with its output in a file. Returns false when the command cannot be started, fails or takes
// longer than 60 s.
bool RunHelper(const Words& command, const std::string& output) {
  const auto child = StartChild(command, {}, {.output_path = output});
  if (!child) return false;
  int status = 0;
  if (!WaitAtMost(*child, std::chrono::seconds(60), &status)) {
    Kill(*child);
    return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string BacktracesOf(pid_t driver, const std::string& output) {
  for (const pid_t process : ProcessesOf(driver))
    RunHelper({"gdb", "-nx", "-batch", "-p", std::to_string(process), "-ex", "thread apply all backtrace 16"},
              output);
  return TextOrNothing(output);
}

// Returns a prefix for a command, which gives the command a mount namespace with a /dev/shm of its own. A
// killed run then leaves no files behind, and no run sees the files of another. Empty where the machine does
// not allow namespaces.
const Words& OwnSharedMemory(const std::string& scratch) {
  static const Words words = [&] {
    for (const char* option : {"-m", "-rm"}) {
      Words found{"unshare", option, "sh", "-c", "mount -t tmpfs tmpfs /dev/shm && exec \"$@\"", "sh"};
      Words trial = found;
      trial.emplace_back("true");
      if (RunHelper(trial, scratch)) return found;
    }
    return Words{};
  }();
  return words;
}

// Returns the node's topology file. NCCL distinguishes the nodes of an NVLink domain by the attribute
// host_hash. The value must be the one that the CUDA stand-in computes
// (tests/real_nccl/cuda_standin/nccl_hooks.cc).
std::string TopologyOfNode(const DescribedMachine& machine, size_t node) {
  constexpr size_t kFirstHost = 0x5eed0000, kNextHost = 0x10001;
  std::string text = machine.topology;
  if (machine.nvlink_domain_nodes == 0) return text;
  const std::string host = fmt::format("host_hash=\"{:#x}\" ", kFirstHost + node * kNextHost);
  constexpr std::string_view kProcessor = "<cpu ";
  for (size_t at = 0; (at = text.find(kProcessor, at)) != std::string::npos; at += kProcessor.size())
    text.insert(at + kProcessor.size(), host);
  return text;
}

// The folder with the input and output files of one run.
class CellFolder {
 public:
  CellFolder(const TemporaryFolder& folder, const CellRequest& request) : folder_(folder) {
    fs::create_directories(File("ids"));
    written_ = true;
    const size_t nodes = request.has_process_a_node() ? request.ranks_of_nodes.size() : 1;
    for (size_t node = 0; node < nodes; ++node) {
      const DescribedMachine& machine = request.machines[std::min(node, request.machines.size() - 1)];
      written_ = written_ && WriteTextFile(File(fmt::format("{}.machine", node)), machine.stand_in) &&
                 WriteTextFile(File(fmt::format("{}.xml", node)), TopologyOfNode(machine, node));
    }
  }

  bool written() const { return written_; }
  std::string File(const std::string& name) const { return folder_.File(name); }

  CellFiles Read(int exit_status, bool limit_passed) const {
    return {.log = TextOrNothing(File("log")),
            .graphs = TextOrNothing(File("graphs.xml")),
            .tables = File("tables"),
            .exit_status = exit_status,
            .limit_passed = limit_passed};
  }

 private:
  const TemporaryFolder& folder_;
  bool written_ = false;
};

bool HasAdapters(const CellRequest& request) {
  return std::ranges::any_of(request.machines, [](const DescribedMachine& one) { return one.adapters > 0; });
}

// Says whether a run writes its graphs into a file.
enum class GraphDump { kYes, kNo };

std::map<std::string, std::string> EnvironmentOf(const std::string& objects, const CellRequest& request,
                                                 const CellFolder& folder, GraphDump dump) {
  std::map<std::string, std::string> environment = {
      {"PATH", "/usr/bin:/bin"},
      {"HOME", folder.File("ids")},  // no ~/.nccl.conf
      {"LD_PRELOAD", objects + "/libcuda_standin.so"},
      {"LD_LIBRARY_PATH", objects + ":" + request.library_folder},
      {"CUDA_STANDIN_MACHINE", folder.File("0.machine")},
      {"CUDA_STANDIN_CONNECT", "1"},
      {"NCCL_TOPO_FILE", folder.File("0.xml")},
      // Without adapters no plugin is named: a plugin without devices makes NCCL 2.28.7 to 2.29.3 free its
      // context twice.
      {"NCCL_NET_PLUGIN", HasAdapters(request) ? "described" : "none"},
      {"NCCL_SOCKET_IFNAME", "lo"},
      {"NCCL_DEBUG", "INFO"},
      {"NCCL_DEBUG_SUBSYS", "INIT,GRAPH,TUNING"},
  };
  if (dump == GraphDump::kYes) environment["NCCL_GRAPH_DUMP_FILE"] = folder.File("graphs.xml");
  if (request.release >= kGivesCosts) {
    environment["NCCL_TUNER_PLUGIN"] = objects + "/libtable_tuner.so";
    environment["TABLE_TUNER_FILE"] = folder.File("tables");
  }
  if (request.release.logs_no_choice())
    environment["NCCL_PROFILER_PLUGIN"] = objects + "/libwitness_profiler.so";
  if (request.connecting == Connecting::kAtInit) environment["NCCL_RUNTIME_CONNECT"] = "0";
  for (const auto& [name, value] : request.environment) environment[name] = value;
  return environment;
}

// Returns a prefix for a command, which sets the limits of its stack size and of its open files. If the stack
// size that the user asked for is not allowed, the command does not start. If the default of 8 MiB is not
// allowed, that limit stays as it is. Files: all that are allowed, because 128 ranks open 4,200.
Words WithLimits(const std::string& stack_kib) {
  const std::string set =
      stack_kib.empty() ? "ulimit -Ss 8192 2>/dev/null; " : "ulimit -Ss " + stack_kib + " && ";
  return {"sh", "-c", set + "ulimit -Sn \"$(ulimit -Hn)\" 2>/dev/null; exec \"$@\"", "sh"};
}

Words CommandOf(const std::string& objects, const CellRequest& request, const CellFolder& folder,
                GraphDump dump) {
  Words command = OwnSharedMemory(folder.File("trial"));
  const Words limits = WithLimits(request.stack_kib);
  command.insert(command.end(), limits.begin(), limits.end());
  command.insert(command.end(), {"env", "-i"});
  for (const auto& [name, value] : EnvironmentOf(objects, request, folder, dump))
    command.push_back(name + "=" + value);
  command.push_back(objects + "/real_nccl_driver");
  std::vector<std::string_view> collectives;
  for (const Collective one : request.collectives) collectives.push_back(Name(one));
  command.insert(command.end(), {"--collectives", fmt::format("{}", fmt::join(collectives, ","))});
  if (!request.gpus.empty())
    command.insert(command.end(), {"--devices", fmt::format("{}", fmt::join(request.gpus, ","))});
  if (request.has_process_a_node()) command.insert(command.end(), {"--node-files", folder.File("")});
  command.push_back(folder.File("ids"));
  command.push_back(std::to_string(request.ranks_of_nodes.size()));
  command.push_back(fmt::format("{}", fmt::join(request.ranks_of_nodes, ",")));
  for (const uint64_t bytes : request.bytes) command.push_back(std::to_string(bytes));
  return command;
}

Result<Cell> RunOnce(const std::string& objects, const CellRequest& request, GraphDump dump) {
  DYNAMICCL_TRY(const TemporaryFolder temporary, TemporaryFolder::Create("canary"));
  const CellFolder folder(temporary, request);
  if (!folder.written())
    return MakeError(ErrorKind::kUnavailable, "cannot write into {}", temporary.File(""));
  const auto begin = Clock::now();
  DYNAMICCL_TRY(const pid_t child, StartChild(CommandOf(objects, request, folder, dump), {},
                                              {.output_path = folder.File("log")}));
  int status = 0;
  const bool ended = WaitForEnd(child, request.limit_s, &status);
  const std::chrono::duration<double> taken = Clock::now() - begin;
  std::string backtraces;
  if (!ended) {
    backtraces = BacktracesOf(child, folder.File("stacks"));
    Kill(child);
  }
  Cell cell = ReadCell(request, folder.Read(status, !ended));
  cell.seconds = taken.count();
  cell.stacks = StacksOf(backtraces);
  return cell;
}

// Returns whether the run failed only because it wrote its graphs into a file. NCCL cannot write a path over
// C2C into that file and fails. Jobs do not write the file, so they do not have this failure.
bool FailedByDump(const Cell& cell) {
  return cell.end == CellEnd::kInitFailed && std::ranges::any_of(cell.warnings, [](const std::string& one) {
           return one.starts_with("KV Convert to str");
         });
}

}  // namespace

std::vector<Collective> AllJudged() {
  return {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter, Collective::kBroadcast,
          Collective::kReduce};
}

int CellRequest::ranks() const {
  return std::accumulate(ranks_of_nodes.begin(), ranks_of_nodes.end(), 0);
}

Result<Cell> RunCell(const Installation& installation, const CellRequest& request) {
  const std::string& objects = installation.real_nccl_dir;
  if (objects.empty()) {
    return WithHint(MakeError(ErrorKind::kUnsupported, "this build has no lib/real_nccl/libcuda_standin.so"),
                    "it is part of builds for x86-64 without sanitizers: tools/setup/build.sh programs");
  }
  DYNAMICCL_TRY(Cell cell, RunOnce(objects, request, GraphDump::kYes));
  if (!FailedByDump(cell)) return cell;
  return RunOnce(objects, request, GraphDump::kNo);
}

}  // namespace dynamiccl
