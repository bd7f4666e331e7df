// SPDX-License-Identifier: Apache-2.0
// `dynamiccl canary`: shows what another release of NCCL would do on a described machine. It runs the host
// side of the releases themselves, without a GPU. docs/canary.md has an example and the keys of --json.
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <numeric>
#include <span>
#include <sstream>

#include "src/base/file_kind.h"
#include "src/collective/size_class.h"
#include "tools/canary/canary_text.h"
#include "tools/canary/fidelity.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/why/read_files.h"

namespace dynamiccl {
namespace {

struct CanaryOptions {
  std::vector<std::string> releases;
  std::vector<std::string> machines;
  int nvlink_domain = 0;
  std::vector<std::string> lacks;
  std::string world;
  std::string ranks;
  std::vector<int> gpus;
  std::vector<std::string> sizes{"1K", "1M", "256M"};
  std::vector<std::string> collectives;
  std::vector<std::string> traces;
  std::vector<std::string> environment;
  std::string stack;
  std::string connect = "both";
  std::vector<std::string> logs;
  std::string rules;
  bool bisect = false;
  bool no_remedies = false;
  int limit_s = 0;
  bool fresh = false;
  bool json = false;
};

// Variables that the canary sets itself. The user must not set them, because the canary would then not run
// the described machine.
constexpr const char* kOwnVariables[] = {
    "NCCL_TOPO_FILE",    "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE", "NCCL_NET",
    "NCCL_NET_PLUGIN",   "NCCL_TUNER_PLUGIN",   "NCCL_PROFILER_PLUGIN", "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE",     "NCCL_SOCKET_IFNAME",   "NCCL_IB_HCA"};

Result<int> PositiveNumber(const std::string& text, const std::string& whole) {
  char* end = nullptr;
  const long number = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || number < 1 || number > 1024)
    return MakeError(ErrorKind::kInvalidArgument, "'{}' in '{}' is no number from 1 to 1024", text, whole);
  return static_cast<int>(number);
}

// Returns the world of the communicator in the user's trace, if each node has `gpus` GPUs. A world is the
// number of nodes and of ranks on each node, for example "2x8".
Result<std::string> WorldOf(const Traffic& traffic, int gpus) {
  const int nodes = std::max(traffic.nodes, (traffic.ranks + gpus - 1) / gpus);
  if (traffic.ranks % nodes == 0) return fmt::format("{}x{}", nodes, traffic.ranks / nodes);
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "{} ranks do not lie on {} nodes alike", traffic.ranks, nodes),
      "give the ranks of each node by --ranks");
}

const DescribedMachine& MachineOf(const CanaryRequest& request, size_t node) {
  return request.machines[std::min(node, request.machines.size() - 1)];
}

// Returns the number of ranks on each node. `options.world` such as "2x8" means two nodes of eight ranks;
// `options.ranks` such as "7,8" lists the ranks of each node. Without both, each node has as many ranks as
// GPUs, and there are as many nodes as machines, but at least two.
Result<std::vector<int>> RanksOfNodes(const CanaryOptions& options, const CanaryRequest& request) {
  std::vector<int> ranks;
  if (!options.ranks.empty()) {
    std::istringstream words(options.ranks);
    for (std::string word; std::getline(words, word, ',');) {
      DYNAMICCL_TRY(const int number, PositiveNumber(word, options.ranks));
      ranks.push_back(number);
    }
  } else if (options.world.empty()) {
    for (size_t node = 0; node < std::max<size_t>(2, request.machines.size()); ++node)
      ranks.push_back(MachineOf(request, node).gpus);
  } else {
    const std::string& world = options.world;
    const size_t cross = world.find('x');
    if (cross == std::string::npos)
      return MakeError(ErrorKind::kInvalidArgument, "'{}' is no world: nodes x ranks of each, such as 2x8",
                       world);
    DYNAMICCL_TRY(const int nodes, PositiveNumber(world.substr(0, cross), world));
    DYNAMICCL_TRY(const int each, PositiveNumber(world.substr(cross + 1), world));
    ranks.assign(static_cast<size_t>(nodes), each);
  }
  for (size_t node = 0; node < ranks.size(); ++node) {
    const int gpus = std::max(MachineOf(request, node).gpus, static_cast<int>(options.gpus.size()));
    if (ranks[node] > gpus)
      return MakeError(ErrorKind::kInvalidArgument, "{} ranks on a node of {} GPUs", ranks[node], gpus);
  }
  if (std::accumulate(ranks.begin(), ranks.end(), 0) < 2)
    return MakeError(ErrorKind::kInvalidArgument, "one rank alone has nothing to decide; give at least two");
  return ranks;
}

Result<std::map<std::string, std::string>> EnvironmentOf(const std::vector<std::string>& words) {
  std::map<std::string, std::string> environment;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (equals == std::string::npos || !name.starts_with("NCCL_"))
      return MakeError(ErrorKind::kInvalidArgument, "'{}' is not NCCL_NAME=VALUE", word);
    if (std::ranges::find(kOwnVariables, name) != std::end(kOwnVariables)) {
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument, "{} cannot be given: the canary sets it", name),
          "adapters and their names come from the topology; remove those that the job does not use");
    }
    environment[name] = word.substr(equals + 1);
  }
  return environment;
}

Result<std::vector<Connecting>> ConnectingOf(const std::string& word) {
  if (word == "both") return std::vector{Connecting::kAtFirstCall, Connecting::kAtInit};
  if (word == "first-call") return std::vector{Connecting::kAtFirstCall};
  if (word == "init") return std::vector{Connecting::kAtInit};
  return MakeError(ErrorKind::kInvalidArgument, "--connect {}: expected both, first-call or init", word);
}

// Returns the collectives of `named` in the order in which a run of the canary calls them.
std::vector<Collective> Among(const std::vector<Collective>& named) {
  std::vector<Collective> among = AllJudged();
  std::erase_if(among, [&](Collective one) { return std::ranges::count(named, one) == 0; });
  return among;
}

// Converts a stack size into KiB: "2M" becomes "2048". "unlimited" stays as it is.
Result<std::string> StackOf(const std::string& word) {
  if (word.empty() || word == "unlimited") return word;
  DYNAMICCL_TRY(const uint64_t bytes, ParseBytes(word));
  constexpr uint64_t kLeast = 64 << 10, kMost = uint64_t{1} << 40;
  if (bytes < kLeast || bytes > kMost)
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "--stack {}: expected 64K to 1T, or unlimited", word),
        "`ulimit -s` in the job says its limit, in KiB: 8192 is 8M");
  return std::to_string(bytes >> 10);
}

// Reads the machines that the command line names. The number of nodes is not known yet.
Status TakeMachines(const Installation& installation, const CanaryOptions& options, CanaryRequest& request) {
  for (const std::string& named : options.machines) {
    DYNAMICCL_TRY(const std::vector<DescribedMachine> nodes, DescribeNodes(installation, named));
    request.machines.insert(request.machines.end(), nodes.begin(), nodes.end());
  }
  for (DescribedMachine& machine : request.machines) {
    if (options.nvlink_domain > 0) DYNAMICCL_CHECK_OK(ShareNvlink(options.nvlink_domain, &machine));
    DYNAMICCL_CHECK_OK(TakeAway(options.lacks, &machine));
  }
  return {};
}

// Assigns a machine to each node. If there are fewer machines than nodes, the last one stands for all further
// nodes. A single machine stands for all nodes.
Status PlaceMachines(CanaryRequest& request) {
  const size_t nodes = request.ranks_of_nodes.size();
  if (request.machines.size() == 1) return {};
  if (request.machines.size() > nodes) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "{} machines for {} nodes", request.machines.size(), nodes),
        "give one for all nodes, or one for each in their order; the last stands for further ones");
  }
  request.machines.resize(nodes, request.machines.back());
  return {};
}

// Checks the GPUs of one node's ranks. Each must exist on the node and be named once, unless ranks may share.
Status CheckGpus(std::span<const int> gpus, size_t node, const DescribedMachine& machine, bool may_share) {
  for (const int gpu : gpus) {
    const bool exists = gpu >= 0 && gpu < machine.gpus;
    if (exists && (may_share || std::ranges::count(gpus, gpu) == 1)) continue;
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument,
                  "--gpus {}: expected numbers from 0 to {}, each once, on node {}", fmt::join(gpus, ","),
                  machine.gpus - 1, node),
        exists
            ? "ranks that share a GPU need --env NCCL_MULTI_RANK_GPU_ENABLE=1 (NCCL 2.30.3 and later)"
            : "each node's GPUs count from 0: name those of one node, which hold for every node, or one for "
              "each rank of the job, node by node");
  }
  return {};
}

// Checks that the number of named GPUs is that of the largest node's ranks, or that of all ranks.
Status CheckNumberOfGpus(const std::vector<int>& gpus, int most, int all) {
  const auto named = static_cast<int>(gpus.size());
  if (named == most || named == all) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "--gpus {}: {} GPUs for {} ranks on a node and {} in all",
                fmt::join(gpus, ","), named, most, all),
      fmt::format("name {} GPUs, which hold for every node, or {}, one for each rank, node by node; "
                  "--world or --ranks says how many ranks there are",
                  most, all));
}

// Takes the GPUs that the command line names: those of every node's ranks, or those of all ranks, node by
// node.
Status TakeGpus(const std::vector<int>& gpus, CanaryRequest& request) {
  if (gpus.empty()) return {};
  const auto shares = request.environment.find("NCCL_MULTI_RANK_GPU_ENABLE");
  const bool may_share = shares != request.environment.end() && shares->second == "1";
  const int most = std::ranges::max(request.ranks_of_nodes);
  const int all = std::accumulate(request.ranks_of_nodes.begin(), request.ranks_of_nodes.end(), 0);
  const bool of_all = static_cast<int>(gpus.size()) == all;
  DYNAMICCL_CHECK_OK(CheckNumberOfGpus(gpus, most, all));
  std::span<const int> rest(gpus);
  for (size_t node = 0; node < request.ranks_of_nodes.size(); ++node) {
    const auto ranks = static_cast<size_t>(request.ranks_of_nodes[node]);
    DYNAMICCL_CHECK_OK(
        CheckGpus(of_all ? rest.first(ranks) : rest, node, MachineOf(request, node), may_share));
    if (of_all) rest = rest.subspan(ranks);
  }
  request.gpus = gpus;
  return {};
}

// Returns the collectives that the command line names, each once, in the order in which a run of the canary
// calls them.
Result<std::vector<Collective>> CollectivesOf(const std::vector<std::string>& words) {
  if (words.empty()) return AllJudged();
  std::vector<Collective> named;
  for (const std::string& word : words) {
    const auto collective = ParseCollective(word);
    if (!collective || std::ranges::count(AllJudged(), *collective) == 0) {
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument, "--collectives: '{}' is none that NCCL chooses for", word),
          "AllReduce, AllGather, ReduceScatter, Broadcast, Reduce");
    }
    named.push_back(*collective);
  }
  return Among(named);
}

// Reads the job's trace and takes the calls' sizes from it. Takes the number of nodes and ranks from it too,
// if the command line names none.
Status TakeTraffic(const Installation& installation, CanaryOptions options, CanaryRequest& request) {
  DYNAMICCL_TRY(const WhyInput input, ReadJobFiles(options.traces));
  if (!input.trace) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "{}: no calls of a job in it", options.traces.front()),
        "give a trace, a profile, a dump of the Flight Recorder or a log of NCCL_DEBUG_SUBSYS=COLL");
  }
  if (input.trace->missing().any()) spdlog::warn("{}", Describe(input.trace->missing()));
  int ranks = 0;
  if (!options.world.empty() || !options.ranks.empty()) {
    DYNAMICCL_TRY(request.ranks_of_nodes, RanksOfNodes(options, request));
    ranks = std::accumulate(request.ranks_of_nodes.begin(), request.ranks_of_nodes.end(), 0);
  }
  DYNAMICCL_TRY(request.traffic, TrafficOf(*input.trace, ranks));
  request.bytes = SizesOf(*request.traffic);
  std::vector<Collective> called;
  for (const TrafficClass& one : request.traffic->classes) called.push_back(one.collective);
  request.collectives = Among(called);
  if (ranks == 0) {
    DYNAMICCL_TRY(options.world, WorldOf(*request.traffic, request.machines.front().gpus));
    DYNAMICCL_TRY(request.ranks_of_nodes, RanksOfNodes(options, request));
  }
  DYNAMICCL_TRY(request.traffic->model,
                ReadOneModel(installation, request.machines.front(), request.traffic->ranks,
                             static_cast<int>(request.ranks_of_nodes.size())));
  return {};
}

Status TakeSizes(const CanaryOptions& options, CanaryRequest& request) {
  DYNAMICCL_TRY(request.ranks_of_nodes, RanksOfNodes(options, request));
  DYNAMICCL_TRY(request.collectives, CollectivesOf(options.collectives));
  for (const std::string& word : options.sizes) {
    DYNAMICCL_TRY(const uint64_t bytes, ParseBytes(word));
    if (bytes == 0) return MakeError(ErrorKind::kInvalidArgument, "--sizes {}: nothing is sent", word);
    request.bytes.push_back(bytes);
  }
  return {};
}

Result<CanaryRequest> RequestOf(const Installation& installation, const CanaryOptions& options) {
  CanaryRequest request{
      .seeks_remedies = !options.no_remedies, .bisects = options.bisect, .limit_s = options.limit_s};
  DYNAMICCL_CHECK_OK(TakeMachines(installation, options, request));
  DYNAMICCL_CHECK_OK(options.traces.empty() ? TakeSizes(options, request)
                                            : TakeTraffic(installation, options, request));
  DYNAMICCL_CHECK_OK(PlaceMachines(request));
  DYNAMICCL_CHECK_OK(CheckAdapters(request.machines, static_cast<int>(request.ranks_of_nodes.size())));
  DYNAMICCL_TRY(request.environment, EnvironmentOf(options.environment));
  DYNAMICCL_CHECK_OK(TakeGpus(options.gpus, request));
  DYNAMICCL_TRY(request.connecting, ConnectingOf(options.connect));
  DYNAMICCL_TRY(request.stack_kib, StackOf(options.stack));
  DYNAMICCL_TRY(request.releases, FindReleaseLibraries(options.releases));
  return request;
}

// Reads the user's log, one file or one for each rank.
Result<LoggedJob> ReadLogs(const std::vector<std::string>& paths) {
  std::string all;
  for (const std::string& path : paths) {
    DYNAMICCL_TRY(const std::string text, ReadTextFile(path));
    all += text.substr(0, text.rfind('\n') + 1);
  }
  LoggedJob logged = ReadNcclLog(all);
  const bool has_channels = std::ranges::any_of(
      logged.communicators, [](const CommunicatorLog& one) { return one.channels.collective > 0; });
  if (!logged.release || !has_channels) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: it lacks NCCL's release or channels",
                              fmt::join(paths, ", ")),
                    "give a log of NCCL_DEBUG=INFO that begins before the communicator is made; only rank 0 "
                    "logs the release");
  }
  return logged;
}

// Runs the release in use and compares the result with the user's own log. If they differ, the machine is
// described wrongly, and it is an error to judge other releases on it.
Result<Fidelity> CheckFidelity(const std::vector<std::string>& paths, const CanaryRequest& request,
                               const CellRunner& runner) {
  DYNAMICCL_TRY(const LoggedJob logged, ReadLogs(paths));
  const ReleaseLibrary& in_use = request.releases.front();
  if (*logged.release != in_use.release) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{} is of NCCL {}, the first release named is {}",
                              paths.front(), logged.release->text(), in_use.text()),
                    "name the release of the log first");
  }
  DYNAMICCL_TRY(const Cell cell, runner.Run({.release = in_use.release,
                                             .library_folder = in_use.folder,
                                             .machines = request.machines,
                                             .ranks_of_nodes = request.ranks_of_nodes,
                                             .gpus = request.gpus,
                                             .collectives = request.collectives,
                                             .bytes = request.bytes,
                                             .environment = request.environment,
                                             .stack_kib = request.stack_kib,
                                             .limit_s = 600}));
  Fidelity fidelity =
      CompareWithLog(logged, cell, static_cast<int>(request.ranks_of_nodes.size()), request.environment);
  for (const char* own : kOwnVariables) fidelity.variables_missing.erase(own);
  if (fidelity.disagreements.empty()) return fidelity;
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "the machine is not described well enough: {}",
                            fmt::join(fidelity.disagreements, ";\n  ")),
                  AdviceFor(fidelity));
}

// Writes the rules that restore the choices of the release in use against the last judged release. Nothing is
// written if no choice differs.
Status WriteRules(const std::string& path, const CanaryRequest& request, const CanaryAnswer& answer) {
  const int ranks = std::accumulate(request.ranks_of_nodes.begin(), request.ranks_of_nodes.end(), 0);
  const std::string rules =
      RulesThatRestore(answer, answer.judged.back(), ranks, static_cast<int>(request.ranks_of_nodes.size()));
  if (rules.empty()) {
    fmt::print(stderr, "dynamiccl: no choice differs, {} is not written\n", path);
    return {};
  }
  DYNAMICCL_CHECK_OK(WriteTextFile(path, rules));
  fmt::print(stderr, "dynamiccl: {} restores the choices of NCCL {}: DYNAMICCL_RULES={}\n", path,
             answer.in_use.text(), path);
  return {};
}

// Shows on standard error what the canary runs, because it may take minutes. On a terminal one line is
// replaced again and again, elsewhere each step has a line. With --json and no terminal nothing is shown.
class Steps {
 public:
  explicit Steps(bool json) : terminal_(isatty(STDERR_FILENO) != 0), quiet_(json && !terminal_) {}
  void Say(const std::string& step) const {
    if (quiet_) return;
    if (terminal_)
      fmt::print(stderr, "\r\033[K{}", step);
    else
      fmt::print(stderr, "dynamiccl: {}\n", step);
  }
  void End() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  bool terminal_;
  bool quiet_;
};

int ExitCodeOf(const CanaryAnswer& answer) {
  const bool grave = std::any_of(answer.judged.begin(), answer.judged.end(), [](const JudgedRelease& one) {
    return !one.problem.empty() || one.verdict >= CanaryVerdict::kWorse;
  });
  return grave ? kExitResultSaysNo : kExitOk;
}

void AddOptions(CLI::App& app, CanaryOptions* options) {
  app.add_option("releases", options->releases,
                 "The release in use, then those to judge: 2.28.9, or the path of a libnccl.so.2")
      ->required()
      ->expected(2, 100);
  app.add_option(
         "-m,--machine", options->machines,
         "A node: dgx_h100, a file of NCCL_TOPO_DUMP_FILE or of collect_machine.sh, or a .machine file; once "
         "for each node where they are unlike, the last for all further ones")
      ->required();
  app.add_option("--nvlink-domain", options->nvlink_domain,
                 "Neighbouring nodes whose GPUs share NVSwitches (MNNVL), such as 18")
      ->check(CLI::Range(1, 1024));
  app.add_option("--lacks", options->lacks,
                 "What does not work on the nodes: peer_access, multicast_binding, fabric_handles")
      ->delimiter(',')
      ->type_name("WHAT,...");
  app.add_option("-w,--world", options->world, "Nodes and ranks of each (default: two nodes, all GPUs)")
      ->type_name("2x8");
  app.add_option("--ranks", options->ranks, "Ranks of each node, where they are unlike")
      ->type_name("7,8")
      ->excludes("--world");
  app.add_option("--gpus", options->gpus,
                 "GPUs of a node's ranks in their order, the same on every node, or a GPU for each rank of "
                 "the job, node by node; numbered from 0 on each node (default: from the first on)")
      ->delimiter(',')
      ->type_name("0,2,4,6");
  app.add_option("--sizes", options->sizes, "Sizes of the collectives, NCCL's total")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--collectives", options->collectives, "The collectives of the job (default: all five)")
      ->delimiter(',')
      ->type_name("AllReduce,...");
  app.add_option("--trace", options->traces,
                 "Your job's calls, whose collectives and sizes are judged: a trace, profile, dump or log")
      ->type_name("FILE")
      ->excludes("--sizes")
      ->excludes("--collectives");
  app.add_option("--env", options->environment, "A variable of the job; any number of times")
      ->type_name("NCCL_NAME=VALUE");
  app.add_option("--stack", options->stack, "The job's limit of stacks, ulimit -s (default: 8M)")
      ->type_name("2M|unlimited");
  app.add_option("--connect", options->connect, "When ranks connect: both, first-call, init")
      ->capture_default_str();
  app.add_option("--log", options->logs,
                 "Your job's log (NCCL_DEBUG=INFO) with the release in use, which must fit first; several "
                 "where each rank has its own")
      ->type_name("FILE");
  app.add_option("--rules", options->rules, "Write rules that restore the old choices under the last release")
      ->type_name("FILE");
  app.add_flag("--bisect", options->bisect,
               "Find the releases of the cache that bring and end a grave difference");
  app.add_flag("--no-remedies", options->no_remedies, "Try no variables against a grave difference");
  app.add_option("--limit", options->limit_s, "Seconds after which an idle run counts as hung")
      ->check(CLI::Range(1, 3600));
  app.add_flag("--fresh", options->fresh, "Run every cell, whatever was kept of earlier runs");
  app.add_flag("--json", options->json, "JSON on standard output");
}

}  // namespace

Result<int> CanaryCommand(CommandLine& line) {
  CanaryOptions options;
  AddOptions(line.app(), &options);
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_CHECK_OK(CheckOutputs({options.rules}));
  DYNAMICCL_TRY(const Installation installation, FindInstallation());
  DYNAMICCL_TRY(const std::vector<KnownIssue> known, ReadKnownIssues(installation));
  DYNAMICCL_TRY(const CanaryRequest request, RequestOf(installation, options));
  const CellRunner runner(installation, !options.fresh);
  std::optional<Fidelity> fidelity;
  if (!options.logs.empty()) {
    DYNAMICCL_TRY(fidelity, CheckFidelity(options.logs, request, runner));
  }
  const Steps steps(options.json);
  DYNAMICCL_TRY(CanaryAnswer answer,
                RunCanary(runner, request, known, [&](const std::string& step) { steps.Say(step); }));
  steps.End();
  answer.fidelity = std::move(fidelity);
  if (options.json)
    PrintJson(CanaryJson(request, answer));
  else
    fmt::print("{}", FormatCanary(request, answer));
  if (!options.rules.empty()) DYNAMICCL_CHECK_OK(WriteRules(options.rules, request, answer));
  return ExitCodeOf(answer);
}

}  // namespace dynamiccl
