// SPDX-License-Identifier: Apache-2.0
// Runs the driver with and without DynamICCL and compares the choices.
#include "tests/real_nccl/matrix_cell.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include "src/collective/collective.h"
#include "tests/real_nccl/asked_choices.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::real_nccl {
namespace {

constexpr uint64_t kPolicySeed = 20;  // any seed whose policy uses several algorithms, protocols and channels
constexpr const char* kNothingAsked = "nothing was asked for";
constexpr int kCollectives = 5;  // calls that the driver's program makes for each size

// DynamICCL leaves the first call of each function and size to NCCL, so each size comes three times.
std::vector<size_t> Sizes() {
  std::vector<size_t> sizes;
  for (int round = 0; round < 3; ++round) {
    for (const size_t bytes :
         {size_t{1024}, size_t{65536}, size_t{1} << 20, size_t{16} << 20, size_t{256} << 20})
      sizes.push_back(bytes);
  }
  return sizes;
}

RunRequest RequestFor(const Cell& cell, const std::string& scratch) {
  RunRequest request;
  request.release = cell.release;
  request.machine = cell.machine;
  request.scratch_folder = scratch;
  request.nodes = cell.nodes;
  request.ranks_per_node = cell.ranks_per_node;
  request.bytes = Sizes();
  request.limit_s = 300;  // a quiet machine needs only seconds
  return request;
}

// Returns what is wrong with the run itself, or an empty string when it ended well.
std::string Trouble(const RunOutcome& outcome, const RunRequest& request,
                    const std::vector<std::string>& shared_before) {
  const size_t missing = outcome.output.find("has no stand-in");
  if (missing != std::string::npos) {
    const size_t line = outcome.output.rfind('\n', missing) + 1;
    return outcome.output.substr(line, outcome.output.find('\n', missing) - line);
  }
  if (outcome.exit_code != 0) {
    const size_t tail = std::min<size_t>(outcome.output.size(), 1500);
    return "exit code " + std::to_string(outcome.exit_code) + ": ..." +
           outcome.output.substr(outcome.output.size() - tail);
  }
  if (!AllRanksLaunchedAlike(outcome.output, request.ranks())) return "ranks launched different kernels";
  const auto left = LeftSharedMemory(shared_before);
  return left.empty() ? "" : "left in /dev/shm: " + left.front();
}

// Returns the choices of a run that must end well. Otherwise returns nothing and sets the finding's detail.
std::optional<std::vector<Choice>> RunWell(const RunRequest& request, Finding* finding,
                                           std::string* output = nullptr) {
  const auto shared_before = SharedMemoryNames();
  const RunOutcome outcome = RunDriver(request);
  finding->detail = Trouble(outcome, request, shared_before);
  if (!finding->detail.empty()) return std::nullopt;
  if (output != nullptr) *output = outcome.output;
  auto choices = ChoicesOf(outcome.output, request.release, request.ranks(), &finding->detail);
  if (choices && choices->size() != request.bytes.size() * kCollectives) {
    finding->detail = "the log has " + std::to_string(choices->size()) + " calls";
    return std::nullopt;
  }
  return choices;
}

template <typename... Parts>
std::string Text(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

void ExpectEqual(const std::vector<Choice>& alone, const std::vector<Choice>& with_us, Finding* finding) {
  for (size_t call = 0; call < alone.size(); ++call) {
    ++finding->compared;
    if (alone[call] == with_us[call]) continue;
    finding->detail = Text("call ", call, ": ", with_us[call], ", alone ", alone[call]);
    return;
  }
  finding->holds = true;
}

Finding CheckOff(const RunRequest& request, const std::vector<Choice>& alone) {
  Finding finding{"off"};
  if (const auto choices = RunWell(request, &finding)) ExpectEqual(alone, *choices, &finding);
  return finding;
}

// Checks that the trace has every call of every rank, in the rank's order. Only preloaded processes are
// checked: others see no calls and record nothing.
void ExpectRecorded(const std::string& path, const RunRequest& request, const std::vector<Choice>& alone,
                    Finding* finding) {
  finding->holds = false;
  const auto trace = ReadTrace(path);
  if (!trace) {
    finding->detail = trace.error().message;
    return;
  }
  size_t records = 0;
  for (const TraceSection& section : trace->sections) {
    for (const TraceRecord& record : section.records) {
      if (record.kind != static_cast<uint16_t>(RecordKind::kCollective)) continue;
      ++records;
      const Choice* call = record.call_number < alone.size() ? &alone[record.call_number] : nullptr;
      if (call != nullptr && call->bytes == record.bytes &&
          call->function == Name(static_cast<Collective>(record.collective)))
        continue;
      finding->detail = Text("the trace has a call ", record.call_number, " of ", record.bytes, " bytes");
      return;
    }
  }
  const size_t expected = alone.size() * static_cast<size_t>(request.ranks());
  finding->holds = records == expected;
  if (!finding->holds) finding->detail = Text("the trace has ", records, " calls, not ", expected);
}

Finding CheckObserve(RunRequest request, const std::vector<Choice>& alone) {
  Finding finding{"observe"};
  const std::string trace = request.scratch_folder + "/observed.ctrace";
  std::filesystem::remove(trace);
  request.environment = {{"DYNAMICCL_MODE", "observe"}, {"DYNAMICCL_TRACE", trace}};
  const auto choices = RunWell(request, &finding);
  if (!choices) return finding;
  ExpectEqual(alone, *choices, &finding);
  if (finding.holds && request.door != Door::kTuner) ExpectRecorded(trace, request, alone, &finding);
  return finding;
}

// Returns the number of channels of a kind, from a line such as "16 coll channels, 16 collnet channels, 16
// nvls channels, ...". Returns 0 for the form "0 nvls" of releases before 2.22.
int ChannelsOf(const std::string& output, const char* kind) {
  const std::regex pattern("(\\d+) " + std::string(kind) + " channels");
  std::smatch match;
  return std::regex_search(output, match, pattern) ? std::stoi(match[1]) : 0;
}

struct Expectation {
  const Cell& cell;
  int channels = 0;  // channels of the communicator
  int nvls_channels = 0;
  const std::vector<Choice>& alone;
  const std::vector<Choice>& own;  // the choices for the same pairs with channels left to NCCL

  bool IsNvls(const Choice& call) const {
    return call.algorithm == Algorithm::kNvls || call.algorithm == Algorithm::kNvlsTree;
  }
  // Returns NCCL's own channels for the pair. The last such call counts, because DynamICCL leaves the first
  // call of each function and size to NCCL.
  int OwnFor(const AskedChoice& asked) const {
    int channels_of_pair = 0;
    for (const Choice& call : own) {
      if (call.function == asked.function && call.bytes == asked.bytes && call.algorithm == asked.algorithm &&
          (call.protocol == asked.protocol || call.protocol == Protocol::kUndefined))
        channels_of_pair = call.channels;
    }
    return channels_of_pair;
  }
  int ChannelsFor(const AskedChoice& asked) const {
    if (asked.channels == 0) return OwnFor(asked);
    const int ranks = cell.nodes * cell.ranks_per_node;
    if (cell.release.only_limits_channels()) return std::min(asked.channels, OwnFor(asked));
    const Choice named{asked.function, asked.bytes, asked.algorithm, asked.protocol};
    return ScheduledChannels(cell.release, named, asked.channels, IsNvls(named) ? nvls_channels : channels,
                             ranks);
  }
  // Returns what is wrong with the choice, or an empty string.
  std::string Wrong(size_t call, const AskedChoice& asked, const Choice& taken) const {
    if (asked.function != taken.function || asked.bytes != taken.bytes)
      return Text("call ", call, ": decided about ", asked, ", NCCL chose for ", taken);
    if (asked.leaves_nccl_alone)
      return taken == alone[call] ? "" : Text("call ", call, ": ", taken, ", alone ", alone[call]);
    const bool same_protocol = taken.protocol == Protocol::kUndefined
                                   ? FitsThreads(asked.algorithm, asked.protocol, taken.threads)
                                   : asked.protocol == taken.protocol;
    if (asked.algorithm != taken.algorithm || !same_protocol)
      return Text("call ", call, ": asked for ", asked, ", NCCL took ", taken);
    const int channels_wanted = ChannelsFor(asked);
    if (taken.channels == channels_wanted) return "";
    return Text("call ", call, ": asked for ", asked, ", expected ", channels_wanted, " channels, NCCL took ",
                taken, ", its own ", OwnFor(asked));
  }
};

std::string DecisionLogOf(const RunRequest& request) {
  return request.scratch_folder + "/decisions";
}

// Returns the environment that makes DynamICCL decide. Ranks that load it only through NCCL_TUNER_PLUGIN
// cannot agree on rules. They get only a policy, and the hash of the policy proves that it is equal on all
// ranks.
Environment WhatDecides(const RunRequest& request, uint64_t policy_seed) {
  const std::string policy = request.scratch_folder + "/random.dcpolicy";
  const std::string rules = request.scratch_folder + "/rules.csv";
  Environment environment = {{"DYNAMICCL_POLICY", policy},
                             {"DYNAMICCL_DECISION_LOG", DecisionLogOf(request)},
                             {"DYNAMICCL_ATTEST_TIMEOUT_MS", "60000"}};
  const std::string digest = WriteRandomPolicy(policy, policy_seed);
  if (request.door == Door::kTuner) {
    environment["DYNAMICCL_POLICY_SHA256"] = digest;
    return environment;
  }
  WriteSomeRules(rules);
  environment["DYNAMICCL_RULES"] = rules;
  return environment;
}

// Returns the choices for the same pairs with channels left to NCCL. Only rules can ask for this, and rules
// need a preloaded library.
std::optional<std::vector<Choice>> OwnChannels(const RunRequest& request,
                                               const std::vector<AskedChoice>& asked, Finding* finding) {
  RunRequest without = request;
  const std::string rules = request.scratch_folder + "/without_channels.csv";
  WriteRulesWithoutChannels(rules, asked);
  if (without.door == Door::kTuner) without.door = Door::kPreload;
  without.environment = {{"DYNAMICCL_RULES", rules}, {"DYNAMICCL_ATTEST_TIMEOUT_MS", "60000"}};
  return RunWell(without, finding);
}

Finding CheckAsked(RunRequest request, const Cell& cell, const std::vector<Choice>& alone,
                   uint64_t policy_seed) {
  Finding finding{"asked"};
  std::filesystem::remove(DecisionLogOf(request));
  request.environment = WhatDecides(request, policy_seed);
  std::string output;
  const auto taken = RunWell(request, &finding, &output);
  if (!taken) return finding;
  if (cell.release.tuner_version() < 2) {  // DynamICCL only records such releases
    ExpectEqual(alone, *taken, &finding);
    return finding;
  }
  const auto asked = request.door == Door::kTuner
                         ? ReadAskedSituations(DecisionLogOf(request), *taken, &finding.detail)
                         : ReadAskedChoices(DecisionLogOf(request), request.ranks(), &finding.detail);
  if (!asked) return finding;
  const auto own = OwnChannels(request, *asked, &finding);
  if (!own) return finding;
  if (asked->size() != taken->size()) {
    finding.detail = Text(asked->size(), " decisions for ", taken->size(), " calls");
    return finding;
  }
  const Expectation expectation{cell, ChannelsOf(output, "coll"), ChannelsOf(output, "nvls"), alone, *own};
  for (size_t call = 0; call < taken->size() && finding.detail.empty(); ++call) {
    finding.detail = expectation.Wrong(call, (*asked)[call], (*taken)[call]);
    finding.compared += (*asked)[call].leaves_nccl_alone ? 0 : 1;
  }
  if (finding.detail.empty() && finding.compared == 0) finding.detail = kNothingAsked;
  finding.holds = finding.detail.empty();
  return finding;
}

// A policy of random weights may leave every call of one machine to NCCL. The check then tries up to seven
// other policies.
Finding CheckAsked(const RunRequest& request, const Cell& cell, const std::vector<Choice>& alone) {
  Finding finding = CheckAsked(request, cell, alone, kPolicySeed);
  for (uint64_t seed = kPolicySeed + 1; finding.detail == kNothingAsked && seed < kPolicySeed + 8; ++seed)
    finding = CheckAsked(request, cell, alone, seed);
  return finding;
}

size_t DividedUp(size_t a, size_t b) {
  return (a + b - 1) / b;
}

// Returns the channels for equal shares of whole grains, as NCCL before 2.22 makes them.
int ChannelsBefore222(size_t bytes, Protocol protocol, size_t wanted) {
  const size_t grain = protocol == Protocol::kLL ? 512 : 4096;
  const size_t share = DividedUp(DividedUp(bytes, wanted), grain) * grain;
  return static_cast<int>(DividedUp(bytes, share));
}

std::string WhyNoCell(const Cell& cell) {
  if (cell.door == Door::kStaticPlugin && !cell.release.has_static_plugin())
    return "no STATIC_PLUGIN before 2.22";
  if (cell.release.tuner_version() == 0 && (cell.door == Door::kTuner || cell.door == Door::kBoth))
    return "no tuner interface before 2.19";
  return WhyNotFetched(cell.release);
}

}  // namespace

std::string Cell::name() const {
  return Text(release.text(), " ", machine, " ", nodes, "x", ranks_per_node, " ", Name(door));
}

bool CellResult::holds() const {
  return std::all_of(findings.begin(), findings.end(), [](const Finding& f) { return f.holds; });
}

int ScheduledChannels(const NcclRelease& release, const Choice& call, int asked, int limit, int ranks) {
  constexpr size_t kLeastTraffic = 32 << 10, kGrain = 16;
  const bool shared_out = call.function == "AllGather" || call.function == "ReduceScatter";
  const size_t bytes = shared_out ? call.bytes / static_cast<size_t>(ranks) : call.bytes;
  size_t traffic_per_byte = shared_out ? static_cast<size_t>(ranks) : call.function == "AllReduce" ? 2 : 1;
  if (call.protocol == Protocol::kLL) traffic_per_byte *= 4;
  const size_t wanted = static_cast<size_t>(limit > 0 ? std::min(asked, limit) : asked);
  if (release < NcclRelease{2, 22, 0}) return ChannelsBefore222(bytes, call.protocol, wanted);
  const size_t traffic = std::max(kLeastTraffic, bytes * traffic_per_byte);
  const size_t cell = DividedUp(DividedUp(kLeastTraffic, traffic_per_byte), kGrain) * kGrain;
  const size_t cells = DividedUp(bytes, cell);
  const size_t traffic_per_channel = std::max(kLeastTraffic, traffic / wanted);
  const size_t cells_per_channel = std::min(cells, DividedUp(traffic_per_channel, cell * traffic_per_byte));
  return static_cast<int>(DividedUp(cells, cells_per_channel));
}

const std::vector<Choice>* Matrix::Alone(const Cell& cell, CellResult* result) {
  Cell without = cell;
  without.door = Door::kNone;
  const auto known = alone_.find(without.name());
  if (known != alone_.end()) return &known->second;
  Finding finding{"alone"};
  std::string output;
  const auto choices = RunWell(RequestFor(without, scratch_), &finding, &output);
  const size_t joined = output.find("joined world in ");
  if (joined != std::string::npos) result->init_seconds = std::strtod(&output[joined + 16], nullptr);
  finding.holds = choices.has_value();
  finding.compared = choices ? choices->size() : 0;
  result->findings.push_back(finding);
  return choices ? &alone_.emplace(without.name(), *choices).first->second : nullptr;
}

CellResult Matrix::Check(const Cell& cell) {
  CellResult result{cell};
  result.skipped = WhyNoCell(cell);
  if (!result.skipped.empty()) return result;
  if (const std::string why_not = WhyNotRunnable(cell.release); !why_not.empty()) {
    result.findings.push_back({.check = "runnable", .detail = why_not});
    return result;
  }
  const auto begin = std::chrono::steady_clock::now();
  if (const std::vector<Choice>* alone = Alone(cell, &result)) {
    RunRequest request = RequestFor(cell, scratch_);
    request.door = cell.door;
    result.findings.push_back(CheckOff(request, *alone));
    result.findings.push_back(CheckObserve(request, *alone));
    result.findings.push_back(CheckAsked(request, cell, *alone));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace dynamiccl::real_nccl
