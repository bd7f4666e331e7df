// SPDX-License-Identifier: Apache-2.0
// Replaces the policy file of a job of several processes over hostccl whose ranks stall at random. All ranks
// must use every new policy from the same call on. With --guarded the guard also changes tables, and uses
// trials and samples. The exit code is 0 if all decisions agree.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string_view>
#include <thread>

#include "src/policy/policy_file.h"
#include "tests/integration/nccl_job_run.h"
#include "tests/support/sample_policy.h"

namespace {

namespace fs = std::filesystem;
using dynamiccl::Algorithm;
using dynamiccl::Protocol;
using dynamiccl::testing::JobResult;
using dynamiccl::testing::RunJob;

constexpr int kCallsOfARound = 500;

// One line of a decision log: "<communicator> <call> <collective> <bytes> <role> <config> <who> v<version>".
struct LoggedLine {
  uint64_t call = 0;
  uint32_t version = 0;
  std::string_view config;  // "-": NCCL's choice
};

std::optional<LoggedLine> Parse(std::string_view line) {
  std::string_view words[8];
  for (std::string_view& word : words) {
    const size_t end = std::min(line.find(' '), line.size());
    word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  LoggedLine parsed;
  parsed.config = words[5];
  if (!words[7].starts_with('v')) return std::nullopt;
  words[7].remove_prefix(1);
  std::from_chars(words[1].data(), words[1].data() + words[1].size(), parsed.call);
  std::from_chars(words[7].data(), words[7].data() + words[7].size(), parsed.version);
  return parsed;
}

// Follows a decision log while it is being written.
class LogTail {
 public:
  explicit LogTail(std::string path) : path_(std::move(path)) {}
  // Returns the version in the last whole line; 0 before there is one.
  uint32_t Version() {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(read_));
    std::string more(std::istreambuf_iterator<char>(file), {});
    const size_t end = more.rfind('\n');
    if (end == std::string::npos) return version_;
    read_ += end + 1;
    const size_t begin = end == 0 ? std::string::npos : more.rfind('\n', end - 1);
    const size_t first = begin == std::string::npos ? 0 : begin + 1;
    if (const auto line = Parse(std::string_view(more).substr(first, end - first))) version_ = line->version;
    return version_;
  }

 private:
  const std::string path_;
  size_t read_ = 0;
  uint32_t version_ = 0;
};

struct Findings {
  uint64_t decisions = 0;
  uint64_t by_table = 0;
  uint64_t versions = 0;
  std::string wrong;
};

// Checks a log. Calls must follow each other without a gap, and versions must never go back. If the policy
// alone decides, each version has one protocol, which differs from that of the version before.
class LogChecker {
 public:
  explicit LogChecker(bool guarded) : guarded_(guarded) {}
  void Take(const LoggedLine& line) {
    if (line.call != findings.decisions)
      Say(fmt::format("call {} where {} was due", line.call, findings.decisions));
    if (line.version < version_)
      Say(fmt::format("call {}: v{} after v{}", line.call, line.version, version_));
    if (line.version > version_) {
      version_ = line.version;
      before_ = std::exchange(protocol_, {});
      ++findings.versions;
    }
    ++findings.decisions;
    if (line.config == "-") return;
    ++findings.by_table;
    if (guarded_) return;
    const std::string_view protocol = line.config.substr(0, line.config.rfind('/'));
    if (protocol_.empty()) protocol_ = protocol;
    if (protocol_ != protocol || protocol_ == before_)
      Say(fmt::format("call {}: {} in v{}, behind {} and {}", line.call, protocol, version_, protocol_,
                      before_));
  }

  Findings findings;

 private:
  void Say(const std::string& what) {
    if (findings.wrong.empty()) findings.wrong = what;
  }
  const bool guarded_;
  uint32_t version_ = 0;
  std::string protocol_;
  std::string before_;
};

class SwappedJob {
 public:
  SwappedJob(int n_ranks, int swaps, long calls, bool guarded)
      : n_ranks_(n_ranks), swaps_(swaps), calls_(calls), guarded_(guarded) {
    std::string folder = fs::temp_directory_path() / "dynamiccl-swaps-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~SwappedJob() { fs::remove_all(folder_); }

  int Run() {
    WritePolicy(0);
    std::ofstream(folder_ + "/go_on") << "\n";
    auto job = std::async(std::launch::async, [this] { return RunJob(Options()); });
    const auto begun = std::chrono::steady_clock::now();
    const int swapped = SwapWhileItRuns(job);
    const JobResult result = job.get();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    fs::remove_all(result.folder);
    const Findings findings = Compare();
    fmt::print("{} ranks, {} calls each, {} decided by a table, {} swaps, {} table versions, {:.0f} s\n",
               n_ranks_, findings.decisions, findings.by_table, swapped, findings.versions, took.count());
    const bool enough = swapped >= swaps_ && findings.decisions >= static_cast<uint64_t>(calls_);
    const bool none_lost = guarded_ ? findings.versions > static_cast<uint64_t>(swapped)
                                    : findings.versions == static_cast<uint64_t>(swapped) + 1;
    if (result.ok() && findings.wrong.empty() && enough && none_lost) {
      fmt::print("all logs equal, no swap lost\n");
      return 0;
    }
    fmt::print("WRONG: {}{}{}\n{}", findings.wrong, none_lost ? "" : " a swap was lost",
               enough ? "" : " the job ended early", result.ok() ? "" : result.AllOutput());
    return 1;
  }

 private:
  dynamiccl::testing::JobOptions Options() const {
    dynamiccl::testing::JobOptions options;
    options.n_ranks = n_ranks_;
    options.rounds = std::to_string((calls_ + kCallsOfARound - 1) / kCallsOfARound);
    options.extras = {"stalls"};
    options.environment = {{"DYNAMICCL_POLICY", folder_ + "/p.dcpolicy"},
                           {"DYNAMICCL_MODE", "adaptive"},
                           {"DYNAMICCL_DECISION_LOG", folder_ + "/decisions.%r"},
                           {"DYNAMICCL_TIMES", guarded_ ? "1" : "0"},
                           {"JOB_GOES_ON", folder_ + "/go_on"}};
    options.seconds = 3500;
    return options;
  }

  void WritePolicy(int turn) const {
    const Protocol protocol = turn % 2 == 0 ? Protocol::kSimple : Protocol::kLL;
    const auto policy = dynamiccl::test::MakePolicyThatPrefers(Algorithm::kRing, protocol);
    if (!dynamiccl::WritePolicyFile(folder_ + "/next", *policy)) std::abort();
    fs::rename(folder_ + "/next", folder_ + "/p.dcpolicy");
  }

  // Replaces the policy each time the previous one is in use, and then lets the job end. Returns the number
  // of replacements.
  int SwapWhileItRuns(const std::future<JobResult>& job) const {
    LogTail log(folder_ + "/decisions.0");
    uint32_t in_use = 0;
    for (int swapped = 0;; ++swapped) {
      while (log.Version() <= in_use) {
        if (job.wait_for(std::chrono::milliseconds(5)) == std::future_status::ready) return swapped;
      }
      in_use = log.Version();
      if (swapped == swaps_) {
        fs::remove(folder_ + "/go_on");
        return swapped;
      }
      WritePolicy(swapped + 1);
    }
  }

  Findings Compare() const {
    std::vector<std::ifstream> logs;
    for (int rank = 0; rank < n_ranks_; ++rank)
      logs.emplace_back(folder_ + "/decisions." + std::to_string(rank), std::ios::binary);
    LogChecker checker(guarded_);
    std::string line, other;
    while (std::getline(logs[0], line) && checker.findings.wrong.empty()) {
      for (int rank = 1; rank < n_ranks_; ++rank) {
        if (std::getline(logs[static_cast<size_t>(rank)], other) && other == line) continue;
        checker.findings.wrong = fmt::format("DIVERGENT: rank 0: {}; rank {}: {}", line, rank, other);
      }
      const auto parsed = Parse(line);
      if (parsed) checker.Take(*parsed);
    }
    for (int rank = 1; rank < n_ranks_; ++rank) {
      if (std::getline(logs[static_cast<size_t>(rank)], other) && checker.findings.wrong.empty())
        checker.findings.wrong = fmt::format("rank {} decided more: {}", rank, other);
    }
    return checker.findings;
  }

  const int n_ranks_;
  const int swaps_;
  const long calls_;
  const bool guarded_;
  std::string folder_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Swaps the policy under a job of several processes over hostccl and compares all decisions.");
  int ranks = 4;
  int swaps = 1000;
  long calls = 1'000'000;
  app.add_option("--ranks", ranks, "Processes.")->check(CLI::Range(2, 64));
  app.add_option("--swaps", swaps, "Policy swaps.")->check(CLI::NonNegativeNumber);
  app.add_option("--calls", calls, "At least so many calls.")->check(CLI::PositiveNumber);
  bool guarded = false;
  app.add_flag("--guarded", guarded, "Tables are guarded: tried, adopted and revoked by times.");
  CLI11_PARSE(app, argc, argv);
  return SwappedJob(ranks, swaps, calls, guarded).Run();
}
