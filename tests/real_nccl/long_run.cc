// SPDX-License-Identifier: Apache-2.0
// Compares the ranks of a long run. Decision logs must be equal byte for byte. NCCL's choices must give the
// same digest on every rank (plugins/witness_profiler.cc). Rank 0's decisions are compared with NCCL's log
// line by line.
#include "tests/real_nccl/long_run.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/real_nccl/asked_choices.h"
#include "tests/real_nccl/real_nccl_run.h"

namespace dynamiccl::real_nccl {
namespace {

constexpr uint64_t kPolicySeed = 21;
constexpr int kCollectives = 5;

std::string DecisionLogOf(const LongRun& run, int rank) {
  return run.scratch + "/decisions." + std::to_string(rank);
}
std::string OutputOf(const LongRun& run, int rank) {
  return run.scratch + "/output_" + std::to_string(rank);
}

RunRequest RequestFor(const LongRun& run) {
  RunRequest request;
  request.release = run.release;
  request.scratch_folder = run.scratch;
  request.nodes = run.nodes;
  request.ranks_per_node = run.ranks_per_node;
  request.door = Door::kPreload;
  request.limit_s = 3600;
  for (size_t bytes = 512; bytes <= size_t{64} << 20; bytes *= 4) request.bytes.push_back(bytes + bytes / 3);
  const uint64_t per_round = request.bytes.size() * kCollectives;
  request.repeats = (run.decisions + per_round - 1) / per_round;
  const std::string policy = run.scratch + "/random.dcpolicy", rules = run.scratch + "/rules.csv";
  WriteRandomPolicy(policy, kPolicySeed);
  WriteSomeRules(rules);
  request.environment = {{"DYNAMICCL_POLICY", policy},
                         {"DYNAMICCL_RULES", rules},
                         {"DYNAMICCL_DECISION_LOG", run.scratch + "/decisions.%r"},
                         {"DYNAMICCL_ATTEST_TIMEOUT_MS", "60000"},
                         {"NCCL_PROFILER_PLUGIN", REAL_NCCL_WITNESS},
                         {"WITNESS_DIGEST", "1"}};
  return request;
}

std::vector<Environment> OwnEnvironments(const LongRun& run) {
  std::vector<Environment> own;
  for (int rank = 0; rank < run.nodes * run.ranks_per_node; ++rank)
    own.push_back({{"RANK", std::to_string(rank)},
                   {"NCCL_HOSTID", "node" + std::to_string(rank / run.ranks_per_node)}});
  return own;
}

bool SameBytes(const std::string& path, const std::string& other) {
  std::ifstream a(path, std::ios::binary), b(other, std::ios::binary);
  constexpr size_t kBlock = 1 << 20;
  std::string one(kBlock, '\0'), two(kBlock, '\0');
  while (a && b) {
    a.read(one.data(), kBlock);
    b.read(two.data(), kBlock);
    if (a.gcount() != b.gcount() ||
        one.compare(0, static_cast<size_t>(a.gcount()), two, 0, static_cast<size_t>(b.gcount())) != 0)
      return false;
  }
  return a.eof() && b.eof();
}

// Returns two digests of a rank, each as "calls <number> digest <hex>": one of what the profiler reported,
// one of the launched kernels. Both are needed. From 2.29 on NCCL reports no Broadcast to a profiler, and
// kernels do not show the protocol. Returns an empty string when one is missing.
std::string DigestsOf(const std::string& output) {
  std::ifstream lines(output);
  std::string said, launched;
  for (std::string line; std::getline(lines, line);) {
    const size_t calls = line.find(" calls ");
    if (calls == std::string::npos) continue;
    if (line.starts_with("witness: ")) said = line.substr(calls);
    if (line.starts_with("driver: ")) launched = line.substr(calls);
  }
  return said.empty() || launched.empty() ? "" : said + "," + launched;
}

std::string RankTrouble(const LongRun& run) {
  std::set<std::string> digests;
  for (int rank = 0; rank < run.nodes * run.ranks_per_node; ++rank) {
    if (!SameBytes(DecisionLogOf(run, 0), DecisionLogOf(run, rank)))
      return "rank " + std::to_string(rank) + " decided other than rank 0";
    digests.insert(DigestsOf(OutputOf(run, rank)));
  }
  if (digests.size() == 1 && !digests.begin()->empty()) return "";
  std::string all = "NCCL did not do the same on all ranks:";
  for (const std::string& digest : digests) all += " [" + digest + "]";
  return all;
}

// Returns whether NCCL took the decision. Only the upper limit of the channels is checked here.
// matrix_cell.cc checks the other rules that lower their number.
bool Taken(const AskedChoice& asked, const TuningLine& line) {
  if (asked.function != line.function) return false;
  if (asked.leaves_nccl_alone) return true;
  return ParseAlgorithm(line.algorithm) == asked.algorithm &&
         ParseProtocol(line.protocol) == asked.protocol &&
         (asked.channels == 0 || line.channels() <= asked.channels);
}

void CompareWithLog(const LongRun& run, LongRunResult* result) {
  std::ifstream log(OutputOf(run, 0)), decisions(DecisionLogOf(run, 0));
  std::string decision;
  for (std::string line; std::getline(log, line);) {
    if (line.find(" Bytes -> Algo ") == std::string::npos) continue;
    const auto choice = ParseTuningLine(line);
    if (!choice || !std::getline(decisions, decision)) break;
    const auto asked = ParseDecisionLine(decision);
    ++result->log_lines;
    if (!asked || !Taken(*asked, *choice)) {
      result->trouble = "decided: " + decision + "; NCCL: " + line;
      return;
    }
    result->asked += asked->leaves_nccl_alone ? 0 : 1;
  }
  while (std::getline(decisions, decision)) ++result->decisions;
  result->decisions += result->log_lines;
  if (result->decisions != result->log_lines)
    result->trouble = "NCCL's log has " + std::to_string(result->log_lines) + " lines for " +
                      std::to_string(result->decisions) + " decisions";
  if (result->asked == 0 && result->trouble.empty()) result->trouble = "nothing was asked for";
}

}  // namespace

LongRunResult RunLong(const LongRun& run) {
  LongRunResult result;
  result.skipped = WhyNotFetched(run.release);
  if (!result.skipped.empty()) return result;
  result.trouble = WhyNotRunnable(run.release);
  if (!result.trouble.empty()) return result;
  const auto begin = std::chrono::steady_clock::now();
  const auto outcomes = RunDriverProcesses(RequestFor(run), OwnEnvironments(run), /*output_stays=*/true);
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].exit_code != 0)
      result.trouble = "rank " + std::to_string(rank) + " ended with " +
                       std::to_string(outcomes[rank].exit_code) + ", see " +
                       OutputOf(run, static_cast<int>(rank));
  }
  if (result.trouble.empty()) result.trouble = RankTrouble(run);
  if (result.trouble.empty()) CompareWithLog(run, &result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace dynamiccl::real_nccl
