// SPDX-License-Identifier: Apache-2.0
// Runs a job of four ranks over hostccl with the preloaded object for a given time, and disturbs it. The
// ranks make random collectives and compare them with the serial reference (soak_job). Each second the policy
// changes. Links become slower and recover. Ranks are killed and restarted. Prints as JSON what was done and
// what each process used. The exit code is 0 if every result was right, the job recovered from every kill,
// and memory, descriptors and shared memory stayed within the bounds below.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "src/base/statistics.h"
#include "src/policy/policy_file.h"
#include "src/transport/link_client.h"
#include "tests/soak/process_use.h"
#include "tests/soak/soak_state.h"
#include "tests/support/sample_policy.h"

namespace {

namespace fs = std::filesystem;
using namespace dynamiccl;
using namespace dynamiccl::testing;
using MonotonicClock = std::chrono::steady_clock;

constexpr int kRanks = 4;
// After a kill, all ranks including the restarted one must make calls again within this time. The other ranks
// notice the loss at once when a socket closes. The rest of the time is for a busy machine that starts a
// process.
constexpr double kMaxRecoverySeconds = 30;
// Limit for the growth of a process's private memory in KiB per minute, if the process lived for kLongEnough.
// In the first minutes each size and operator comes for the first time, and what is decided for it is kept.
constexpr double kMaxSlope = 4096;
constexpr double kMaxSlopeOfLongLife = 1536;
constexpr double kLongEnough = 45;
constexpr double kLongLife = 500;
// At its end a process may have this many descriptors more than its minimum. More are open while ranks
// connect.
constexpr int kMoreDescriptors = 16;

double SecondsSince(MonotonicClock::time_point begun) {
  return std::chrono::duration<double>(MonotonicClock::now() - begun).count();
}

struct RankProcess {
  int rank = 0;
  pid_t pid = 0;
  MonotonicClock::time_point begun;
  std::vector<ProcessSample> samples;
};

class Soak {
 public:
  Soak(double seconds, double kill_every) : seconds_(seconds), kill_every_(kill_every) {
    std::string folder = fs::temp_directory_path() / "dynamiccl-soak-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~Soak() {
    for (const RankProcess& rank : ranks_) ::kill(rank.pid, SIGKILL);
    fs::remove_all(folder_);
  }

  nlohmann::json Run() {
    const auto before = SharedNames();
    for (int rank = 0; rank < kRanks; ++rank) states_.push_back(SoakState::Open(folder_, rank));
    SwapPolicy();
    for (int rank = 0; rank < kRanks; ++rank) ranks_.push_back(Start(rank));
    if (!AwaitWork()) wrong_ = "the job did not begin";
    begun_ = MonotonicClock::now();
    double next_second = 1;
    double next_kill = kill_every_;
    while (wrong_.empty() && SecondsSince(begun_) < seconds_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      CheckAlive();
      if (SecondsSince(begun_) >= next_second) EachSecond(static_cast<int>(next_second++));
      // Kills no rank so late that the time after the kill is too short to show faults.
      if (SecondsSince(begun_) >= next_kill && SecondsSince(begun_) + kill_every_ / 2 < seconds_) {
        KillAndRestart(1 + static_cast<int>(kills_) % (kRanks - 1));
        next_kill += kill_every_;
      }
    }
    const double lasted = SecondsSince(begun_);
    End();
    const size_t left = CountLeft(before);
    if (left > 0 && wrong_.empty()) wrong_ = fmt::format("{} names are left behind", left);
    return Report(lasted, left);
  }

 private:
  RankProcess Start(int rank) {
    const pid_t pid = ::fork();
    if (pid == 0) Become(rank);
    return {rank, pid, MonotonicClock::now(), {}};
  }

  [[noreturn]] void Become(int rank) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::pair<const char*, std::string> environment[] = {{"RANK", std::to_string(rank)},
                                                               {"WORLD_SIZE", std::to_string(kRanks)},
                                                               {"LD_PRELOAD", DYNAMICCL_TEST_PRELOAD},
                                                               {"DYNAMICCL_MODE", "adaptive"},
                                                               {"DYNAMICCL_POLICY", folder_ + "/p.dcpolicy"},
                                                               {"DYNAMICCL_TRACE", folder_ + "/%r.ctrace"},
                                                               {"DYNAMICCL_TRACE_RECORDS", "4096"},
                                                               {"DYNAMICCL_METRICS", folder_ + "/%r.prom"},
                                                               {"DYNAMICCL_CONTROL_ADDRESS", "127.0.0.1"},
                                                               {"DYNAMICCL_ATTEST_TIMEOUT_MS", "10000"},
                                                               {"HOSTCCL_TOPOLOGY", "two-nodes-ethernet"}};
    for (const auto& [name, value] : environment) ::setenv(name, value.c_str(), 1);
    const int log = ::open((folder_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(log, STDERR_FILENO);
    ::dup2(log, STDOUT_FILENO);
    const std::string generation = std::to_string(generation_);
    ::execl(DYNAMICCL_TEST_JOB, DYNAMICCL_TEST_JOB, folder_.c_str(), generation.c_str(), nullptr);
    ::_exit(127);
  }

  // Waits until every rank has made calls on the communicator of this generation.
  bool AwaitWork() {
    const auto begun = MonotonicClock::now();
    std::vector<uint64_t> calls;
    for (const SoakState* state : states_) calls.push_back(state->calls.load());
    const auto works = [&](int rank) {
      const SoakState& state = *states_[static_cast<size_t>(rank)];
      return state.generation.load() == generation_ && state.calls.load() > calls[static_cast<size_t>(rank)];
    };
    while (SecondsSince(begun) < 4 * kMaxRecoverySeconds && wrong_.empty()) {
      bool all = true;
      for (int rank = 0; rank < kRanks; ++rank) all = all && works(rank);
      if (all) return true;
      CheckAlive();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  void CheckAlive() {
    for (const RankProcess& rank : ranks_) {
      int status = 0;
      if (::waitpid(rank.pid, &status, WNOHANG) != rank.pid) continue;
      wrong_ = fmt::format("rank {} ended with status {:#x}", rank.rank, status);
    }
  }

  void EachSecond(int second) {
    SwapPolicy();
    if (second % 5 == 0) Congest(second % 10 == 5);
    for (RankProcess& rank : ranks_) rank.samples.push_back(LookAt(rank.pid, SecondsSince(rank.begun)));
  }

  void SwapPolicy() {
    const Protocol protocols[] = {Protocol::kSimple, Protocol::kLL, Protocol::kLL128};
    const auto policy = test::MakePolicyThatPrefers(Algorithm::kRing, protocols[swaps_ % 3]);
    if (!WritePolicyFile(folder_ + "/p.dcpolicy", *policy)) wrong_ = "no policy could be written";
    ++swaps_;
  }

  // Changes the links between the nodes. If congested, other traffic takes half the bandwidth, and the links
  // have a third of their normal bandwidth.
  void Congest(bool congested) {
    LinkRequest request{.kind = congested ? LinkRequestKind::kSet : LinkRequestKind::kReset};
    const auto table = LinkFieldTable();
    for (size_t field = 0; congested && field < table.size(); ++field) {
      if (table[field].value == &LinkShape::load) request.change.Set(field, 0.5);
      if (table[field].value == &LinkShape::degrade) request.change.Set(field, 0.33);
    }
    if (const auto answer = AskForLinks(ranks_[0].pid, request); answer && answer->refused.empty())
      ++link_changes_;
  }

  void KillAndRestart(int rank) {
    RankProcess& process = ranks_[static_cast<size_t>(rank)];
    ::kill(process.pid, SIGKILL);
    ::waitpid(process.pid, nullptr, 0);
    const auto killed = MonotonicClock::now();
    ended_.push_back(std::move(process));
    ++kills_;
    ++generation_;
    ranks_[static_cast<size_t>(rank)] = Start(rank);
    if (!AwaitWork()) {
      if (wrong_.empty()) wrong_ = fmt::format("not at work again after the loss of rank {}", rank);
      return;
    }
    recoveries_.push_back(SecondsSince(killed));
  }

  void End() {
    std::ofstream(folder_ + "/stop") << "\n";
    for (RankProcess& rank : ranks_) {
      int status = 0;
      const auto asked = MonotonicClock::now();
      while (::waitpid(rank.pid, &status, WNOHANG) == 0) {
        if (SecondsSince(asked) > kMaxRecoverySeconds) ::kill(rank.pid, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      if (status != 0 && wrong_.empty())
        wrong_ = fmt::format("rank {} ended with status {:#x}", rank.rank, status);
      ended_.push_back(std::move(rank));
    }
    ranks_.clear();
    table_versions_ = TableVersions();
    if (!wrong_.empty()) log_ = LastOfLog();
  }

  // Returns the number of new names in /dev/shm. Waits up to 5 s for them to disappear, because other
  // programs also create names.
  static size_t CountLeft(const std::set<std::string>& before) {
    const auto asked = MonotonicClock::now();
    size_t left = 0;
    do {
      const auto after = SharedNames();
      left = static_cast<size_t>(std::count_if(after.begin(), after.end(),
                                               [&](const auto& name) { return !before.contains(name); }));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    } while (left > 0 && SecondsSince(asked) < 5);
    return left;
  }

  static std::set<std::string> SharedNames() {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator("/dev/shm")) names.insert(entry.path().filename());
    return names;
  }

  // Returns the table versions of rank 0, whose process is never killed.
  double TableVersions() const {
    std::ifstream metrics(folder_ + "/0.prom");
    double versions = 0;
    for (std::string line; std::getline(metrics, line);) {
      if (!line.starts_with("dynamiccl_table_versions_total")) continue;
      versions += std::stod(line.substr(line.rfind(' ')));
    }
    return versions;
  }

  std::string LastOfLog() const {
    std::ifstream log(folder_ + "/log");
    const std::string text(std::istreambuf_iterator<char>(log), {});
    return text.substr(text.size() - std::min<size_t>(text.size(), 2000));
  }

  nlohmann::json ReportOf(const RankProcess& process) {
    const auto& samples = process.samples;
    nlohmann::json row = {{"rank", process.rank}, {"samples", samples.size()}};
    if (samples.size() < 8) return row;
    const auto [least, most] =
        std::minmax_element(samples.begin() + 2, samples.end(),
                            [](const auto& a, const auto& b) { return a.descriptors < b.descriptors; });
    const ProcessSample& middle = samples[samples.size() / 2];
    const double slope = SlopeOf(samples);
    row.update(
        {{"seconds", samples.back().seconds},
         {"slope_kib_a_minute", std::round(slope * 10) / 10},
         {"private_kib", {{"half_time", middle.anon_kib}, {"end", samples.back().anon_kib}}},
         {"shared_kib", {{"half_time", middle.shared_kib}, {"end", samples.back().shared_kib}}},
         {"descriptors",
          {{"least", least->descriptors}, {"most", most->descriptors}, {"end", samples.back().descriptors}}},
         {"shared_maps", {{"half_time", middle.shared_maps}, {"end", samples.back().shared_maps}}}});
    const double lived = samples.back().seconds;
    const double bound = lived < kLongLife ? kMaxSlope : kMaxSlopeOfLongLife;
    if (lived > kLongEnough && slope > bound && wrong_.empty())
      wrong_ = fmt::format("rank {} grows", process.rank);
    if (samples.back().descriptors > least->descriptors + kMoreDescriptors && wrong_.empty())
      wrong_ = fmt::format("rank {} gathers descriptors", process.rank);
    return row;
  }

  nlohmann::json Report(double lasted, size_t left) {
    uint64_t calls = UINT64_MAX;
    for (const SoakState* state : states_) calls = std::min(calls, state->calls.load());
    nlohmann::json processes = nlohmann::json::array();
    for (const RankProcess& process : ended_) processes.push_back(ReportOf(process));
    const double longest = Quantile(recoveries_, 1);
    const double median = Median(recoveries_);
    if (longest > kMaxRecoverySeconds && wrong_.empty()) wrong_ = "a recovery took too long";
    return {{"schema", 1},
            {"ranks", kRanks},
            {"seconds", lasted},
            {"calls_checked_on_every_rank", calls},
            {"policies", swaps_},
            {"table_versions_of_rank_0", table_versions_},
            {"kills", kills_},
            {"recovered", recoveries_.size()},
            {"recovery_s", {{"median", median}, {"longest", longest}}},
            {"link_changes", link_changes_},
            {"left_behind", left},
            {"processes", processes},
            {"wrong", wrong_ + (log_.empty() ? "" : "\n" + log_)}};
  }

  const double seconds_;
  const double kill_every_;
  std::string folder_;
  MonotonicClock::time_point begun_;
  uint64_t generation_ = 1;
  std::vector<SoakState*> states_;
  std::vector<RankProcess> ranks_;
  std::vector<RankProcess> ended_;
  std::vector<double> recoveries_;
  uint64_t swaps_ = 0;
  uint64_t kills_ = 0;
  uint64_t link_changes_ = 0;
  double table_versions_ = 0;
  std::string wrong_;
  std::string log_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A job of four ranks under policies that change, links that get slower, and kills.");
  double seconds = 60;
  double kill_every = 15;
  std::string json;
  app.add_option("--seconds", seconds, "how long; default 60");
  app.add_option("--kill-every", kill_every, "seconds between two kills; default 15");
  app.add_option("--json", json, "where to write the report; without it to stdout");
  CLI11_PARSE(app, argc, argv);
  const nlohmann::json report = Soak(seconds, kill_every).Run();
  if (json.empty()) {
    fmt::print("{}\n", report.dump(1));
  } else {
    std::ofstream(json) << report.dump(1) << "\n";
  }
  const std::string wrong = report.at("wrong");
  if (!wrong.empty()) fmt::print(stderr, "error: {}\n", wrong);
  return wrong.empty() ? 0 : 1;
}
