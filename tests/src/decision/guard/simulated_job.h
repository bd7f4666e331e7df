// SPDX-License-Identifier: Apache-2.0
// Simulates a training job in virtual time under the shipped guard. The keys have true times that only the
// simulation knows, with noise of several kinds. The leader learns of calls late, and a switch takes some
// calls until it is active. Time, noise and fabrics are drawn from a seed.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "src/decision/guard/guard.h"

namespace dynamiccl::testing {

enum class Noise {
  kNormal,  // 5 %
  kTails,   // and one call in 50 takes up to five times as long
  kMemory,  // AR(1), 0.9 from call to call, 5 %; each place of a step has its own bias
  kBursts,  // every 20 s or so all calls take 1.4 times as long for 300 ms
  kDrift,   // plus 5 % up and down within ten minutes
  kStalls,  // ranks come late, now and then by ten transfers
};
inline constexpr std::array kNoises{Noise::kNormal, Noise::kTails, Noise::kMemory,
                                    Noise::kBursts, Noise::kDrift, Noise::kStalls};
const char* Name(Noise noise);

enum class Timing {
  kAll,      // every call
  kPlanned,  // by IsTimed, and all calls while the guard verifies a change
  kWindows,  // the last two of every 200 calls of the communicator, nothing else
};
const char* Name(Timing timing);

// The true times of one key.
struct TrueKey {
  TableKey key;
  double nccl_ns = 0;
  double exposed = 1;  // share of NCCL's time that the program waits for
  struct Config {
    CollectiveConfig config;
    double predicted = 1;
    double ratio = 1;            // time over NCCL's
    double exposed = 1;          // share of its time that the program waits for
    bool of_nccls_pair = false;  // as in ProbeCandidate
  };
  std::vector<Config> configs;
  double BestRatio() const;
};

struct JobOptions {
  uint64_t seed = 1;
  Noise noise = Noise::kNormal;
  Timing timing = Timing::kAll;
  int keys = 10;
  int calls_per_step = 40;      // over all keys
  double timing_cost = 0;       // share of a timed call that timing it costs
  double exposed = 1;           // share of the transfers that the program waits for
  double transfer_times = 1;    // transfers take so many times as long
  int hidden_keys = 0;          // of the first so many it waits for none
  int waits_late = 0;           // steps later the program waits for a transfer: its host runs ahead
  double steals = 0;            // share that computation beside them takes longer with the policy's choice
  double crowding = 0;          // share that computation beside them takes longer with NCCL's own choice
  int switch_calls = 24;        // from a proposal to the version's first call, in calls of the communicator
  int news_calls = 8;           // a call's time is known so many calls later
  bool trials = true;           // keys have candidates
  double policy_ratio = 0;      // > 0: the policy chooses a config of this ratio on every key
  bool confirmed_best = false;  // an earlier run found the best config of every key
  std::map<uint32_t, CollectiveConfig> confirmed;  // or these, by KeyCode
  double spread = 0.3;                             // how far true ratios lie off the predicted, in logs
  int class_step = 1;                              // size classes from one key to the next
  bool nothing_to_win = false;                     // no config is faster than NCCL's choice
  double one_channel_ratio = 0;                    // > 0: of one channel of Ring/Simple on every key
  double one_tree_ratio = 0;                       // > 0: of one channel of Tree/Simple on every key
  double step_noise = 0;                           // of what the program computes in a step, in logs
  double pace_memory = 0;                          // correlation of that noise from one step to the next
  double wave_noise = 0;                           // the same, correlated by kWaveMemory
  double call_waves = 0;  // such noise of the transfers of hidden keys, which no step feels
  double issued_within =
      1;  // share of a step in which the host issues its calls, before it waits for the device
  // Number of steps by which the host may run ahead of its device. It waits for the device every
  // `waits_every` steps; 0: never.
  double runs_ahead = 0;
  int waits_every = 0;
  int64_t setup_ns = 0;           // what the first use of Tree adds, for its connections
  bool device_times = false;      // the first call of a step says when the device reached it
  int64_t step_ns = 100'000'000;  // without what the program waits for
  bool carries = true;            // GuardOptions::carries
  ExpectedOf expected{};          // GuardOptions::expected
  std::function<bool(const Circumstances&)> began_like{};  // GuardOptions::began_like
  double slowness = 1;  // NCCL's choice takes so many times what its cost model says
  // Keys that are given and not drawn, and the key of each place of a step. Their configs may be tried in the
  // order that they have here.
  std::vector<TrueKey> given;
  std::vector<size_t> places;
};

struct KeyHistory {
  uint64_t calls = 0;
  uint64_t non_default = 0;
  double time_ns = 0;
  double nccl_ns = 0;  // the same calls at NCCL's choice
  // Number of calls of the key when its choice last changed.
  uint64_t changed_at = 0;
};

class SimulatedJob {
 public:
  explicit SimulatedJob(const JobOptions& options);

  void RunSteps(int steps);
  void RunFor(int64_t ns);
  // From now on transfers take `factor` times as long on a share of the keys. With `redraw` other configs are
  // good there.
  void ChangeFabric(double factor, double share_of_keys, bool redraw);
  // From now on given keys have the times of these. The keys and the names of their configs stay the same.
  void ChangeKeys(const std::vector<TrueKey>& keys) { truth_ = keys; }
  // From now on the config in use on every key takes `ratio` times NCCL's time.
  void SpoilChoices(double ratio);
  // From now on every call belongs to a key that is `classes` size classes larger and of which nothing is
  // known. The ratio of a config there differs by `spread` (in logs) from its ratio at the smaller size. The
  // former keys stay at the front of truth() and history().
  void Grow(int classes, double spread);
  // From now on a step has its calls in another order, and one more call.
  void ReorderCalls();
  // From now on the structure LSTM has reported `changes` changes, and recognises this stage.
  void Recognise(uint32_t changes, ZeroStage stage) {
    structure_changes_ = changes;
    stage_ = stage;
  }
  // From now on a step has calls of these keys, in this order.
  void UsePlaces(const std::vector<size_t>& places);
  // From now on the device's clock is `ns` nanoseconds ahead of what it was.
  void ShiftDeviceClock(int64_t ns) { device_shift_ns_ += ns; }
  // Pauses the whole job for `ns` nanoseconds.
  void StandStill(int64_t ns) { now_ns_ += ns; }
  // From now on no step is like the one before it.
  void LoseSteps() { has_steps_ = false; }
  void DelayRanks(double skew_share) { skew_share_ = skew_share; }

  const Guard& guard() const { return guard_; }
  const std::vector<TrueKey>& truth() const { return truth_; }
  const std::vector<KeyHistory>& history() const { return history_; }
  // Returns the choice of the version in use.
  CollectiveConfig ChoiceOf(size_t key) const;
  double RatioOf(size_t key, const CollectiveConfig& config) const;
  int64_t now_ns() const { return now_ns_; }
  struct Switch {
    int64_t at_ns = 0;
    uint64_t call = 0;
    GuardReason reason = GuardReason::kSearch;
  };
  const std::vector<Switch>& switches() const { return switches_; }
  uint64_t calls() const { return calls_; }
  uint64_t timed_calls() const { return timed_calls_; }
  uint64_t trials() const { return trials_; }
  double timing_ns() const { return timing_ns_; }
  double worst_trial_ratio() const { return worst_trial_ratio_; }
  // Returns the loss over the calls so far as a share of NCCL's time, including the cost of timing; below 0
  // it is a gain.
  double LossShare() const;
  double LossNs() const;
  double NcclNs() const;

 private:
  void MakeKeys();
  void DrawKeys();
  // Returns the index in truth_; its size for a key that is none of the job's.
  size_t IndexOf(const TableKey& key) const;
  void DrawRatios(TrueKey& key);
  const TrueKey::Config* Find(size_t key, const CollectiveConfig& config) const;
  // Returns the time that the program needs until the next call.
  double PassedNs(size_t key, const CollectiveConfig& config, double transfer_ns);
  KeyKnowledge Knowledge(const TableKey& key) const;
  void Call(size_t key, int place);
  double NoiseOf(int place);
  int64_t Skew(double transfer_ns);
  bool TimedByPlan(const KeyPlan& entry, bool samples, uint32_t ordinal) const;
  // Moves the host's clock to the time at which the call is issued.
  void Issue();
  // Returns the number of calls by which the host may run ahead.
  size_t CallsAhead() const { return static_cast<size_t>(options_.runs_ahead * options_.calls_per_step); }
  // Gives the call its times.
  void Time(bool by_plan, double transfer_ns, GuardedCall& call);
  // Returns the nanoseconds that setting up the algorithm's connections takes: 0 except for the first use of
  // Tree.
  double SetupNs(Algorithm algorithm);
  void Deliver();
  void Step();

  JobOptions options_;
  std::mt19937_64 random_;
  std::mt19937_64 pace_random_;  // of the program's own pace
  std::vector<TrueKey> truth_;
  std::vector<KeyHistory> history_;
  std::vector<double> factor_;  // of the fabric, by key
  std::vector<size_t> order_;   // key of each place of a step
  std::vector<double> bias_;    // of each place
  Guard guard_;
  // The version in use.
  TablePlan plan_;
  std::vector<KeyPlan> entries_;
  std::vector<uint32_t> ordinals_;
  uint32_t version_ = 1;
  std::optional<Proposal> coming_;
  uint64_t switch_at_ = 0;
  std::deque<std::pair<uint64_t, GuardedCall>> news_;
  std::vector<Switch> switches_;
  int64_t now_ns_ = 0;            // the device's clock
  int64_t device_shift_ns_ = 0;   // that its readers see
  int64_t host_ns_ = 0;           // when the newest call was issued
  std::deque<int64_t> ahead_ns_;  // when the last calls began on the device
  uint64_t steps_ = 0;
  uint64_t calls_ = 0;
  uint64_t timed_calls_ = 0;
  uint64_t trials_ = 0;
  double worst_trial_ratio_ = 0;
  double timing_ns_ = 0;
  double memory_ = 0;  // of AR(1)
  int64_t burst_until_ns_ = 0;
  double skew_share_ = 0.1;
  bool has_steps_ = true;
  uint32_t structure_changes_ = 0;
  ZeroStage stage_ = ZeroStage::kUnknown;
  double pace_ = 1;  // of what the program computes in this step
  double pace_log_ = 0;
  double wave_log_ = 0;
  double call_wave_log_ = 0;
  bool has_trees_ = false;      // the connections of Tree are set up
  double waits_ns_ = 0;         // until the step's end, after its last call
  std::deque<double> late_ns_;  // by call
};

}  // namespace dynamiccl::testing
