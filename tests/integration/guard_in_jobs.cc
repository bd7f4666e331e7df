// SPDX-License-Identifier: Apache-2.0
// Runs the guard in jobs over hostccl. The cases: a policy that is much worse than NCCL's choice; links that
// degrade; a second run that begins with what the first has learnt; a policy that expects a gain from a
// config. The tests use modelled times (--model), so that the machine's noise does not decide. With the times
// of real kernels the program prints the figures of docs/results/guard.md. Noise can then decide the outcome:
// this is a failure, or a skipped test with DYNAMICCL_TEST_NOISY=1.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <sstream>
#include <thread>

#include "src/collective/legal_configs.h"
#include "src/decision/site_store/site_store_file.h"
#include "tests/integration/guarded_jobs.h"

namespace {

namespace fs = std::filesystem;
using dynamiccl::testing::Environment;
using dynamiccl::testing::GuardedJobOptions;
using dynamiccl::testing::GuardedJobs;
using dynamiccl::testing::GuardedRun;
using dynamiccl::testing::LoggedCall;
using dynamiccl::testing::MedianByBytes;
using dynamiccl::testing::TotalMs;

// How a case ends. kDisturbed: real times were too noisy to show anything.
enum class End { kRight, kWrong, kDisturbed };
constexpr int kSkipped = 77;  // exit code by which ctest recognises a skipped test

struct Options : GuardedJobOptions {
  std::string only;
  double degrade = 1.5;
  std::string winner;    // with `model`: the config that the case must find and use
  std::string believed;  // a config that a policy expects to be good although it is not
};

// Prints `what` if it does not hold. Returns `holds`.
bool Expect(bool holds, const std::string& what) {
  if (!holds) fmt::print("  NOT SO: {}\n", what);
  return holds;
}

// Prints for each key how many calls used the config `bad`, the last such call, and the time of the first
// ones.
void ReportBadCalls(const GuardedRun& run, const std::string& bad, const std::map<uint64_t, double>& nccl) {
  struct Key {
    int calls = 0;
    int bad = 0;
    int first_bad = -1;
    int last_bad = -1;
    double bad_us = 0;
  };
  std::map<uint64_t, Key> keys;
  for (const LoggedCall& logged : run.log) {
    Key& key = keys[logged.bytes];
    ++key.calls;
    if (!logged.Uses(bad)) continue;
    if (key.first_bad < 0) key.first_bad = key.calls;
    key.last_bad = key.calls;
    ++key.bad;
    if (logged.call < run.times.size()) key.bad_us += run.times[logged.call].second;
  }
  for (const auto& [bytes, key] : keys) {
    const double of = nccl.contains(bytes) ? nccl.at(bytes) : 0;
    fmt::print(
        "  {:>9} bytes: {} calls, {} at the policy's choice ({:.1f}x NCCL's), {} calls until revoked\n",
        bytes, key.calls, key.bad, key.bad == 0 ? 0 : key.bad_us / key.bad / of,
        key.first_bad < 0 ? 0 : key.last_bad - key.first_bad + 1);
  }
}

void ReportVersions(const GuardedRun& run) {
  uint32_t version = 0;
  for (const LoggedCall& logged : run.log) {
    if (logged.version == version) continue;
    version = logged.version;
    fmt::print("  v{} from call {} on\n", version, logged.call);
  }
  std::map<std::string, int> who;
  for (const LoggedCall& logged : run.log) ++who[logged.who];
  fmt::print("  decided by: {}\n", who);
  for (const std::string& line : dynamiccl::testing::LinesWith(run.output, "table v"))
    fmt::print("  {}\n", line);
}

// Returns how many percent longer the run took than the mean of two runs without DynamICCL, before and after
// it.
double LossPercent(const GuardedRun& run, const GuardedRun& before, const GuardedRun& after) {
  return 100 * (2 * TotalMs(run) / (TotalMs(before) + TotalMs(after)) - 1);
}

// Checks the calls of the largest size, where the policy is worse by more than any noise. They must use its
// choice first, and must not use it in the last quarter of the calls.
End LargestIsTakenBack(const GuardedRun& run, const std::string& bad) {
  // A choice is revoked after four calls above 3x NCCL's time at the earliest.
  constexpr int kFewestUses = 4;
  uint64_t largest = 0;
  for (const LoggedCall& logged : run.log) largest = std::max(largest, logged.bytes);
  std::vector<bool> uses_bad;
  for (const LoggedCall& logged : run.log) {
    if (logged.bytes == largest) uses_bad.push_back(logged.Uses(bad));
  }
  const auto last_quarter = uses_bad.begin() + static_cast<std::ptrdiff_t>(uses_bad.size() * 3 / 4);
  const auto used = std::count(uses_bad.begin(), last_quarter, true);
  if (!Expect(used >= kFewestUses, "the policy's choice is in use first")) return End::kWrong;
  const auto still_used = std::count(last_quarter, uses_bad.end(), true);
  return Expect(still_used == 0, "it is taken back") ? End::kRight : End::kDisturbed;
}

End BadPolicy(const Options& options) {
  GuardedJobs jobs(options);
  const GuardedRun before = jobs.RunWithout(options.calls);
  const GuardedRun guarded = jobs.Run(jobs.Adaptive(), options.calls);
  const GuardedRun after = jobs.RunWithout(options.calls);
  fmt::print("bad-policy: {:.0f} ms, without us {:.0f} and {:.0f} ms: {:+.1f} %\n", TotalMs(guarded),
             TotalMs(before), TotalMs(after), LossPercent(guarded, before, after));
  ReportBadCalls(guarded, options.policy, MedianByBytes(before, 10));
  ReportVersions(guarded);
  if (!before.ok || !guarded.ok || !after.ok) return End::kWrong;
  return LargestIsTakenBack(guarded, options.policy);
}

// Slows all links while the job waits before the call JOB_PAUSE_AT. These are the model's links, or
// hostccl's.
bool DegradeLinks(const Options& options, const std::string& pause, const std::string& slower) {
  if (!options.model.empty()) return std::ofstream(slower).flush().good();
  std::ifstream file(pause);
  int process = 0;
  file >> process;
  const std::string set = fmt::format("{} link set --job {} --degrade {} > /dev/null", DYNAMICCL_TEST_PROGRAM,
                                      process, 1 / options.degrade);
  return std::system(set.c_str()) == 0;
}

// Returns the first version after `before` that the change of the fabric caused, or 0 if there is none. A
// version that was requested before the change may come between the two.
uint32_t VersionOfChange(const GuardedRun& run, uint32_t before) {
  for (const LoggedCall& logged : run.log) {
    const std::string why = fmt::format("table v{}: the fabric changed;", logged.version);
    if (logged.version > before && run.output.find(why) != std::string::npos) return logged.version;
  }
  return 0;
}

// Requires that all sizes used the policy's choice when the links changed at call `change`. One version must
// then take all of them back to NCCL's choice.
End ChangeIsAnswered(const GuardedRun& run, const std::string& policy, uint64_t change) {
  std::map<uint64_t, bool> at_policy_before;
  uint32_t version_before = 0;
  for (const LoggedCall& logged : run.log) {
    if (logged.call >= change) continue;
    version_before = logged.version;
    if (logged.at_choice()) at_policy_before[logged.bytes] = logged.config.starts_with(policy);
  }
  const bool used = !at_policy_before.empty() && std::all_of(at_policy_before.begin(), at_policy_before.end(),
                                                             [](const auto& size) { return size.second; });
  if (!Expect(used, "the policy's choice is in use at all sizes when the links change")) return End::kWrong;
  const uint32_t answer = VersionOfChange(run, version_before);
  if (!Expect(answer != 0, "a version comes because the fabric changed")) return End::kDisturbed;
  const bool taken_back = std::none_of(run.log.begin(), run.log.end(), [&](const LoggedCall& logged) {
    return logged.version == answer && logged.Uses(policy);
  });
  return Expect(taken_back, "with it NCCL's choice is in use at all sizes") ? End::kRight : End::kWrong;
}

void ReportChange(const GuardedRun& run, const Options& options, uint64_t change) {
  uint32_t version = 0;
  uint64_t revoked = 0;
  for (const LoggedCall& logged : run.log) {
    if (logged.call < change) version = logged.version;
    if (revoked == 0 && logged.version > version) revoked = logged.call;
  }
  const auto keys = static_cast<uint64_t>(std::count(options.bytes.begin(), options.bytes.end(), ',') + 1);
  fmt::print("degraded {}x at call {}: next version {} calls of a key later\n", options.degrade, change,
             revoked == 0 ? -1 : static_cast<int64_t>((revoked - change) / keys));
  ReportVersions(run);
}

// Runs half of the job, then lowers the bandwidth of every link.
End Degraded(const Options& options) {
  GuardedJobs jobs(options);
  const int change = options.calls / 2;
  const std::string pause = jobs.folder() + "/pause";
  const std::string slower = jobs.folder() + "/slower";
  Environment more = jobs.Adaptive();
  more["JOB_PAUSE_AT"] = fmt::format("{}", change);
  more["JOB_PAUSE"] = pause;
  more["MODEL_SLOWER"] = fmt::format("{} {}", slower, options.degrade);
  auto job = std::async(std::launch::async, [&] { return jobs.Run(more, options.calls); });
  while (!fs::exists(pause)) {
    if (job.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready) return End::kWrong;
  }
  const bool changed = DegradeLinks(options, pause, slower);
  fs::remove(pause);
  const GuardedRun run = job.get();
  ReportChange(run, options, static_cast<uint64_t>(change));
  if (!Expect(changed, "links can be changed") || !run.ok) return End::kWrong;
  return ChangeIsAnswered(run, options.policy, static_cast<uint64_t>(change));
}

std::set<uint64_t> SizesOf(const Options& options) {
  std::set<uint64_t> sizes;
  std::istringstream words(options.bytes);
  for (std::string word; std::getline(words, word, ',');) sizes.insert(std::stoull(word));
  return sizes;
}

// Returns the sizes whose last call with the key's choice used the winner.
std::set<uint64_t> SizesAt(const std::vector<LoggedCall>& log, const std::string& winner) {
  std::map<uint64_t, bool> at_winner;
  for (const LoggedCall& logged : log) {
    if (logged.at_choice()) at_winner[logged.bytes] = logged.config.starts_with(winner);
  }
  std::set<uint64_t> sizes;
  for (const auto& [bytes, is] : at_winner) {
    if (is) sizes.insert(bytes);
  }
  return sizes;
}

// Returns the number of keys for which the store has a choice on an undisturbed fabric. With `winner`, only
// keys with this choice count.
ptrdiff_t SettledKeys(const std::string& store_path, const std::string& winner) {
  const auto store = dynamiccl::ReadSiteStore(store_path);
  if (!store) return -1;
  return std::count_if(store->entries().begin(), store->entries().end(), [&](const auto& entry) {
    return entry.first.regime == dynamiccl::Regime::kNormal &&
           dynamiccl::Describe(entry.second.config).starts_with(winner);
  });
}

ptrdiff_t Trials(const GuardedRun& run) {
  return std::count_if(run.log.begin(), run.log.end(),
                       [](const LoggedCall& each) { return each.who == "trial"; });
}

void ReportStore(const GuardedRun& first, const GuardedRun& second) {
  fmt::print("store: first run {} trials in {} calls, second {} in {}\n", Trials(first), first.log.size(),
             Trials(second), second.log.size());
  const auto end = MedianByBytes(first, first.times.size() * 3 / 4);
  for (const auto& [bytes, us] : MedianByBytes(second, 30))
    fmt::print("  {:>9} bytes: {:.0f} us at the first run's end, {:.0f} us in the second\n", bytes,
               end.contains(bytes) ? end.at(bytes) : 0, us);
  ReportVersions(first);
  ReportVersions(second);
}

// Runs a job until every size uses the winner. With real times there is no winner, and all calls are made.
GuardedRun RunUntilSettled(const GuardedJobs& jobs, Environment environment, const Options& options) {
  const std::string until = jobs.folder() + "/until";
  environment["JOB_UNTIL"] = until;
  auto job = std::async(std::launch::async, [&] { return jobs.Run(environment, options.calls); });
  while (job.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
    const bool settled =
        !options.winner.empty() &&
        SizesAt(dynamiccl::testing::ReadDecisionLog(jobs.decision_log()), options.winner) == SizesOf(options);
    if (settled) std::ofstream(until).flush();
  }
  fs::remove(until);
  return job.get();
}

// Runs two jobs with the same number of calls. The second begins with what the first has learnt.
End Store(const Options& options) {
  GuardedJobs jobs(options);
  Environment more = jobs.Adaptive();
  more["DYNAMICCL_SITE_STORE"] = jobs.folder() + "/site.dcsite";
  const GuardedRun first = RunUntilSettled(jobs, more, options);
  const ptrdiff_t settled = SettledKeys(more["DYNAMICCL_SITE_STORE"], options.winner);
  const GuardedRun second = jobs.Run(more, static_cast<int>(first.times.size()));
  ReportStore(first, second);
  if (settled < 0 || !first.ok || !second.ok) return End::kWrong;
  if (!Expect(Trials(first) > 0, "the first run tries something")) return End::kDisturbed;
  if (!Expect(settled == std::ssize(SizesOf(options)), "the first run settles every size"))
    return End::kDisturbed;
  const bool same_fabric = second.output.find("the fabric changed") == std::string::npos &&
                           second.output.find("steps take another time") == std::string::npos;
  if (!Expect(same_fabric, "the second finds the same fabric")) return End::kDisturbed;
  const bool kept = options.winner.empty() || SizesAt(second.log, options.winner) == SizesOf(options);
  return Expect(kept, "the second run uses what the first found") &&
                 Expect(Trials(second) == 0, "it tries nothing")
             ? End::kRight
             : End::kWrong;
}

// Returns the share of the calls of steps 25 to 50 that used this config, for any reason.
double SharePromptly(const GuardedRun& run, size_t calls_of_step, const std::string& config) {
  constexpr uint64_t kFrom = 25, kTo = 50;
  const auto used = std::count_if(run.log.begin(), run.log.end(), [&](const LoggedCall& logged) {
    const uint64_t step = logged.call / calls_of_step;
    return step >= kFrom && step < kTo && logged.config == config;
  });
  return static_cast<double>(used) / static_cast<double>((kTo - kFrom) * calls_of_step);
}

// Runs a job that begins with the config that its policy expects to be good. It adopts the config if steps
// confirm the expectation. Without a winner it must adopt nothing: either the policy expects nothing of any
// config, or it expects something of `believed` that the steps contradict.
End Expected(const Options& options) {
  GuardedJobs jobs(options);
  const GuardedRun run = jobs.Run(jobs.Adaptive(), options.calls);
  const std::string& expected = options.winner.empty() ? options.believed : options.winner;
  const double share = SharePromptly(run, SizesOf(options).size(), expected);
  if (!expected.empty())
    fmt::print("expected: steps 25 to 50 used {} in {:.0f} % of calls\n", expected, 100 * share);
  ReportVersions(run);
  if (!run.ok) return End::kWrong;
  const std::string promise = expected + " for all keys is expected to change steps by -";
  const bool believes = run.output.find(" is expected to change steps by ") != std::string::npos;
  if (!Expect(believes == !expected.empty(), "the policy promises a gain, or none") ||
      !Expect(!believes || run.output.find(promise) != std::string::npos, "it promises it of " + expected))
    return End::kWrong;
  const bool adopts = run.output.find("(a trial was better)") != std::string::npos;
  if (options.winner.empty()) return Expect(!adopts, "nothing is adopted") ? End::kRight : End::kWrong;
  return Expect(share >= 0.5, "most early steps use it") &&
                 Expect(SizesAt(run.log, options.winner) == SizesOf(options), "all sizes adopt it")
             ? End::kRight
             : End::kWrong;
}

constexpr struct {
  const char* name;
  End (*run)(const Options&);
} kCases[] = {{"bad-policy", BadPolicy}, {"degraded", Degraded}, {"store", Store}, {"expected", Expected}};

int CodeOf(End end, const Options& options) {
  if (end == End::kRight) return 0;
  const char* const noisy = std::getenv("DYNAMICCL_TEST_NOISY");
  const bool noise_can_decide = end == End::kDisturbed && options.model.empty();
  return noise_can_decide && noisy != nullptr && std::string(noisy) == "1" ? kSkipped : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The guard in running jobs over hostccl"};
  Options options;
  app.add_option("--topology", options.topology, "Of hostccl");
  app.add_option("--ranks", options.n_ranks, "Ranks");
  app.add_option("--calls", options.calls, "Calls of a job");
  app.add_option("--bytes", options.bytes, "Sizes in turn");
  app.add_option("--policy", options.policy, "What the policy prefers; none: there is no policy");
  app.add_option("--policy-file", options.policy_file, "The policy, in place of one that prefers --policy");
  app.add_option("--timing", options.timing, "DYNAMICCL_TIMES");
  app.add_option("--model", options.model, "Modelled times: factors, as in \"Ring/LL 4,Tree/Simple/2 0.8\"");
  app.add_option("--sleep", options.sleep, "With --model: calls take so many times the modelled times");
  app.add_option("--release", options.release, "HOSTCCL_EMULATE");
  app.add_option("--winner", options.winner, "With --model: what is to be found");
  app.add_option("--believed", options.believed, "With --only expected: what the policy is wrong about");
  app.add_option("--only", options.only, "One case");
  app.add_flag("--keep", options.keep, "Keep the jobs' files");
  app.add_option("--degrade", options.degrade, "How many times slower links become");
  CLI11_PARSE(app, argc, argv);
  int code = 0;
  for (const auto& each : kCases) {
    if (!options.only.empty() && options.only != each.name) continue;
    const int ended = CodeOf(each.run(options), options);
    if (ended == 1 || code == 0) code = ended;
  }
  return code;
}
