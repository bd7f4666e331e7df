// SPDX-License-Identifier: Apache-2.0
// The guard in running jobs over hostccl, in figures: a policy that is much worse than NCCL's choice, a link
// that degrades, a quiet job, and a second run with what the first has learnt. docs/results/guard.md has
// them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <thread>

#include "src/decision/site_store/site_store_file.h"
#include "src/policy/policy_file.h"
#include "tests/integration/nccl_job_run.h"
#include "tests/support/sample_policy.h"

namespace {

namespace fs = std::filesystem;
using dynamiccl::Algorithm;
using dynamiccl::Protocol;
using dynamiccl::testing::Environment;
using dynamiccl::testing::JobOptions;
using dynamiccl::testing::JobResult;

// The program's exit codes: 77 means skipped to ctest.
enum class End { kRight = 0, kWrong = 1, kDisturbed = 77 };

// Of a case on a machine that is not quiet.
constexpr int kAttempts = 3;

struct Options {
  std::string topology = "two-nodes-ethernet";
  int n_ranks = 4;
  int calls = 1200;
  std::string bytes = "65536,1048576,4194304";
  std::string policy = "Ring/LL";
  std::string timing = "1";
  std::string only;
  double degrade = 1.5;
  bool keep = false;
};

// One line of a decision log: "<communicator> <call> <collective> <bytes> <role> <config> <who> v<version>".
struct Decided {
  uint64_t call = 0;
  uint64_t bytes = 0;
  std::string config;
  std::string who;
  uint32_t version = 0;
};

template <typename Number>
Number NumberOf(const std::string& word) {
  Number number{};
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

std::vector<Decided> ReadLog(const std::string& text) {
  std::vector<Decided> log;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word[8];
    for (std::string& each : word) words >> each;
    log.push_back({NumberOf<uint64_t>(word[1]), NumberOf<uint64_t>(word[3]), word[5], word[6],
                   NumberOf<uint32_t>(word[7].substr(std::min<size_t>(1, word[7].size())))});
  }
  return log;
}

struct JobRun {
  bool ok = false;
  std::vector<Decided> log;
  std::vector<std::pair<uint64_t, double>> times;  // bytes, us
  std::string output;
};

class GuardedJobs {
 public:
  explicit GuardedJobs(const Options& options) : options_(options) {
    std::string folder = fs::temp_directory_path() / "dynamiccl-guard-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~GuardedJobs() {
    if (!options_.keep) fs::remove_all(folder_);
  }

  const std::string& folder() const { return folder_; }

  JobRun Run(const Environment& more, bool preload = true) const {
    JobOptions job;
    job.n_ranks = options_.n_ranks;
    job.rounds = fmt::format("{}", options_.calls);
    job.preload = preload;
    job.seconds = 900;
    job.environment = {{"HOSTCCL_TOPOLOGY", options_.topology},
                       {"JOB_BYTES", options_.bytes},
                       {"JOB_TIMES", "%d/times"},
                       {"DYNAMICCL_LOG", "info"}};
    for (const auto& [name, value] : more) job.environment[name] = value;
    const JobResult result = dynamiccl::testing::RunJob(job);
    JobRun run;
    run.ok = result.ok();
    run.output = result.output[0];
    run.log = ReadLog(result.Text("decisions.0"));
    for (int rank = 1; rank < options_.n_ranks; ++rank)
      run.ok = run.ok && result.Text(fmt::format("decisions.{}", rank)) == result.Text("decisions.0");
    std::istringstream times(result.Text("times"));
    uint64_t bytes = 0;
    for (double ns = 0; times >> bytes >> ns;) run.times.emplace_back(bytes, ns / 1000);
    if (!run.ok) fmt::print("{}\n", result.AllOutput());
    if (options_.keep)
      fmt::print("files in {}\n", result.folder);
    else
      fs::remove_all(result.folder);
    return run;
  }

  Environment Adaptive() const {
    const size_t slash = options_.policy.find('/');
    const auto policy =
        dynamiccl::test::MakePolicyThatPrefers(*dynamiccl::ParseAlgorithm(options_.policy.substr(0, slash)),
                                               *dynamiccl::ParseProtocol(options_.policy.substr(slash + 1)));
    const std::string path = folder_ + "/p.dcpolicy";
    if (!dynamiccl::WritePolicyFile(path, *policy)) std::abort();
    return {{"DYNAMICCL_POLICY", path},
            {"DYNAMICCL_MODE", "adaptive"},
            {"DYNAMICCL_TIMES", options_.timing},
            {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}};
  }

 private:
  const Options options_;
  std::string folder_;
};

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::map<uint64_t, double> MedianByBytes(const JobRun& run, size_t from) {
  std::map<uint64_t, std::vector<double>> by;
  for (size_t i = from; i < run.times.size(); ++i) by[run.times[i].first].push_back(run.times[i].second);
  std::map<uint64_t, double> medians;
  for (auto& [bytes, times] : by) medians[bytes] = Median(std::move(times));
  return medians;
}

// By key: calls that used `config_prefix`, the last such call of the key, and what the first of them took.
void ReportBadCalls(const JobRun& run, const std::string& bad, const std::map<uint64_t, double>& nccl) {
  struct Key {
    int calls = 0;
    int bad = 0;
    int first_bad = -1;
    int last_bad = -1;
    double bad_us = 0;
  };
  std::map<uint64_t, Key> keys;
  std::map<uint64_t, double> time_of_call;
  for (size_t i = 0; i < run.times.size(); ++i) time_of_call[i] = run.times[i].second;
  for (const Decided& decided : run.log) {
    Key& key = keys[decided.bytes];
    ++key.calls;
    if (!decided.config.starts_with(bad) || decided.who == "trial") continue;
    if (key.first_bad < 0) key.first_bad = key.calls;
    key.last_bad = key.calls;
    ++key.bad;
    key.bad_us += time_of_call[decided.call];
  }
  for (const auto& [bytes, key] : keys) {
    const double of = nccl.contains(bytes) ? nccl.at(bytes) : 0;
    fmt::print(
        "  {:>9} bytes: {} calls, {} at the policy's choice ({:.1f}x NCCL's), {} calls until revoked\n",
        bytes, key.calls, key.bad, key.bad == 0 ? 0 : key.bad_us / key.bad / of,
        key.first_bad < 0 ? 0 : key.last_bad - key.first_bad + 1);
  }
}

double TotalMs(const JobRun& run) {
  double sum = 0;
  for (const auto& [bytes, us] : run.times) sum += us;
  return sum / 1000;
}

void ReportVersions(const JobRun& run) {
  uint32_t version = 0;
  for (const Decided& decided : run.log) {
    if (decided.version == version) continue;
    version = decided.version;
    fmt::print("  v{} from call {} on\n", version, decided.call);
  }
  std::map<std::string, int> who;
  for (const Decided& decided : run.log) ++who[decided.who];
  fmt::print("  decided by: {}\n", who);
  std::istringstream lines(run.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("table v") != std::string::npos) fmt::print("  {}\n", line);
  }
}

// Share of the time that the run took more than runs without us before and after it.
double LossPercent(const JobRun& run, const JobRun& before, const JobRun& after) {
  return 100 * (2 * TotalMs(run) / (TotalMs(before) + TotalMs(after)) - 1);
}

// Of the largest messages, where the policy is wrong beyond any noise, no call of the last quarter is at its
// choice.
bool LargestIsTakenBack(const JobRun& run, const std::string& bad) {
  uint64_t most = 0;
  for (const Decided& decided : run.log) most = std::max(most, decided.bytes);
  return std::none_of(run.log.begin() + static_cast<std::ptrdiff_t>(run.log.size() * 3 / 4), run.log.end(),
                      [&](const Decided& decided) {
                        return decided.bytes == most && decided.config.starts_with(bad) &&
                               decided.who != "trial";
                      });
}

End BadPolicy(const Options& options) {
  GuardedJobs jobs(options);
  const JobRun before = jobs.Run({}, false);
  const JobRun guarded = jobs.Run(jobs.Adaptive());
  const JobRun after = jobs.Run({}, false);
  fmt::print("bad-policy: {:.0f} ms, without us {:.0f} and {:.0f} ms: {:+.1f} %\n", TotalMs(guarded),
             TotalMs(before), TotalMs(after), LossPercent(guarded, before, after));
  ReportBadCalls(guarded, options.policy, MedianByBytes(before, 10));
  ReportVersions(guarded);
  const bool right = before.ok && guarded.ok && after.ok && LargestIsTakenBack(guarded, options.policy);
  return right ? End::kRight : End::kWrong;
}

// Half of the job, then every link has less bandwidth.
End Degraded(const Options& options) {
  GuardedJobs jobs(options);
  const int change = options.calls / 2;
  const std::string pause = jobs.folder() + "/pause";
  Environment more = jobs.Adaptive();
  more["JOB_PAUSE_AT"] = fmt::format("{}", change);
  more["JOB_PAUSE"] = pause;
  auto job = std::async(std::launch::async, [&] { return jobs.Run(more); });
  while (!fs::exists(pause)) {
    if (job.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready) return End::kWrong;
  }
  std::ifstream file(pause);
  int process = 0;
  file >> process;
  const std::string set = fmt::format("{} link set --job {} --degrade {} > /dev/null", DYNAMICCL_TEST_PROGRAM,
                                      process, 1 / options.degrade);
  const bool changed = std::system(set.c_str()) == 0;
  fs::remove(pause);
  const JobRun run = job.get();
  uint32_t version = 0;
  uint64_t revoked = 0;
  for (const Decided& decided : run.log) {
    if (decided.call < static_cast<uint64_t>(change)) version = decided.version;
    if (revoked == 0 && decided.version > version) revoked = decided.call;
  }
  const auto keys = static_cast<uint64_t>(std::count(options.bytes.begin(), options.bytes.end(), ',') + 1);
  fmt::print("degraded {}x at call {}: next version {} calls of a key later\n", options.degrade, change,
             revoked == 0 ? -1 : static_cast<int64_t>((revoked - static_cast<uint64_t>(change)) / keys));
  ReportVersions(run);
  return changed && run.ok ? End::kRight : End::kWrong;
}

// Keys of which `store` says what to begin with on an undisturbed fabric.
ptrdiff_t SettledKeys(const std::string& store_path) {
  const auto store = dynamiccl::ReadSiteStore(store_path);
  if (!store) return -1;
  return std::count_if(store->entries().begin(), store->entries().end(),
                       [](const auto& entry) { return entry.first.regime == dynamiccl::Regime::kNormal; });
}

ptrdiff_t Trials(const JobRun& run) {
  return std::count_if(run.log.begin(), run.log.end(),
                       [](const Decided& each) { return each.who == "trial"; });
}

void ReportStore(const JobRun& first, const JobRun& second) {
  fmt::print("store: first run {} trials, second {}\n", Trials(first), Trials(second));
  const auto end = MedianByBytes(first, first.times.size() * 3 / 4);
  for (const auto& [bytes, us] : MedianByBytes(second, 30))
    fmt::print("  {:>9} bytes: {:.0f} us at the first run's end, {:.0f} us in the second\n", bytes,
               end.at(bytes), us);
  ReportVersions(first);
  ReportVersions(second);
}

// What a first run learns, and a second begins with. On a machine whose speed changes meanwhile there is
// nothing to see: the first settles less than all, or the second finds another fabric.
End StoreOnce(const Options& options) {
  GuardedJobs jobs(options);
  Environment more = jobs.Adaptive();
  more["DYNAMICCL_SITE_STORE"] = jobs.folder() + "/site.dcsite";
  const JobRun first = jobs.Run(more);
  const ptrdiff_t settled = SettledKeys(more["DYNAMICCL_SITE_STORE"]);
  const JobRun second = jobs.Run(more);
  ReportStore(first, second);
  if (settled < 0 || !first.ok || !second.ok) return End::kWrong;
  if (settled < std::ssize(MedianByBytes(first, 0))) {
    fmt::print("  the first run was too short or disturbed: it settled {} keys\n", settled);
    return End::kDisturbed;
  }
  if (second.output.find("the fabric changed") != std::string::npos) return End::kDisturbed;
  return Trials(second) == 0 ? End::kRight : End::kWrong;
}

End Store(const Options& options) {
  End end = End::kDisturbed;
  for (int i = 0; i < kAttempts && end == End::kDisturbed; ++i) end = StoreOnce(options);
  return end;
}

constexpr struct {
  const char* name;
  End (*run)(const Options&);
} kCases[] = {{"bad-policy", BadPolicy}, {"degraded", Degraded}, {"store", Store}};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The guard in running jobs over hostccl"};
  Options options;
  app.add_option("--topology", options.topology, "Of hostccl");
  app.add_option("--ranks", options.n_ranks, "Ranks");
  app.add_option("--calls", options.calls, "Calls of a job");
  app.add_option("--bytes", options.bytes, "Sizes in turn");
  app.add_option("--policy", options.policy, "What the policy prefers");
  app.add_option("--timing", options.timing, "DYNAMICCL_TIMES");
  app.add_option("--only", options.only, "One case");
  app.add_flag("--keep", options.keep, "Keep the jobs' files");
  app.add_option("--degrade", options.degrade, "How many times slower links become");
  CLI11_PARSE(app, argc, argv);
  int code = 0;
  for (const auto& each : kCases) {
    if (!options.only.empty() && options.only != each.name) continue;
    const End end = each.run(options);
    if (end == End::kDisturbed)
      fmt::print("{}: nothing is shown: the job was too short or disturbed\n", each.name);
    if (end == End::kWrong || code == 0) code = static_cast<int>(end);
  }
  return code;
}
