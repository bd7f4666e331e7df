// SPDX-License-Identifier: Apache-2.0
// Kills or stops a rank of a job in mode adaptive at each point of src/base/job_fail_points.def. Also sends
// control messages late, twice or not at all. Nothing may hang, no file may be torn, and nothing may stay in
// /dev/shm.
//   kill                 the other ranks end within kMaxSeconds, with 0 or an error of NCCL
//   stop for 0.7 s       all ranks end with 0 and right results
//   messages             the same
// With ALL_FAULTS=1 each rank is tested at each point, otherwise only some.
#include <dlfcn.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <set>
#include <sstream>

#include "src/base/job_fail_point.h"
#include "src/decision/site_store/site_store_file.h"
#include "tests/integration/job_fixture.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kRanks = 3;
// Limit for a job that loses a rank. hostccl's time-out is 2 s here; the rest is for a busy machine.
constexpr double kMaxSeconds = 30;
// Limit for a job that loses a fourth of its messages while connections stay open. If the first message of a
// joining rank is lost, this costs 5 s: the leader drops the silent connection, and the rank connects again.
// No call waits for that.
constexpr double kMaxSecondsDisturbed = 100;

bool All() {
  return std::getenv("ALL_FAULTS") != nullptr;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Returns the names of the points in the binary.
std::vector<std::string> Points() {
  void* const object = ::dlopen(DYNAMICCL_TEST_PRELOAD, RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) return {};
  const auto list = reinterpret_cast<const char* (*)()>(::dlsym(object, "dynamiccl_fail_points"));
  return list == nullptr ? std::vector<std::string>() : Lines(list());
}

std::set<std::string> SharedNames() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator("/dev/shm")) names.insert(entry.path().filename());
  return names;
}

class FailPoints : public JobTest {
 protected:
  // Runs a job whose policy file changes after its first decisions.
  JobResult RunWith(const std::map<int, Environment>& of_ranks, double most_seconds = kMaxSeconds) {
    const std::string path = PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple);
    const std::string decisions = folder_ + "/decisions.";
    for (int rank = 0; rank < kRanks; ++rank) fs::remove(decisions + std::to_string(rank));
    JobOptions options{.n_ranks = kRanks, .rounds = "1", .extras = {"stalls"}};
    options.environment = {
        {"DYNAMICCL_MODE", "adaptive"},          {"DYNAMICCL_POLICY", path},
        {"DYNAMICCL_TRACE", "%d/%r.ctrace"},     {"DYNAMICCL_METRICS", "%d/%r.prom"},
        {"DYNAMICCL_SITE_STORE", "%d/store"},    {"DYNAMICCL_DECISION_LOG", folder_ + "/decisions.%r"},
        {"DYNAMICCL_ATTEST_TIMEOUT_MS", "1500"}, {"HOSTCCL_TIMEOUT_MS", "2000"},
        {"JOB_GOES_ON", File("go_on", "")}};
    options.seconds = static_cast<unsigned>(most_seconds);
    options.environment_of = of_ranks;
    auto running = std::async(std::launch::async, [this, options] { return Run(options); });
    ChangePolicyOf(path, decisions + "0", running);
    fs::remove(folder_ + "/go_on");
    return running.get();
  }

  void ExpectNothingTorn(const JobResult& job, const std::string& what) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::string trace = job.folder + "/" + std::to_string(rank) + ".ctrace";
      if (!fs::exists(trace) || fs::file_size(trace) == 0) continue;
      const auto read = ReadTrace(trace);
      // A rank that was killed while it created the file has left the file's beginning.
      const bool begun = !read && of_killed_.contains(rank);
      EXPECT_TRUE(read || begun) << what << ": " << (read ? "" : read.error().message);
    }
    const auto store = ReadSiteStore(job.folder + "/store");
    EXPECT_TRUE(store) << what << ": " << (store ? "" : store.error().message);
    EXPECT_EQ(SharedNames(), shared_before_) << what;
  }

  // Requires that a rank was killed and that the others ended by themselves.
  void ExpectEnd(const JobResult& job, int lost, const std::string& what) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const int code = job.exit_codes[static_cast<size_t>(rank)];
      if (rank == lost && code == 128 + SIGKILL) continue;
      EXPECT_TRUE(code == 0 || code == 4)
          << what << ": rank " << rank << " ended with " << code << " after " << job.seconds << " s\n"
          << job.output[static_cast<size_t>(rank)];
    }
  }

  void KillAt(const std::string& point, int rank) {
    const std::string what = point + ", rank " + std::to_string(rank) + " is killed";
    of_killed_ = {rank};
    const JobResult job = RunWith({{rank, {{"FAIL_AT", point + ":kill"}}}});
    ExpectEnd(job, rank, what);
    ExpectNothingTorn(job, what);
    killed_ += job.exit_codes[static_cast<size_t>(rank)] == 128 + SIGKILL ? 1 : 0;
    fs::remove_all(job.folder);
  }

  void StopAt(const std::string& point, int rank) {
    const std::string what = point + ", rank " + std::to_string(rank) + " is stopped";
    of_killed_.clear();
    const JobResult job = RunWith({{rank, {{"FAIL_AT", point + ":stop"}, {"HOSTCCL_TIMEOUT_MS", "20000"}}},
                                   {(rank + 1) % kRanks, {{"HOSTCCL_TIMEOUT_MS", "20000"}}},
                                   {(rank + 2) % kRanks, {{"HOSTCCL_TIMEOUT_MS", "20000"}}}});
    EXPECT_TRUE(job.ok()) << what << ": " << job.exit_codes[0] << " " << job.exit_codes[1] << " "
                          << job.exit_codes[2] << " after " << job.seconds << " s\n"
                          << job.AllOutput();
    ExpectNothingTorn(job, what);
    fs::remove_all(job.folder);
  }

  const std::set<std::string> shared_before_ = SharedNames();
  std::set<int> of_killed_;
  int killed_ = 0;

 private:
  void ChangePolicyOf(const std::string& path, const std::string& log, std::future<JobResult>& running) {
    const auto ended = [&](int ms) {
      return running.wait_for(std::chrono::milliseconds(ms)) == std::future_status::ready;
    };
    const auto logged = [&](const char* what) {
      std::ifstream file(log, std::ios::binary);
      return !LinesWith(std::string(std::istreambuf_iterator<char>(file), {}), what).empty();
    };
    const auto begun = std::chrono::steady_clock::now();
    const auto waits = [&](double seconds) {
      return !ended(10) && std::chrono::steady_clock::now() - begun < std::chrono::duration<double>(seconds);
    };
    while (waits(5) && !logged(" v1")) continue;
    if (ended(0)) return;
    fs::rename(PolicyFile("next", Algorithm::kRing, Protocol::kLL), path);
    // If the ranks do not agree on the new policy, the job ends without it.
    while (waits(8) && !logged("Ring/LL")) continue;
  }
};

TEST_F(FailPoints, EachIsPassed) {
  const std::vector<std::string> points = Points();
  ASSERT_GT(points.size(), 20u);
  const std::string note = folder_ + "/passed";
  std::map<int, Environment> all;
  for (int rank = 0; rank < kRanks; ++rank) all[rank] = {{"FAIL_NOTE", note}};
  const JobResult job = RunWith(all);
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  std::ifstream file(note, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::vector<std::string> lines = Lines(text);
  const std::set<std::string> passed(lines.begin(), lines.end());
  for (const std::string& point : points) {
    // A job writes its site store once the guard has confirmed a choice, which takes minutes.
    // SiteStoreThatIsWritten below tests these points.
    if (point.starts_with("store.")) continue;
    EXPECT_TRUE(passed.contains(point)) << point << " was never passed";
  }
  ExpectNothingTorn(job, "nothing");
}

TEST_F(FailPoints, ARankMayBeKilledAtEach) {
  const std::vector<std::string> points = Points();
  const std::set<std::string> some = {"trace.ring",   "attest.pledged", "leader.prepare",
                                      "switch.armed", "leader.verdict", "switch.committed"};
  int tried = 0;
  for (const std::string& point : points) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const bool of_leader = point.starts_with("leader.") || point.starts_with("server.");
      if (!All() && (!some.contains(point) || rank != (of_leader ? 0 : 1))) continue;
      KillAt(point, rank);
      ++tried;
    }
  }
  std::printf("%d jobs, of which %d lost a rank\n", tried, killed_);
  EXPECT_GT(killed_, 0);
}

TEST_F(FailPoints, ARankMayBeStoppedAtEach) {
  const std::set<std::string> some = {"attest.begin", "switch.armed", "leader.verdict"};
  int tried = 0;
  for (const std::string& point : Points()) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const bool of_leader = point.starts_with("leader.") || point.starts_with("server.");
      if (!All() && (!some.contains(point) || rank != (of_leader ? 0 : 1))) continue;
      StopAt(point, rank);
      ++tried;
    }
  }
  std::printf("%d jobs with a rank that was stopped\n", tried);
}

// The other ranks have their verdict and wait for this rank inside the library's next call. The rank must not
// wait until the leader drops its silent connections, because the others would time out before.
TEST_F(FailPoints, LostPledgesDelayACallForLessThanTheTimeOutOfTheLibrary) {
  const Environment patient = {{"HOSTCCL_TIMEOUT_MS", "9000"}};
  Environment loses = patient;
  loses["FAIL_PLEDGES"] = "3";
  const JobResult job = RunWith({{0, patient}, {1, loses}, {2, patient}});
  EXPECT_TRUE(job.ok()) << job.exit_codes[0] << " " << job.exit_codes[1] << " " << job.exit_codes[2]
                        << " after " << job.seconds << " s\n"
                        << job.AllOutput();
  ExpectNothingTorn(job, "lost pledges");
  fs::remove_all(job.folder);
}

int g_kill_at = -1;

// If the process is killed at any point, the file must be either the old or the new one.
TEST(SiteStoreThatIsWritten, IsWholeWhereverTheProcessIsKilled) {
  std::string folder = fs::temp_directory_path() / "dynamiccl-store-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/store";
  const auto add = [&](int64_t bytes_index) {
    SiteStore learnt;
    SiteKey key;
    key.key.size_class.index = static_cast<uint8_t>(bytes_index);
    learnt.Learn(key, {.pairs = 9, .runs = 1, .confirmed_s = 1'700'000'000});
    return AddToSiteStore(path, learnt, 1'700'000'000, 1'000'000'000);
  };
  ASSERT_TRUE(add(10));
  int killed = 0;
  for (const JobFailPoint point :
       {JobFailPoint::kStoreLocked, JobFailPoint::kStoreWritten, JobFailPoint::kStoreRenamed}) {
    const pid_t child = ::fork();
    if (child == 0) {
      g_kill_at = static_cast<int>(point);
      g_act_at_fail_point.store([](JobFailPoint passed) {
        if (static_cast<int>(passed) == g_kill_at) ::raise(SIGKILL);
      });
      (void)add(20 + static_cast<int>(point) % 5);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    killed += WIFSIGNALED(status) ? 1 : 0;
    const auto store = ReadSiteStore(path);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_GE(store->entries().size(), 1u);
    // A later process can still write the store.
    EXPECT_TRUE(add(30));
  }
  EXPECT_EQ(killed, 3);
  fs::remove_all(folder);
}

class DisturbedMessages : public FailPoints, public ::testing::WithParamInterface<const char*> {};

TEST_P(DisturbedMessages, LeaveTheResultsRight) {
  const int seeds = All() ? 10 : 1;
  for (int seed = 0; seed < seeds; ++seed) {
    std::map<int, Environment> all;
    for (int rank = 0; rank < kRanks; ++rank)
      all[rank] = {{"FAIL_MESSAGES", GetParam()},
                   {"FAIL_SEED", std::to_string(seed * kRanks + rank)},
                   {"HOSTCCL_TIMEOUT_MS", "20000"}};
    const JobResult job = RunWith(all, kMaxSecondsDisturbed);
    EXPECT_TRUE(job.ok()) << GetParam() << ", seed " << seed << ": " << job.exit_codes[0] << " "
                          << job.exit_codes[1] << " " << job.exit_codes[2] << " after " << job.seconds
                          << " s\n"
                          << job.AllOutput();
    ExpectNothingTorn(job, GetParam());
    fs::remove_all(job.folder);
  }
}

INSTANTIATE_TEST_SUITE_P(Messages, DisturbedMessages, ::testing::Values("late", "twice", "lost", "cut"),
                         [](const auto& what) { return std::string(what.param); });

}  // namespace
}  // namespace dynamiccl::testing
