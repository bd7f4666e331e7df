// SPDX-License-Identifier: Apache-2.0
// Runs 256 ranks as threads of one process, in 64 communicators of four, with the object preloaded. The ranks
// make a million calls per minute over an NCCL that only asks its tuner. Every call must be in the trace, and
// calls must not become slower. Prints both results as JSON. The exit code is 0 if no record is missing.
//   load_of_calls [--seconds 60] [--calls-a-minute 1000000] [--mode frozen] [--json FILE]
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <vector>

#include "src/base/statistics.h"
#include "src/nccl_abi/nccl_api.h"
#include "src/policy/policy_file.h"
#include "tests/support/sample_policy.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_reader.h"

namespace {

namespace fs = std::filesystem;
using namespace dynamiccl;
using MonotonicClock = std::chrono::steady_clock;

struct Options {
  int communicators = 64;
  int ranks = 4;  // in each communicator
  double seconds = 60;
  double calls_a_minute = 1e6;
  std::string mode = "frozen";
  std::string json;
  std::string child;  // folder of the child process
};

constexpr int kSizes = 16;
// Number of calls of each size before the measured calls. In the first ones, the ranks exchange what they are
// offered.
constexpr int kSettlingCalls = 6;
// Maximum number of calls of a size on a rank before its verdict arrives.
constexpr uint64_t kMaxUntilTheyMet = kSettlingCalls;

struct Rank {
  ncclComm_t comm = nullptr;
  std::vector<uint32_t> latency_ns;  // in the order of calls
  uint64_t calls = 0;
};

void Call(Rank& rank, int i) {
  static float data[1];
  if (ncclAllReduce(data, data, size_t{64} << (i % kSizes), ncclFloat32, ncclSum, rank.comm, nullptr) !=
      ncclSuccess)
    std::_Exit(3);
  ++rank.calls;
}

void MakeCalls(Rank& rank, const Options& options, std::barrier<>& together) {
  for (int i = 0; i < kSettlingCalls * kSizes; ++i) {
    Call(rank, i);
    // As slow as ranks that wait for each other, so that the leader has seconds and not microseconds.
    ::usleep(2000);
  }
  together.arrive_and_wait();
  const double n = options.communicators * options.ranks;
  const std::chrono::duration<double> period(60 * n / options.calls_a_minute);
  const auto measured = static_cast<int>(options.seconds / period.count());
  rank.latency_ns.reserve(static_cast<size_t>(measured));
  std::mt19937 random(static_cast<unsigned>(reinterpret_cast<uintptr_t>(&rank) >> 4));
  const auto begun = MonotonicClock::now() + period * std::uniform_real_distribution<double>(0, 1)(random);
  for (int i = 0; i < measured; ++i) {
    std::this_thread::sleep_until(begun + i * period);
    const auto start = MonotonicClock::now();
    Call(rank, i);
    rank.latency_ns.push_back(static_cast<uint32_t>((MonotonicClock::now() - start).count()));
  }
}

// Returns the latency of all ranks' calls between two points in time, given as shares of the run.
nlohmann::json LatencyOf(const std::vector<Rank>& ranks, double from, double to) {
  std::vector<uint32_t> all;
  for (const Rank& rank : ranks) {
    const auto n = static_cast<double>(rank.latency_ns.size());
    all.insert(all.end(), rank.latency_ns.begin() + static_cast<std::ptrdiff_t>(from * n),
               rank.latency_ns.begin() + static_cast<std::ptrdiff_t>(to * n));
  }
  return {{"calls", all.size()}, {"p50", Quantile(all, 0.5)}, {"p99", Quantile(all, 0.99)}};
}

// Runs the job in a child process, which has the object preloaded.
int BeJob(const Options& options) {
  std::vector<Rank> ranks(static_cast<size_t>(options.communicators * options.ranks));
  std::vector<ncclUniqueId> ids(static_cast<size_t>(options.communicators));
  for (ncclUniqueId& id : ids) ncclGetUniqueId(&id);
  std::barrier together(static_cast<std::ptrdiff_t>(ranks.size()));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto n = static_cast<size_t>(options.ranks);
      ncclCommInitRank(&ranks[i].comm, options.ranks, ids[i / n], static_cast<int>(i % n));
      together.arrive_and_wait();
      MakeCalls(ranks[i], options, together);
    });
  }
  const auto begun = MonotonicClock::now();
  for (std::thread& thread : threads) thread.join();
  uint64_t calls = 0;
  uint64_t measured = 0;
  for (const Rank& rank : ranks) {
    calls += rank.calls;
    measured += rank.latency_ns.size();
    ncclCommDestroy(rank.comm);
  }
  const nlohmann::json report = {
      {"calls", calls},
      {"measured_calls", measured},
      {"seconds_in_all", std::chrono::duration<double>(MonotonicClock::now() - begun).count()},
      {"calls_of_a_rank", ranks.front().calls},
      {"call_ns", {{"first_tenth", LatencyOf(ranks, 0, 0.1)}, {"last_tenth", LatencyOf(ranks, 0.9, 1)}}}};
  std::ofstream(options.child + "/report") << report;
  return 0;
}

// Once the ranks have agreed at the first calls of a size, the policy must decide all further calls of that
// size on every rank, or none. It decides none if it wants the choice of NCCL's cost model. Returns the
// number of sizes that the policy decides.
int SizesOfThePolicy(const std::map<uint64_t, std::pair<uint64_t, uint64_t>>& of_size, size_t ranks,
                     std::string& wrong) {
  int sizes = 0;
  for (const auto& [bytes, counts] : of_size) {
    const auto [decisions, by_policy] = counts;
    if (by_policy == 0) continue;
    ++sizes;
    if (by_policy + kMaxUntilTheyMet * ranks < decisions || decisions - by_policy < ranks)
      wrong = fmt::format("of {} decisions on {} bytes the policy made {}", decisions, bytes, by_policy);
  }
  if (sizes == 0) wrong = "the policy decided nothing";
  return sizes;
}

// Checks the recorded calls of each communicator's rank: every call must be recorded exactly once.
nlohmann::json LookAt(const std::string& path, uint64_t calls_of_a_rank, size_t ranks, std::string& wrong) {
  const auto trace = ReadTrace(path);
  if (!trace) {
    wrong = trace.error().message;
    return {};
  }
  std::map<uint32_t, std::vector<bool>> seen;
  uint64_t decisions = 0;
  uint64_t by_policy = 0;
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> of_size;  // all decisions, and those of the policy
  uint64_t lost = 0;
  uint64_t twice = 0;
  for (const TraceSection& section : trace->sections) {
    lost += section.lost;
    for (const TraceRecord& record : section.records) {
      const auto kind = static_cast<RecordKind>(record.kind);
      if (kind == RecordKind::kDecision) {
        const uint64_t of_policy = DecisionOf(record).decided_by == DecidedBy::kPolicy ? 1 : 0;
        ++decisions;
        by_policy += of_policy;
        ++of_size[record.bytes].first;
        of_size[record.bytes].second += of_policy;
      }
      if (kind != RecordKind::kCollective) continue;
      std::vector<bool>& calls = seen[record.communicator];
      calls.resize(std::max<size_t>(calls.size(), calls_of_a_rank));
      if (record.call_number >= calls.size() || calls[record.call_number]) {
        ++twice;
      } else {
        calls[record.call_number] = true;
      }
    }
  }
  uint64_t recorded = 0;
  for (const auto& [communicator, calls] : seen)
    recorded += static_cast<uint64_t>(std::count(calls.begin(), calls.end(), true));
  if (seen.size() != ranks) wrong = fmt::format("{} communicators are recorded", seen.size());
  if (recorded != calls_of_a_rank * ranks) wrong = fmt::format("{} calls are recorded", recorded);
  if (lost + twice > 0) wrong = fmt::format("{} records are lost, {} doubled", lost, twice);
  const int sizes = SizesOfThePolicy(of_size, ranks, wrong);
  return {{"calls", recorded},           {"lost", lost},           {"doubled", twice},
          {"decisions", decisions},      {"by_policy", by_policy}, {"sizes_decided_by_policy", sizes},
          {"bytes", fs::file_size(path)}};
}

void BecomeJob(const Options& options, const std::string& folder) {
  const double records =
      2.5 * (options.seconds * options.calls_a_minute / 60 / (options.communicators * options.ranks) +
             kSettlingCalls * kSizes);
  const std::pair<const char*, std::string> environment[] = {
      {"LD_PRELOAD", DYNAMICCL_TEST_PRELOAD},
      {"DYNAMICCL_MODE", options.mode},
      {"DYNAMICCL_POLICY", folder + "/p.dcpolicy"},
      {"DYNAMICCL_TRACE", folder + "/trace"},
      {"DYNAMICCL_TRACE_RECORDS", std::to_string(static_cast<uint64_t>(records))},
      {"DYNAMICCL_CONTROL_ADDRESS", "127.0.0.1"},
      {"DYNAMICCL_ATTEST_TIMEOUT_MS", "60000"}};
  for (const auto& [name, value] : environment) ::setenv(name, value.c_str(), 1);
  const auto text = [](double value) { return fmt::format("{}", value); };
  const std::string numbers[] = {text(options.seconds), text(options.calls_a_minute)};
  ::execl("/proc/self/exe", "load_of_calls", "--child", folder.c_str(), "--seconds", numbers[0].c_str(),
          "--calls-a-minute", numbers[1].c_str(), nullptr);
  ::_exit(127);
}

int Measure(const Options& options) {
  std::string folder = fs::temp_directory_path() / "dynamiccl-load-XXXXXX";
  folder = ::mkdtemp(folder.data());
  if (!WritePolicyFile(folder + "/p.dcpolicy",
                       *test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kSimple)))
    return 2;
  const pid_t job = ::fork();
  if (job == 0) BecomeJob(options, folder);
  int status = 0;
  ::waitpid(job, &status, 0);
  nlohmann::json report;
  std::string wrong;
  if (status != 0) {
    wrong = fmt::format("the job ended with status {:#x}", status);
  } else {
    std::ifstream(folder + "/report") >> report;
    report["recorded"] = LookAt(folder + "/trace", report.at("calls_of_a_rank"),
                                static_cast<size_t>(options.communicators * options.ranks), wrong);
  }
  fs::remove_all(folder);
  report["schema"] = 1;
  report["communicators"] = options.communicators;
  report["ranks"] = options.communicators * options.ranks;
  report["mode"] = options.mode;
  report["calls_a_minute"] = options.calls_a_minute;
  report["wrong"] = wrong;
  if (options.json.empty()) {
    fmt::print("{}\n", report.dump(1));
  } else {
    std::ofstream(options.json) << report.dump(1) << "\n";
  }
  if (!wrong.empty()) fmt::print(stderr, "error: {}\n", wrong);
  return wrong.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Calls of 256 ranks as threads: none may be lost, and none may get slower.");
  Options options;
  app.add_option("--seconds", options.seconds, "of measured calls; default 60");
  app.add_option("--calls-a-minute", options.calls_a_minute, "of all ranks together; default 1000000");
  app.add_option("--mode", options.mode, "frozen or adaptive; default frozen");
  app.add_option("--json", options.json, "where to write the report; without it to stdout");
  app.add_option("--child", options.child, "be the job, and leave its figures in this folder");
  CLI11_PARSE(app, argc, argv);
  return options.child.empty() ? Measure(options) : BeJob(options);
}
