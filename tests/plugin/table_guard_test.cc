// SPDX-License-Identifier: Apache-2.0
// Tests what the guard of a communicator offers, from decisions and times that arrive as in a job.
#include "plugin/runtime/table_guard.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "plugin/runtime/switch_leadership.h"
#include "plugin/times/times_report.h"
#include "src/base/clock.h"
#include "src/base/job_fail_point.h"
#include "src/base/log.h"
#include "src/base/unique_fd.h"
#include "src/decision/guard/carried_choices.h"
#include "src/decision/guard/planned_table.h"
#include "src/decision/guard/table_plan.h"
#include "src/decision/site_store/site_store_file.h"
#include "tests/support/sample_policy.h"
#include "traces/format/trace_calls.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

constexpr CollectiveConfig kPolicyChoice{Algorithm::kTree, Protocol::kLL, 2};
constexpr int64_t kNccl = 1'000'000;
constexpr int kRanks = 2;
constexpr TableKey kKey{Collective::kAllReduce, {80}, Role::kUnknown};

// A job of two ranks. The first is the leader's. A proposed version is committed at once.
class GuardedJob {
 public:
  explicit GuardedJob(std::shared_ptr<const SiteStore> store = nullptr, Recorder* recorder = nullptr,
                      uint32_t nccl_version = 0, std::shared_ptr<const Policy> policy = nullptr) {
    GuardSubject subject{{1}, kRanks, feed_};
    subject.input.fabric = {kRanks, 1, 8, {1, 20}, {5, 20}};
    subject.input.constants = NcclHopperConstants(1);
    subject.store = std::move(store);
    subject.place.n_ranks = kRanks;
    subject.place.nccl_version = nccl_version;
    subject.recorder = recorder;
    subject.number_in_trace = [] { return 5; };
    guard_ = std::make_shared<TableGuard>(std::move(subject), std::move(policy), totals_);
  }

  // Makes n calls. A call with the policy's choice takes `ratio` times NCCL's time.
  void Calls(int n, double ratio) {
    for (; n > 0; --n) {
      const bool timed = table_.TimesNext(kKey, call_);
      const PlannedCall planned = table_.At(kKey, policy_choice_, call_);
      DecidedCall decided{call_, kKey, planned.use, planned.config, policy_choice_};
      decided.allowed = NcclConfigs(Collective::kAllReduce);
      decided.version = version_;
      decided.timed = timed;
      decided.issued_ns = now_ns_;
      feed_->Push(decided);
      const bool is_trial = planned.use == CallUse::kTrial;
      if (is_trial && first_trial_ns < 0) first_trial_ns = now_ns_;
      trials += is_trial ? 1 : 0;
      if (is_trial) tried.push_back(planned.config);
      const double of_choice = planned.config.leaves_nccl_alone() ? 1 : ratio;
      const double factor = is_trial ? ratio_of_trials_ : of_choice;
      const auto transfer_ns = static_cast<int64_t>(kNccl * factor);
      for (int reporter = 0; timed && reporter < kRanks; ++reporter) {
        const CallTime time{call_, kKey.collective, transfer_ns + reporter * 1000};
        guard_->AddTimes(reporter, std::span(&time, 1));
      }
      ++call_;
      now_ns_ += 9'000'000 + transfer_ns;  // the program waits for the call
      if (auto offer = guard_->Tick(now_ns_)) Take(std::move(*offer));
    }
  }
  void Refuse() { refuse_ = true; }
  // Makes the policy leave the key to NCCL.
  void LeaveNcclAlone() { policy_choice_ = kLeaveNcclAlone; }
  // From now on, a call that uses an arm takes `ratio` times NCCL's time.
  void TrialsTake(double ratio) { ratio_of_trials_ = ratio; }

  TableGuard& guard() { return *guard_; }
  GuardTotals totals_;
  std::vector<SwitchReason> offers;
  std::vector<int64_t> offers_at_ns;
  int64_t first_trial_ns = -1;
  int trials = 0;                       // number of calls that used an arm
  std::vector<CollectiveConfig> tried;  // the configs of these calls
  CollectiveConfig choice() const { return table_.ChoiceOf(kKey, policy_choice_); }
  uint64_t call() const { return call_; }

 private:
  void Take(TableOffer offer) {
    offers.push_back(offer.reason);
    offers_at_ns.push_back(now_ns_);
    if (refuse_) return offer.ended({SwitchOutcome::End::kRankPassed, 0, 1, true});
    auto plan = DecodePlan(offer.plan);
    ASSERT_TRUE(plan);
    table_ = PlannedTable(std::move(*plan));
    offer.ended({SwitchOutcome::End::kCommitted, ++version_, -1, true});
  }

  std::shared_ptr<CallFeed> feed_ = std::make_shared<CallFeed>();
  std::shared_ptr<TableGuard> guard_;
  PlannedTable table_{TablePlan{}};
  uint32_t version_ = 1;
  uint64_t call_ = 0;
  int64_t now_ns_ = 0;
  bool refuse_ = false;
  CollectiveConfig policy_choice_ = kPolicyChoice;
  double ratio_of_trials_ = 1;
};

// Adds `count` times. Returns after which of them the report woke its reader.
std::vector<size_t> WakesOf(TimesReport& report, const int& wakes, size_t count) {
  std::vector<size_t> woken;
  for (size_t added = 1; added <= count; ++added) {
    const int before = wakes;
    report.Add({added, Collective::kAllReduce, 1000});
    if (wakes != before) woken.push_back(added);
  }
  return woken;
}

TEST(TimesReport, WakesItsReaderOnceUntilTheTimesAreTaken) {
  int wakes = 0;
  TimesReport report([&] { ++wakes; });
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(WakesOf(report, wakes, 5), std::vector<size_t>{1});
    EXPECT_EQ(report.Drain().size(), 5u);
  }
}

// The connection to the leader has broken for good, and the job continues for weeks.
TEST(TimesReport, KeepsAFewTimesWhereNobodyTakesThem) {
  int wakes = 0;
  TimesReport report([&] { ++wakes; });
  EXPECT_EQ(WakesOf(report, wakes, 100'000), std::vector<size_t>{1});
  EXPECT_EQ(report.Drain().size(), kMostTimesKept);
  EXPECT_EQ(WakesOf(report, wakes, kMostTimesTogether), std::vector{kMostTimesTogether});
}

TEST(TimesReport, SendsMoreTimesTogetherTheMoreWereSent) {
  int wakes = 0;
  TimesReport report([&] { ++wakes; });
  const std::vector<std::pair<size_t, size_t>> expected{{0, 1},
                                                        {kSingleTimes, kFirstTimesTogether},
                                                        {kFirstTimes - 5, kFirstTimesTogether},
                                                        {kFirstTimes, kFirstTimes / 16},
                                                        {800, 50},
                                                        {16 * kMostTimesTogether, kMostTimesTogether},
                                                        {100'000, kMostTimesTogether}};
  size_t sent = 0;
  for (const auto& [before, together] : expected) {
    ASSERT_LE(sent, before);
    while (sent < before) report.Add({sent++, Collective::kAllReduce, 1000});
    (void)report.Drain();
    EXPECT_EQ(WakesOf(report, wakes, together), std::vector{together}) << before << " times sent before";
    sent += together;
  }
}

TEST(TableGuard, TakesBackAPolicyThatIsTenTimesSlower) {
  GuardedJob job;
  job.Calls(30, 10);
  // A search may begin after the revocation, so only the first offer is checked.
  ASSERT_FALSE(job.offers.empty());
  EXPECT_EQ(job.offers[0], SwitchReason::kRevocation);
  EXPECT_TRUE(job.choice().leaves_nccl_alone());
  EXPECT_EQ(job.totals_.versions[static_cast<size_t>(GuardReason::kSlowerThanNccl)], 1u);
  EXPECT_GT(job.totals_.guarded_ns[static_cast<size_t>(Criticality::kUnknown)], 0u);
}

std::vector<std::string> g_lines;

// `dynamiccl report` reads the reasons of versions from these lines (VersionReasons in
// tools/report/guard_account.cc).
TEST(TableGuard, SaysWhyAVersionCameAsTheReportReadsIt) {
  g_lines.clear();
  SetLogSink([](LogLevel, std::string_view line) { g_lines.emplace_back(line); });
  SetLogLevel(LogLevel::kInfo);
  GuardedJob job;
  job.Calls(30, 10);
  SetLogLevel(LogLevel::kWarn);
  SetLogSink(nullptr);
  const auto is_version_line = [](const std::string& line) {
    return line.starts_with("table v2: slower than NCCL; 1 keys, 0 trials");
  };
  EXPECT_EQ(std::count_if(g_lines.begin(), g_lines.end(), is_version_line), 1);
}

TEST(TableGuard, OffersAgainWhatTheRanksDidNotAgreeTo) {
  GuardedJob job;
  job.Refuse();
  job.Calls(40, 10);
  EXPECT_GT(job.offers.size(), 3u);
  EXPECT_EQ(job.totals_.failed, job.offers.size());
  EXPECT_EQ(job.choice(), kPolicyChoice);
}

// The arm is used soon after the version that began the trials. So young a version must not delay the answer.
TEST(TableGuard, TakesBackAnArmThatIsManyTimesTooSlowAfterItsFirstUse) {
  GuardedJob job;
  job.TrialsTake(20);
  job.Calls(120, 0.9);
  ASSERT_GE(job.first_trial_ns, 0) << "no arm was used";
  const auto after = std::find_if(job.offers_at_ns.begin(), job.offers_at_ns.end(),
                                  [&](int64_t at_ns) { return at_ns > job.first_trial_ns; });
  ASSERT_NE(after, job.offers_at_ns.end());
  EXPECT_EQ(job.offers.at(static_cast<size_t>(after - job.offers_at_ns.begin())), SwitchReason::kRevocation);
  EXPECT_LT(*after - job.first_trial_ns, 200'000'000) << "nanoseconds; three steps take 60 ms";
}

TEST(TableGuard, LeavesAGoodPolicyAlone) {
  GuardedJob job;
  job.Calls(60, 0.5);
  EXPECT_EQ(job.choice(), kPolicyChoice);
  EXPECT_EQ(job.totals_.lost, 0u);
}

TEST(TableGuard, ForgetsWhatItKnewOfAnotherPolicysChoices) {
  GuardedJob job;
  job.Calls(30, 10);
  ASSERT_TRUE(job.choice().leaves_nccl_alone());
  job.guard().Restart(nullptr, 3);
  const size_t offers = job.offers.size();
  job.Calls(30, 10);  // decided by the version before the restart
  EXPECT_EQ(job.offers.size(), offers);
}

TEST(TableGuard, UsesWhatTheStoreKnowsBeforeTheFirstCall) {
  constexpr CollectiveConfig kKnown{Algorithm::kRing, Protocol::kLL, 4};
  SitePlace place;
  place.n_ranks = kRanks;
  auto store = std::make_shared<SiteStore>();
  const int64_t now_s = RealtimeNanoseconds() / 1'000'000'000;
  store->Learn({place, kKey, Regime::kNormal}, {kKnown, -1000, 9, 1, now_s});
  place.n_nodes = 2;
  store->Learn({place, kKey, Regime::kNormal}, {kPolicyChoice, -1000, 9, 1, now_s});
  GuardedJob job(store);
  const auto offer = job.guard().Tick(1);
  ASSERT_TRUE(offer);
  const auto plan = DecodePlan(offer->plan);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->keys.size(), 1u + 2 * kCarriedClasses + (kRoles - 2)) << "with the sizes near it";
  EXPECT_EQ(KeyCode(plan->keys[0].key), KeyCode(kKey));
  for (const KeyPlan& entry : plan->keys) {
    EXPECT_EQ(entry.choice, kKnown) << "of this place alone";
    EXPECT_TRUE(entry.arms.empty());
  }
}

TEST(TableGuard, WhatIsKeptIsNotHandedOutAgain) {
  GuardedJob job;
  job.Calls(3000, 0.5);
  const SiteStore learnt = job.guard().UnsavedResults(1000);
  ASSERT_EQ(learnt.entries().size(), 1u) << "trials have ended";
  EXPECT_EQ(learnt.entries().begin()->second.config, job.choice());
  job.guard().MarkSaved(learnt);
  EXPECT_TRUE(job.guard().UnsavedResults(1001).empty());
}

std::atomic<bool> g_store_hangs{false};
std::atomic<bool> g_store_renamed{false};

// The store hangs if the server of the file system is gone. The leader's thread must still send the verdicts
// that calls wait for.
TEST(TableGuard, TheLeaderDoesNotWaitForAStoreThatHangs) {
  const std::string path = ::testing::TempDir() + "/hangs-" + std::to_string(::getpid()) + ".dcsite";
  GuardedJob job;
  job.Calls(3000, 0.5);
  SwitchLeadership leadership(
      std::make_unique<PolicyWatch>("/no/such/policy", Sha256Digest{1}),
      [](const ControlToken&) { return std::optional<uint64_t>(3000); }, {}, path);
  std::vector<UniqueFd> ends;
  for (int rank = 0; rank < kRanks; ++rank) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    for (const int end : pair) ends.emplace_back(end);
    ASSERT_TRUE(leadership.Join(pair[0], {{1}, {1}, rank, kRanks}, {}));
  }
  leadership.Guard(job.guard().shared_from_this());
  g_store_hangs = true;
  g_store_renamed = false;
  g_act_at_fail_point = [](JobFailPoint point) {
    if (point == JobFailPoint::kStoreLocked) g_store_hangs.wait(true);
    if (point != JobFailPoint::kStoreRenamed) return;
    g_store_renamed = true;
    g_store_renamed.notify_all();
  };
  constexpr int64_t kSecond = 1'000'000'000;
  for (int64_t at = 1; at < 5; ++at) leadership.Tick(MonotonicNanoseconds() + at * 100 * kSecond);
  leadership.SaveResults();
  EXPECT_FALSE(job.guard().UnsavedResults(1000).empty());
  g_store_hangs = false;
  g_store_hangs.notify_all();
  g_store_renamed.wait(false);
  // The store's thread still runs a few instructions between renaming the file and marking the write as done.
  const int64_t deadline = MonotonicNanoseconds() + 20 * kSecond;
  for (int64_t at = 5; !job.guard().UnsavedResults(1000).empty(); ++at) {
    ASSERT_LT(MonotonicNanoseconds(), deadline);
    leadership.Tick(MonotonicNanoseconds() + at * kSecond);
    std::this_thread::yield();
  }
  g_act_at_fail_point = nullptr;
  const auto store = ReadSiteStore(path);
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_EQ(store->entries().size(), 1u);
  EXPECT_EQ(store->entries().begin()->second.runs, 1u) << "written once";
  for (const char* of : {"", ".lock"}) std::filesystem::remove(path + of);
}

// A communicator ends while the store hangs. The job's other communicators also wait for this leader.
TEST(TableGuard, TheLeaderDoesNotWaitForAStoreThatHangsAtACommunicatorsEnd) {
  const std::string path = ::testing::TempDir() + "/ends-" + std::to_string(::getpid()) + ".dcsite";
  GuardedJob job;
  job.Calls(3000, 0.5);
  std::optional<uint64_t> own_calls = 3000;
  SwitchLeadership leadership(
      std::make_unique<PolicyWatch>("/no/such/policy", Sha256Digest{1}),
      [&](const ControlToken&) { return own_calls; }, {}, path);
  constexpr int kFirstFd = 1'000'000;  // no message is sent to these descriptors
  for (int rank = 0; rank < kRanks; ++rank)
    ASSERT_TRUE(leadership.Join(kFirstFd + rank, {{1}, {1}, rank, kRanks}, {}));
  leadership.Tick(1);  // saves the job for the first time, with nothing learnt yet
  leadership.Guard(job.guard().shared_from_this());
  leadership.Tick(2);
  g_store_hangs = true;
  g_act_at_fail_point = [](JobFailPoint point) {
    if (point == JobFailPoint::kStoreLocked) g_store_hangs.wait(true);
  };
  for (int rank = 0; rank < kRanks; ++rank) leadership.ConnectionLost(kFirstFd + rank);
  own_calls.reset();
  leadership.Tick(MonotonicNanoseconds());
  EXPECT_TRUE(ReadSiteStore(path)->entries().empty());
  g_store_hangs = false;
  g_store_hangs.notify_all();
  leadership.SaveResults();
  g_act_at_fail_point = nullptr;
  EXPECT_EQ(ReadSiteStore(path)->entries().size(), 1u);
  for (const char* of : {"", ".lock"}) std::filesystem::remove(path + of);
}

// When the communicator ends, the disk may be full, or the folder may not be mounted yet.
TEST(TableGuard, WhatAnEndedCommunicatorLearntIsKeptUntilTheStoreTakesIt) {
  const std::string folder = ::testing::TempDir() + "/late-" + std::to_string(::getpid());
  GuardedJob job;
  job.Calls(3000, 0.5);
  std::optional<uint64_t> own_calls = 3000;
  SwitchLeadership leadership(
      std::make_unique<PolicyWatch>("/no/such/policy", Sha256Digest{1}),
      [&](const ControlToken&) { return own_calls; }, {}, folder + "/site.dcsite");
  constexpr int kFirstFd = 1'000'000;  // no message is sent to these descriptors
  for (int rank = 0; rank < kRanks; ++rank)
    ASSERT_TRUE(leadership.Join(kFirstFd + rank, {{1}, {1}, rank, kRanks}, {}));
  leadership.Guard(job.guard().shared_from_this());
  leadership.Tick(1);
  for (int rank = 0; rank < kRanks; ++rank) leadership.ConnectionLost(kFirstFd + rank);
  own_calls.reset();
  leadership.Tick(MonotonicNanoseconds());
  leadership.SaveResults();
  ASSERT_FALSE(std::filesystem::exists(folder));
  std::filesystem::create_directory(folder);
  leadership.SaveResults();
  EXPECT_EQ(ReadSiteStore(folder + "/site.dcsite")->entries().size(), 1u);
  std::filesystem::remove_all(folder);
}

// Returns what three jobs learn in three different places. In each job, every trial takes a fifth of NCCL's
// time.
std::shared_ptr<const SiteStore> FoundElsewhere() {
  auto store = std::make_shared<SiteStore>();
  const int64_t now_s = RealtimeNanoseconds() / 1'000'000'000;
  for (const uint32_t version : {1, 2, 3}) {
    GuardedJob job(nullptr, nullptr, version);
    job.LeaveNcclAlone();
    job.TrialsTake(0.2);
    job.Calls(400, 1);
    const SiteStore learnt = job.guard().UnsavedResults(now_s);
    EXPECT_FALSE(learnt.findings().empty());
    store->Learn(learnt);
    job.guard().MarkSaved(learnt);
    EXPECT_TRUE(job.guard().UnsavedResults(now_s + 1).empty());
  }
  return store;
}

// With another NCCL release no earlier choice counts as confirmed. Still, a job in otherwise equal
// circumstances first tries what was good there.
TEST(TableGuard, TriesFirstWhatWasGoodInAnotherPlace) {
  const auto store = FoundElsewhere();
  constexpr int kCalls = 52;
  GuardedJob told(store, nullptr, 9), untold(nullptr, nullptr, 9);
  for (GuardedJob* job : {&told, &untold}) {
    job->LeaveNcclAlone();
    job->TrialsTake(0.2);
    job->Calls(kCalls, 1);
  }
  EXPECT_GE(told.trials, 2 * untold.trials);
  EXPECT_GT(told.trials, kCalls / 5);
}

TEST(TableGuard, LeavesWhatWasGoodInAnotherPlaceButIsBadHere) {
  for (const double ratio : {1.3, 5.0}) {
    GuardedJob job(FoundElsewhere(), nullptr, 9);
    job.LeaveNcclAlone();
    job.TrialsTake(ratio);
    job.Calls(1000, 1);
    EXPECT_TRUE(job.choice().leaves_nccl_alone()) << ratio;
    EXPECT_LT(job.trials, 100) << ratio;
  }
}

// Returns a policy that leaves all calls to NCCL. Its experiments elsewhere found that steps with this config
// take half the time.
std::shared_ptr<const Policy> ExpectsOf(Algorithm algorithm, Protocol protocol, ChannelCount channels) {
  return test::MakePolicyThatExpects({algorithm, protocol, channels, -1, 0.2});
}

// Without a site store, the job first tries what the policy expects to be good.
TEST(TableGuard, TriesFirstWhatThePolicyExpectsToBeGood) {
  constexpr int kCalls = 52;
  const auto policy = ExpectsOf(Algorithm::kRing, Protocol::kSimple, ChannelCount::kOne);
  GuardedJob told(nullptr, nullptr, 9, policy), untold(nullptr, nullptr, 9);
  for (GuardedJob* job : {&told, &untold}) {
    job->LeaveNcclAlone();
    job->TrialsTake(0.2);
    job->Calls(kCalls, 1);
  }
  EXPECT_GE(told.trials, 2 * untold.trials);
  EXPECT_GT(told.trials, kCalls / 5);
  ASSERT_FALSE(told.tried.empty());
  EXPECT_EQ(told.tried[0], (CollectiveConfig{Algorithm::kRing, Protocol::kSimple, 1}));
}

TEST(TableGuard, LeavesWhatThePolicyExpectedToBeGoodButIsBadHere) {
  const auto policy = ExpectsOf(Algorithm::kRing, Protocol::kSimple, ChannelCount::kOne);
  for (const double ratio : {1.3, 5.0}) {
    GuardedJob job(nullptr, nullptr, 9, policy);
    job.LeaveNcclAlone();
    job.TrialsTake(ratio);
    job.Calls(1000, 1);
    EXPECT_TRUE(job.choice().leaves_nccl_alone()) << ratio;
    EXPECT_LT(job.trials, 100) << ratio;
  }
}

TEST(TableGuard, RecordsWhatTheProgramWaitsFor) {
  const std::string path = testing::TempDir() + "/table_guard_waited.ctrace";
  auto recorder = Recorder::Open({.path = path, .library = ""});
  ASSERT_TRUE(recorder) << recorder.error().message;
  {
    GuardedJob job(nullptr, recorder->get());
    job.Calls(3000, 0.5);  // the program waits for every call
    EXPECT_GT(job.totals_.guarded_ns[static_cast<size_t>(Criticality::kExposed)], 0u);
  }
  (*recorder)->Close();
  const auto trace = ReadTrace(path);
  ASSERT_TRUE(trace) << trace.error().message;
  const SectionCalls calls = CallsOf(trace->sections.at(0));
  ASSERT_FALSE(calls.waited_shares.empty());
  for (const WaitedShareView& waited : calls.waited_shares) {
    EXPECT_EQ(waited.communicator, 5u);
    EXPECT_EQ(waited.bytes, LowerBound(kKey.size_class));
    EXPECT_NEAR(waited.share, 1, 0.15);
  }
  EXPECT_LT(calls.waited_shares.size(), 5u) << "only what is new is recorded";
  std::filesystem::remove(path);
}

// Times rise from 0.5 to 0.9 of NCCL's. All calls must be timed until the change is verified.
TEST(TableGuard, AsksForAllTimesWhileAChangeIsVerified) {
  GuardedJob job;
  job.Calls(300, 0.5);
  const uint64_t before = job.guard().all_timed_until();
  job.Calls(600, 0.9);
  EXPECT_GT(job.guard().all_timed_until(), std::max<uint64_t>(before, 300));
}

}  // namespace
}  // namespace dynamiccl
