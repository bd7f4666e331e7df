// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/cell_output.h"

#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include "tests/real_nccl/asked_tables.h"
#include "tests/real_nccl/choices.h"
#include "tests/real_nccl/cuda_standin/xml_tree.h"
#include "tests/real_nccl/init_log.h"

namespace dynamiccl {
namespace {

using cuda_standin::XmlElement;

// Exit codes of the driver, the program that calls NCCL (tests/real_nccl/driver/real_nccl_driver.cc).
constexpr int kNoHold = 3, kCallFailed = 4;

// Returns the CUDA functions that NCCL called and the stand-in lacks, from lines such as "cuda_standin:
// cudaGraphNew has no stand-in". What NCCL did after such a call says nothing about the release.
std::set<std::string> MissingFunctions(const std::string& log) {
  constexpr std::string_view kBefore = "cuda_standin: ", kAfter = " has no stand-in";
  std::set<std::string> names;
  for (size_t at = 0; (at = log.find(kAfter, at)) != std::string::npos; at += kAfter.size()) {
    const size_t before = log.rfind(kBefore, at);
    if (before == std::string::npos) continue;
    const std::string name = log.substr(before + kBefore.size(), at - before - kBefore.size());
    if (name.find_first_of(" \n") == std::string::npos) names.insert(name);
  }
  return names;
}

struct Lack {
  std::string_view logged;  // by the C library, NCCL or the stand-in
  std::string_view advice;
};
constexpr std::string_view kMoreMemory = "a machine with more memory, or fewer ranks (--world)";
constexpr Lack kLacks[] = {
    {"cuda_standin: cannot map ", "a larger vm.max_map_count (sysctl), or fewer ranks (--world)"},
    {"Too many open files", "a larger hard limit of open files (ulimit -Hn), or fewer ranks (--world)"},
    {"Cannot allocate memory", kMoreMemory},
    {"No space left on device", "more room in /dev/shm, or fewer ranks (--world)"},
};

// Says what this machine did not give a run that failed or hung. Empty when nothing shows it. Such a run says
// nothing about the release.
std::string LackOf(const CellFiles& files) {
  if (files.exit_status == 0 && !files.limit_passed) return "";
  for (const Lack& lack : kLacks) {
    const size_t at = files.log.find(lack.logged);
    if (at == std::string::npos) continue;
    const size_t line = files.log.rfind('\n', at) + 1;
    return fmt::format("this machine is too small for the run: \"{}\"; it needs {}",
                       files.log.substr(line, files.log.find('\n', at) - line), lack.advice);
  }
  // NCCL does not end itself by these signals. The kernel sends them when memory runs out: the second for
  // pages of a file in /dev/shm.
  if (files.limit_passed || !WIFSIGNALED(files.exit_status)) return "";
  const int signal = WTERMSIG(files.exit_status);
  if (signal != SIGKILL && signal != SIGBUS) return "";
  return fmt::format("the kernel ended the run ({}), most often for lack of memory; it needs {}",
                     strsignal(signal), kMoreMemory);
}

CellEnd EndOf(const CellRequest& request, const CellFiles& files, const Cell& cell) {
  if (!MissingFunctions(files.log).empty() || !LackOf(files).empty()) return CellEnd::kNotRun;
  if (files.limit_passed) return CellEnd::kHung;
  if (!WIFEXITED(files.exit_status)) return CellEnd::kCrashed;
  switch (WEXITSTATUS(files.exit_status)) {
    case 0:
      return CellEnd::kPassed;
    case kCallFailed:
      return cell.ranks_joined < request.ranks() ? CellEnd::kInitFailed : CellEnd::kCallFailed;
    default:
      return CellEnd::kNotRun;
  }
}

std::string ProblemOf(const CellFiles& files) {
  if (const auto missing = MissingFunctions(files.log); !missing.empty())
    return fmt::format(
        "the release calls {}, which the stand-in for CUDA lacks: use a newer DynamICCL, or "
        "report the release and this name",
        fmt::join(missing, ", "));
  if (const std::string lack = LackOf(files); !lack.empty()) return lack;
  if (WEXITSTATUS(files.exit_status) == kNoHold)
    return "the library is stripped, so that its CUDA functions cannot be found";
  const size_t tail = std::min<size_t>(files.log.size(), 400);
  return fmt::format("the run ended with exit code {}: {}", WEXITSTATUS(files.exit_status),
                     files.log.substr(files.log.size() - tail));
}

// Describes a crash by its signal and the C library's last message: "Aborted: double free or corruption
// (fasttop)".
std::string CrashOf(const CellFiles& files) {
  std::string text = strsignal(WTERMSIG(files.exit_status));
  for (const std::string_view words :
       {"double free or corruption", "free(): ", "malloc(): ", "terminate called"}) {
    const size_t at = files.log.find(words);
    if (at != std::string::npos) return text + ": " + files.log.substr(at, files.log.find('\n', at) - at);
  }
  return text;
}

// Returns the text of a warning without its prefix: "Could not find ..." for "host:123:124 [0]
// graph/search.cc:1097 NCCL WARN Could not find ...". Empty for other lines.
std::string WarningOf(const std::string& line) {
  for (const std::string_view mark : {"NCCL WARN ", "NCCL INFO "}) {
    const size_t at = line.find(mark);
    if (at == std::string::npos) continue;
    const std::string text = line.substr(at + mark.size());
    const bool warns = mark == "NCCL WARN " || text.find("falling back to simple order") != std::string::npos;
    return warns ? text : "";
  }
  return "";
}

// True if the warning is about the machine that runs the canary, or about its settings, and so not about the
// described machine.
bool IsOfTheHarness(const std::string& warning) {
  return warning.find("NUMA balancing") != std::string::npos || warning.find("iommu") != std::string::npos ||
         warning.find("NCCL_DEBUG") != std::string::npos;
}

// Returns the node whose adapter a logged connection uses. It is the node of the receiver in a line with
// [receive], else that of the sender:
//   Channel 00/0 : 7[3] -> 8[0] [receive] via NET/Described/0
int NodeOfConnection(const std::string& line, const std::vector<int>& ranks_of_nodes) {
  static const std::regex kRanks(R"( : (\d+)\[[^\]]*\] -> (\d+)\[[^\]]*\]( \[receive\])?)");
  std::smatch match;
  if (!std::regex_search(line, match, kRanks)) return 0;
  int rank = std::atoi(match[match[3].matched ? 2 : 1].str().c_str());
  size_t node = 0;
  while (node + 1 < ranks_of_nodes.size() && rank >= ranks_of_nodes[node]) rank -= ranks_of_nodes[node++];
  return static_cast<int>(node);
}

void ReadLogLine(const CellRequest& request, const std::string& line, Cell* cell) {
  static const std::regex kJoined(R"(^driver: \d+ joined world in )");
  static const std::regex kHolds(R"(^driver: \d+ holds (\d+) of device memory$)");
  if (line.starts_with("driver: ")) {
    cell->ranks_joined += std::regex_search(line, kJoined);
    if (line.ends_with(" was left on other CPUs")) cell->restores_cpus = false;
    std::smatch match;
    if (std::regex_match(line, match, kHolds))
      cell->device_memory_bytes = std::max<uint64_t>(cell->device_memory_bytes, std::stoull(match[1]));
    return;
  }
  const auto [transport, adapter] = ConnectionOf(line);
  if (!transport.empty()) {
    ++cell->transports[transport];
    if (adapter.empty()) return;
    const std::string node =
        request.nodes_are_unlike() ? fmt::format("{}/", NodeOfConnection(line, request.ranks_of_nodes)) : "";
    ++cell->adapters[node + adapter];
    return;
  }
  if (line.find(" coll channels") != std::string::npos) {
    if (const auto channels = real_nccl::ParseChannels(line)) {
      cell->channels = channels->collective;
      cell->nvls_channels = channels->nvls;
      cell->p2p_channels = channels->p2p;
      cell->p2p_channels_per_peer = channels->p2p_per_peer;
    }
    return;
  }
  const std::string warning = WarningOf(line);
  if (!warning.empty() && !IsOfTheHarness(warning) &&
      std::find(cell->warnings.begin(), cell->warnings.end(), warning) == cell->warnings.end())
    cell->warnings.push_back(warning);
}

// Returns, for each adapter that NCCL fused from several, the adapters that it consists of. Names are those
// of Cell::adapters. The line of the log reads "node 0 fused adapter 4 from 0 and 1":
//   described_net: 0 fused 4 of 0 1
std::map<std::string, std::vector<std::string>> FusedAdapters(const CellRequest& request,
                                                              const std::string& log) {
  constexpr std::string_view kSaid = "described_net: ";
  std::map<std::string, std::vector<std::string>> fused;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kSaid)) continue;
    std::istringstream words(line.substr(kSaid.size()));
    std::string node, verb, adapter, of;
    words >> node >> verb >> adapter >> of;
    const std::string prefix = request.nodes_are_unlike() ? node + "/" : "";
    std::vector<std::string>& parts = fused[prefix + adapter];
    parts.clear();
    for (std::string part; words >> part;) parts.push_back(prefix + part);
  }
  return fused;
}

// Counts a connection over a fused adapter as one connection over each of its parts. Without this, releases
// that fuse differently could not be compared, and a part that is also used alone would count as one more
// adapter.
void CountParts(const std::map<std::string, std::vector<std::string>>& fused, Cell* cell) {
  for (const auto& [adapter, parts] : fused) {
    const auto used = cell->adapters.find(adapter);
    if (used == cell->adapters.end()) continue;
    const int connections = used->second;
    cell->adapters.erase(used);
    for (const std::string& part : parts) cell->adapters[part] += connections;
  }
}

// True if a graph uses a fused adapter and also one of its parts. Graphs number adapters in hexadecimal.
bool CountsTwice(const std::map<std::string, std::vector<std::string>>& fused, const Cell& cell) {
  for (const auto& [name, graph] : cell.graphs) {
    std::set<int> used;
    for (const std::string& adapter : graph.adapters)
      used.insert(static_cast<int>(std::strtol(adapter.c_str(), nullptr, 0)));
    for (const auto& [adapter, parts] : fused) {
      const auto is_used = [&](const std::string& one) {
        return used.contains(std::atoi(one.substr(one.find('/') + 1).c_str()));
      };
      if (is_used(adapter) && std::ranges::any_of(parts, is_used)) return true;
    }
  }
  return false;
}

void ReadGraph(const XmlElement& element, Cell* cell) {
  CellGraph graph{.channels = std::atoi(element.Get("nchannels").c_str()),
                  .intra_gbps = std::atof(element.Get("speedintra").c_str()),
                  .inter_gbps = std::atof(element.Get("speedinter").c_str()),
                  .intra_type = element.Get("typeintra"),
                  .inter_type = element.Get("typeinter"),
                  .adapters = {},
                  .pattern = std::atoi(element.Get("pattern").c_str()),
                  .latency_us = std::atof(element.Get("latencyinter").c_str()),
                  .same_channels = element.Get("samechannels") == "1"};
  element.Visit([&](const XmlElement& below) {
    if (below.tag == "net") graph.adapters.insert(below.Get("dev"));
  });
  const auto algorithm = real_nccl::AlgorithmOfGraph(std::atoi(element.Get("id", "-1").c_str()));
  if (graph.channels > 0 && algorithm) cell->graphs[std::string(Name(*algorithm))] = graph;
}

void ReadGraphs(const std::string& text, Cell* cell) {
  std::string error;
  const auto root = cuda_standin::ParseXml(text, &error);
  if (!root) return;
  root->Visit([&](const XmlElement& element) {
    if (element.tag == "graph") ReadGraph(element, cell);
  });
}

// True unless two ranks report different launches. The driver's last line about a rank has a digest of its
// launches.
bool RanksLaunchAlike(const std::string& log) {
  static const std::regex kLaunches(R"(^driver: \d+( calls \d+ kernels \d+ digest [0-9a-f]{16})$)");
  std::set<std::string> launches;
  std::istringstream lines(log);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, kLaunches)) launches.insert(match[1]);
  }
  return launches.size() < 2;
}

void ReadChoices(const CellRequest& request, const CellFiles& files, Cell* cell) {
  std::string error;
  const auto chosen = real_nccl::ChoicesOf(files.log, request.release, request.ranks(), &error);
  if (!chosen) return;
  const real_nccl::AskedTables asked = real_nccl::ReadAskedTables(files.tables);
  for (const real_nccl::Choice& one : *chosen) {
    const auto collective = ParseCollective(one.function);
    if (!collective) continue;
    CellChoice choice{.collective = *collective,
                      .bytes = one.bytes,
                      .config = {one.algorithm, one.protocol, static_cast<uint8_t>(one.channels)},
                      .costs = {}};
    for (const real_nccl::AskedTable& table : asked.tables) {
      if (table.pipe_ops < 1 || table.collective != *collective || table.bytes != one.bytes) continue;
      for (size_t pair = 0; pair < table.costs.size(); ++pair) {
        if (table.costs[pair] >= 0)
          choice
              .costs[{static_cast<Algorithm>(pair / kProtocols), static_cast<Protocol>(pair % kProtocols)}] =
              table.costs[pair];
      }
    }
    cell->choices.push_back(std::move(choice));
  }
}

// Returns the function in a line of gdb's backtrace such as "#3  0x00007f.. in ncclTransportP2pSetup
// (comm=...) at ...". Empty for other lines.
std::string FunctionOfFrame(const std::string& line) {
  static const std::regex kFrame(R"(^#\d+\s+(?:0x[0-9a-f]+ in )?([A-Za-z_0-9:~<>]+))");
  std::smatch match;
  return std::regex_search(line, match, kFrame) ? match[1].str() : "";
}

// True if the function's name tells what NCCL is doing. The functions that wait for a socket and the entry
// functions of threads do not.
bool IsOfInterest(const std::string& function) {
  if (function.starts_with("ncclSocket") || function.starts_with("ncclOs") ||
      function.starts_with("ncclAsync"))
    return false;
  return function.starts_with("nccl") || function.starts_with("bootstrap");
}

}  // namespace

const char* Name(CellEnd end) {
  switch (end) {
    case CellEnd::kPassed:
      return "passed";
    case CellEnd::kInitFailed:
      return "init_failed";
    case CellEnd::kCallFailed:
      return "call_failed";
    case CellEnd::kCrashed:
      return "crashed";
    case CellEnd::kHung:
      return "hung";
    case CellEnd::kNotRun:
      break;
  }
  return "not_run";
}

std::pair<std::string, std::string> ConnectionOf(std::string_view line) {
  constexpr std::string_view kVia = " via ";
  const size_t via = line.find(kVia);
  if (via == std::string_view::npos || line.find("Channel ") == std::string_view::npos) return {};
  const std::string_view transport = line.substr(via + kVia.size());
  const std::string kind(transport.substr(0, transport.find_first_of("/ \r\n(")));
  if (kind != "NET") return {kind, ""};
  // NET/<plugin>/<number>...
  const size_t plugin = transport.find('/');
  const size_t number = plugin == std::string_view::npos ? plugin : transport.find('/', plugin + 1);
  if (number == std::string_view::npos) return {kind, ""};
  const size_t end = transport.find_first_not_of("0123456789", number + 1);
  return {kind, std::string(transport.substr(number + 1, end - number - 1))};
}

std::map<std::string, int> StacksOf(const std::string& backtraces) {
  constexpr size_t kShown = 3;
  std::map<std::string, int> stacks;
  std::vector<std::string> functions;
  const auto finish = [&] {
    // NCCL's service threads always wait, so their stacks tell nothing.
    if (!functions.empty() && functions.back().starts_with("ncclProxy")) functions.clear();
    if (functions.size() > kShown) functions.resize(kShown);
    if (!functions.empty()) ++stacks[fmt::format("{}", fmt::join(functions, " < "))];
    functions.clear();
  };
  std::istringstream lines(backtraces);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Thread ")) finish();
    const std::string function = FunctionOfFrame(line);
    if (IsOfInterest(function)) functions.push_back(function);
  }
  finish();
  return stacks;
}

Cell ReadCell(const CellRequest& request, const CellFiles& files) {
  Cell cell{.ranks = request.ranks()};
  std::istringstream lines(files.log);
  for (std::string line; std::getline(lines, line);) ReadLogLine(request, line, &cell);
  const auto fused = FusedAdapters(request, files.log);
  CountParts(fused, &cell);
  cell.end = EndOf(request, files, cell);
  if (cell.end == CellEnd::kNotRun) cell.problem = ProblemOf(files);
  if (cell.end == CellEnd::kCrashed) cell.problem = CrashOf(files);
  if (const LoggedJob job = ReadNcclLog(files.log); !job.communicators.empty())
    cell.log = job.communicators.front();
  ReadGraphs(files.graphs, &cell);
  cell.counts_adapters_twice = CountsTwice(fused, cell);
  if (!cell.passed()) return cell;
  cell.ranks_launch_alike = RanksLaunchAlike(files.log);
  ReadChoices(request, files, &cell);
  return cell;
}

}  // namespace dynamiccl
