// SPDX-License-Identifier: Apache-2.0
#include "tests/real_nccl/own_choices.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include "tests/real_nccl/asked_tables.h"
#include "tests/real_nccl/choices.h"
#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/xml_tree.h"
#include "tests/real_nccl/init_log.h"
#include "tests/real_nccl/real_nccl_run.h"

namespace dynamiccl::real_nccl {
namespace {

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

RunRequest RequestFor(const NcclRelease& release, const NcclWorld& world, const std::vector<size_t>& sizes,
                      const std::string& scratch) {
  RunRequest request;
  request.release = release;
  request.machine = world.machine;
  request.nodes = world.nodes;
  request.ranks_per_node = world.ranks_per_node;
  request.bytes = sizes;
  request.scratch_folder = scratch;
  request.limit_s = 300;  // a quiet machine needs seconds, also for 128 ranks
  return request;
}

std::string Tail(const std::string& text) {
  constexpr size_t kTail = 1500;
  return text.substr(text.size() - std::min(text.size(), kTail));
}

void AddGraph(const cuda_standin::XmlElement& element, std::map<Algorithm, NcclGraph>* graphs) {
  const auto number = [&](const char* name) { return std::atof(element.Get(name, "0").c_str()); };
  const NcclGraph graph{.pattern = static_cast<int>(number("pattern")),
                        .channels = static_cast<int>(number("nchannels")),
                        .intra_gbps = number("speedintra"),
                        .inter_gbps = number("speedinter"),
                        .latency_us = number("latencyinter"),
                        .intra_type = element.Get("typeintra", "0"),
                        .inter_type = element.Get("typeinter", "0"),
                        .same_channels = element.Get("samechannels") == "1"};
  const auto algorithm = AlgorithmOfGraph(static_cast<int>(number("id")));
  if (graph.channels > 0 && algorithm) (*graphs)[*algorithm] = graph;
}

// Returns the graphs that have channels, from a file of NCCL_GRAPH_DUMP_FILE.
std::map<Algorithm, NcclGraph> ReadGraphs(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::string error;
  const auto root = cuda_standin::ParseXml(text, &error);
  std::map<Algorithm, NcclGraph> graphs;
  if (!root) return graphs;
  root->Visit([&](const cuda_standin::XmlElement& element) {
    if (element.tag == "graph") AddGraph(element, &graphs);
  });
  return graphs;
}

// Returns the times that NCCL up to 2.22 logs for the chosen pairs, as in "1024 Bytes -> Algo 1 proto 0 time
// 15.012710".
std::vector<float> LoggedTimes(const std::string& output) {
  static const std::regex kPattern(R"(INFO \d+ Bytes -> Algo \d proto \d time ([\d.]+))");
  std::vector<float> times;
  for (std::sregex_iterator line(output.begin(), output.end(), kPattern), end; line != end; ++line)
    times.push_back(std::stof((*line)[1]));
  return times;
}

// A choice, and the cost of each pair in this call, in microseconds.
struct PricedChoice {
  Choice choice;
  std::map<NcclPair, float> costs;
};

std::map<NcclPair, float> CostsOf(const AskedTable& table) {
  std::map<NcclPair, float> costs;
  for (size_t cell = 0; cell < table.costs.size(); ++cell) {
    if (table.costs[cell] < 0) continue;
    costs[{static_cast<Algorithm>(cell / kProtocols), static_cast<Protocol>(cell % kProtocols)}] =
        table.costs[cell];
  }
  return costs;
}

const AskedTable* FindTable(const AskedTables& asked, Collective collective, size_t bytes) {
  for (const AskedTable& table : asked.tables) {
    if (table.pipe_ops > 0 && table.collective == collective && table.bytes == bytes) return &table;
  }
  return nullptr;
}

NcclCalls CallsOf(const std::vector<PricedChoice>& priced) {
  NcclCalls calls;
  std::set<NcclPair> pairs;
  for (const PricedChoice& one : priced) {
    for (const auto& [pair, cost] : one.costs) pairs.insert(pair);
  }
  calls.pairs.assign(pairs.begin(), pairs.end());
  for (const auto& [choice, costs] : priced) {
    // Two sizes may be rounded up to the same bytes.
    if (!calls.calls.empty() && calls.calls.back().bytes == choice.bytes) continue;
    NcclCall call{.bytes = choice.bytes,
                  .choice = {choice.algorithm, choice.protocol, static_cast<uint8_t>(choice.channels)},
                  .threads = choice.threads};
    for (const NcclPair& pair : calls.pairs)
      call.microseconds.push_back(costs.contains(pair) ? costs.at(pair) : kUnknown);
    calls.calls.push_back(call);
  }
  return calls;
}

// Runs the driver with the table tuner. Does nothing before 2.22, whose tuners get no table. Returns what
// went wrong, or an empty string.
std::string RunForTables(RunRequest request, AskedTables* asked) {
  if (request.release < NcclRelease{2, 22, 0}) return "";
  const std::string tables = request.scratch_folder + "/tables";
  std::filesystem::remove(tables);
  request.environment = {{"NCCL_TUNER_PLUGIN", REAL_NCCL_TABLE_TUNER}, {"TABLE_TUNER_FILE", tables}};
  const RunOutcome outcome = RunDriver(request);
  if (outcome.exit_code != 0) return "with a tuner: " + Tail(outcome.output);
  *asked = ReadAskedTables(tables);
  return asked->tables.empty() ? "the tuner was not asked" : "";
}

// Joins the choices of the run alone with the costs of the run with a tuner. Returns what went wrong, or an
// empty string.
std::string Price(const std::vector<Choice>& choices, const AskedTables& asked,
                  const std::vector<float>& logged, NcclCommunicator* communicator) {
  std::array<std::vector<PricedChoice>, kTunableCollectives> priced;
  for (size_t call = 0; call < choices.size(); ++call) {
    const Choice& choice = choices[call];
    const auto collective = ParseCollective(choice.function);
    if (!collective) return "an unknown function " + choice.function;
    PricedChoice one{.choice = choice};
    const AskedTable* table = FindTable(asked, *collective, choice.bytes);
    if (table != nullptr)
      one.costs = CostsOf(*table);
    else if (asked.tables.empty() && call < logged.size())
      one.costs[{choice.algorithm, choice.protocol}] = logged[call];
    else
      return "no costs of " + choice.function + " " + std::to_string(choice.bytes);
    priced[static_cast<size_t>(*collective)].push_back(one);
  }
  for (size_t c = 0; c < priced.size(); ++c) communicator->collectives[c] = CallsOf(priced[c]);
  return "";
}

std::string AddMachine(const std::string& name, NcclChoices* choices) {
  std::string error;
  const auto machine =
      cuda_standin::LoadMachine(std::string(REAL_NCCL_MACHINES) + "/" + name + ".machine", &error);
  if (machine) choices->machines[name] = {machine->name, machine->architecture, machine->cpu_vendor};
  return error;
}

}  // namespace

std::vector<size_t> ChoiceSizes() {
  std::vector<size_t> sizes;
  for (size_t bytes = 1 << 10; bytes <= size_t{4} << 30; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

std::string AddOwnChoices(const NcclRelease& release, const NcclWorld& world,
                          const std::vector<size_t>& sizes, const std::string& scratch,
                          NcclChoices* choices) {
  RunRequest request = RequestFor(release, world, sizes, scratch);
  const std::string dump = scratch + "/graphs.xml";
  std::filesystem::remove(dump);
  request.environment = {{"NCCL_GRAPH_DUMP_FILE", dump}};
  const RunOutcome alone = RunDriver(request);
  if (alone.exit_code != 0) return "alone: " + Tail(alone.output);
  if (!AllRanksLaunchedAlike(alone.output, request.ranks())) return "ranks launched different kernels";
  std::string error;
  const auto own = ChoicesOf(alone.output, release, request.ranks(), &error);
  if (!own) return error;
  AskedTables asked;
  error = RunForTables(request, &asked);
  const LoggedChannels channels = ParseChannels(alone.output).value_or(LoggedChannels{});
  NcclCommunicator communicator{
      .channels = channels.collective, .nvls_channels = channels.nvls, .graphs = ReadGraphs(dump)};
  if (error.empty() && communicator.graphs.empty()) error = "no graphs in NCCL_GRAPH_DUMP_FILE";
  if (error.empty()) error = Price(*own, asked, LoggedTimes(alone.output), &communicator);
  if (error.empty()) error = AddMachine(world.machine, choices);
  if (!error.empty()) return error;
  NcclReleaseChoices& known = choices->releases[release.text()];
  known.worlds[world] = communicator;
  // 2.31.2 asks its tuner before it has set the constants, so all of them are zero.
  const auto set = [](double constant) { return constant != 0; };
  known.constants.clear();
  if (std::ranges::any_of(asked.constants, set)) known.constants = asked.constants;
  return "";
}

}  // namespace dynamiccl::real_nccl
