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
  kNormal,  // Noise of 5 %.
  kTails,   // In addition, one call in 50 takes up to five times as long.
  kMemory,  // AR(1) noise of 5 %, 0.9 from call to call; each place of a step has its own bias.
  kBursts,  // About every 20 s all calls take 1.4 times as long for 300 ms.
  kDrift,   // In addition, a drift of 5 % up and down within ten minutes.
  kStalls,  // Ranks come late, sometimes by ten transfers.
};
inline constexpr std::array kNoises{Noise::kNormal, Noise::kTails, Noise::kMemory,
                                    Noise::kBursts, Noise::kDrift, Noise::kStalls};
const char* Name(Noise noise);

enum class Timing {
  kAll,      // Every call is timed.
  kPlanned,  // IsTimed decides; all calls are timed while the guard verifies a change.
  kWindows,  // Only the last two of every 200 calls of the communicator are timed.
};
const char* Name(Timing timing);

// The true times of one key.
struct TrueKey {
  TableKey key;
  double nccl_ns = 0;
  double exposed = 1;  // The share of NCCL's time that the program waits for.
  struct Config {
    CollectiveConfig config;
    double predicted = 1;
    double ratio = 1;            // Time divided by NCCL's time.
    double exposed = 1;          // The share of its time that the program waits for.
    bool of_nccls_pair = false;  // As in ProbeCandidate.
  };
  std::vector<Config> configs;
  double BestRatio() const;
};

struct JobOptions {
  uint64_t seed = 1;
  Noise noise = Noise::kNormal;
  Timing timing = Timing::kAll;
  int keys = 10;
  int calls_per_step = 40;      // The number over all keys.
  double timing_cost = 0;       // The share of a timed call that timing costs.
  double exposed = 1;           // The share of the transfers that the program waits for.
  double transfer_times = 1;    // All transfers take this many times as long.
  int hidden_keys = 0;          // The program waits for no call of the first `hidden_keys` keys.
  int waits_late = 0;           // The host runs ahead: it waits for a transfer this many steps later.
  double steals = 0;            // Share by which hidden calls slow computation with the policy's choice.
  double crowding = 0;          // Share by which hidden calls slow computation with NCCL's own choice.
  int switch_calls = 24;        // Calls of the communicator from a proposal to the version's first call.
  int news_calls = 8;           // A call's time is known this many calls later.
  bool trials = true;           // The keys have candidates.
  double policy_ratio = 0;      // If > 0, the policy chooses a config of this ratio on every key.
  bool confirmed_best = false;  // An earlier run found the best config of every key.
  std::map<uint32_t, CollectiveConfig> confirmed;  // Or it found these, by KeyCode.
  double spread = 0.3;                             // Deviation of true ratios from predicted ones, in logs.
  int class_step = 1;                              // The number of size classes from one key to the next.
  bool nothing_to_win = false;                     // No config is faster than NCCL's choice.
  double one_channel_ratio = 0;  // If > 0, the ratio of one channel of Ring/Simple on every key.
  double one_tree_ratio = 0;     // If > 0, the ratio of one channel of Tree/Simple on every key.
  double step_noise = 0;         // Deviation of a step's computation, in logs.
  double pace_memory = 0;        // The correlation of that noise from one step to the next.
  double wave_noise = 0;         // The same noise, correlated by kWaveMemory.
  double call_waves = 0;         // The same noise for transfers of hidden keys, which no step feels.
  double issued_within =
      1;  // The share of a step in which the host issues its calls before it waits for the device.
  // The number of steps by which the host may run ahead of its device. It waits for the device every
  // `waits_every` steps, or never if that is 0.
  double runs_ahead = 0;
  int waits_every = 0;
  int64_t setup_ns = 0;           // The time that the first use of Tree adds for its connections.
  bool device_times = false;      // The first call of a step tells when the device reached it.
  int64_t step_ns = 100'000'000;  // The time of a step without the exposed calls.
  bool carries = true;            // See GuardOptions::carries.
  ExpectedOf expected{};          // See GuardOptions::expected.
  std::function<bool(const Circumstances&)> began_like{};  // See GuardOptions::began_like.
  double slowness = 1;  // NCCL's choice takes this many times the time of its cost model.
  // Keys that are given instead of drawn, and the key of each place of a step. The job may try a key's
  // configs in the given order.
  std::vector<TrueKey> given;
  std::vector<size_t> places;
};

struct KeyHistory {
  uint64_t calls = 0;
  uint64_t non_default = 0;
  double time_ns = 0;
  double nccl_ns = 0;  // The time of the same calls with NCCL's choice.
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
  // From now on every call belongs to a key that is `classes` size classes larger and about which nothing is
  // known. A config's ratio there differs by `spread` (in logs) from its ratio at the smaller size. The
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
  // From now on every step differs from the step before.
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
  std::mt19937_64 pace_random_;  // For the program's own pace.
  std::vector<TrueKey> truth_;
  std::vector<KeyHistory> history_;
  std::vector<double> factor_;  // The factor of the fabric, by key.
  std::vector<size_t> order_;   // The key of each place of a step.
  std::vector<double> bias_;    // The bias of each place.
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
  int64_t now_ns_ = 0;            // On the device's clock.
  int64_t device_shift_ns_ = 0;   // The offset of the clock that readers see.
  int64_t host_ns_ = 0;           // The time at which the newest call was issued.
  std::deque<int64_t> ahead_ns_;  // The times at which the last calls began on the device.
  uint64_t steps_ = 0;
  uint64_t calls_ = 0;
  uint64_t timed_calls_ = 0;
  uint64_t trials_ = 0;
  double worst_trial_ratio_ = 0;
  double timing_ns_ = 0;
  double memory_ = 0;  // The state of AR(1).
  int64_t burst_until_ns_ = 0;
  double skew_share_ = 0.1;
  bool has_steps_ = true;
  uint32_t structure_changes_ = 0;
  ZeroStage stage_ = ZeroStage::kUnknown;
  double pace_ = 1;  // The pace of the computation in this step.
  double pace_log_ = 0;
  double wave_log_ = 0;
  double call_wave_log_ = 0;
  bool has_trees_ = false;      // True once the connections of Tree are set up.
  double waits_ns_ = 0;         // The time from the last call to the step's end.
  std::deque<double> late_ns_;  // By call.
};

}  // namespace dynamiccl::testing
