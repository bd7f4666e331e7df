// SPDX-License-Identifier: Apache-2.0
// The experiment of one communicator on whole training steps. It cuts the communicator's calls into steps,
// notes which config each key used in a step, and lets step_regression.h estimate how the configs change the
// time of a step.
//
// A step is a fixed number of the communicator's calls, counted from an origin, because a table plan draws
// the config of a key by such steps (table_plan.h). The origin may lie anywhere in the program's own step,
// since calls repeat with that period.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "src/decision/guard/guarded_call.h"
#include "src/decision/guard/step_regression.h"

namespace dynamiccl {

// Cuts the calls of a communicator into steps of `calls` calls each. The first step begins with the call
// number `origin`.
struct StepGrid {
  uint64_t origin = 0;
  uint32_t calls = 0;  // 0: steps are not known
  // Sum of StepPeriod::DigestOf over the calls of a step, without their roles; 0: not known.
  uint64_t digest = 0;

  friend bool operator==(const StepGrid&, const StepGrid&) = default;
};

// The measured effect of a config of one key on the time of a step.
struct SeenConfig {
  StepEffect effect;     // relative to another config of the key
  uint32_t steps = 0;    // steps that used it
  uint32_t blocks = 0;   // number of blocks in which at least one step used it
  double first_off = 0;  // log of the first step that used the config over the mean step's time
  // The extra time of those steps of the block under way that used the config, in usual steps, compared with
  // the block's steps without arms. Each step adds at most kMaxOfOneStep.
  double block_excess = 0;
};

// A single step, which may have been a stall, does not make block_excess larger than this.
inline constexpr double kMaxOfOneStep = 0.3;

// Stands in place of a KeyCode for the effects of common arms. It is above every KeyCode.
inline constexpr uint32_t kAllKeys = 1u << 20;

// Owned by the communicator's Guard, on the leader's control thread. A step counts only if it is complete, is
// directly followed by another one and has as many decided calls as the step before. In it, each key must
// have used one config; with common arms, all keys together must have used at most one arm. Other steps are
// left out, so evaluation steps and changes of the table do not distort the estimates.
class StepExperiment {
 public:
  // Number of steps in a block (step_regression.h).
  static constexpr size_t kStepsOfBlock = 12;

  // Begins anew with these steps and forgets all estimates except the noise of steps and their clock.
  // `common`: all keys use an arm in the same steps, and the experiment estimates its effect on all of them
  // together (kAllKeys).
  void Begin(StepGrid grid, bool common = false);
  const StepGrid& grid() const { return grid_; }
  // Adds a call, in order. `takes_part`: in the version in use, the steps decide which config the key uses;
  // otherwise only the key's choice is noted. If the call begins a new step, the step before it ends. Returns
  // the log of the nanoseconds that the ended step would have taken if all keys had used their choices.
  // Returns nothing for a step with samples of NCCL's choice, or with an arm whose effect is not known yet.
  std::optional<double> Take(const GuardedCall& call, bool takes_part);
  // Returns the effect of `config` on a step relative to `other`, both on this key (KeyCode).
  SeenConfig Seen(uint32_t key, const CollectiveConfig& config, const CollectiveConfig& other) const;
  // Number of latest steps in a row whose calls differ from the grid's. They are no evidence: a config that
  // is used only in them, such as that of an evaluation's calls, would be credited with their time.
  uint32_t unlike() const { return unlike_; }
  // Number of steps taken so far.
  uint64_t steps() const { return rows_; }
  // Number of blocks judged so far.
  uint32_t blocks() const { return blocks_; }
  // Number of blocks judged since an arm was first used, counting the block of that use.
  uint32_t blocks_since_arms() const { return blocks_since_arms_; }
  // True if the last steps were timed by the device's clock and not by when their calls were issued.
  bool device_tells() const { return clock_.awaits_device > 0; }
  // Number of changes between timing steps by the device's clock and by the host's. Times before and after a
  // change must not be compared.
  uint32_t clock_changes() const { return clock_.changes; }
  // Nanoseconds of a step on average; 0: not known.
  double step_ns() const { return averages_.step_ns; }
  // Average time of a step in nanoseconds, over more steps than step_ns(), so it follows a change of the
  // fabric slowly.
  double usual_ns() const { return averages_.usual_ns; }
  // Standard deviation of a step's log time.
  double noise() const { return regression_.noise(); }
  // Returns the nanoseconds that arms have cost, at least 0: the number of uses times the mean cost of a use,
  // and what LongSteps charges to arms. Comparing steps with many and with few uses gives this mean long
  // before the effects of single configs are known.
  double lost_ns() const;
  // Returns the nanoseconds by which the keys' choices were faster than NCCL's, by the present estimates.
  double saved_ns() const;

 private:
  using ConfigKey = std::pair<uint32_t, uint32_t>;  // KeyCode and packed config
  struct Uses {
    uint64_t as_choice = 0;
    uint64_t last_row = 0;  // number of the last step that used it
    double first_off = 0;   // SeenConfig::first_off
  };
  // The step under way.
  struct Step {
    uint64_t number = 0;
    int64_t issued_ns = 0;  // when the step's first call was issued
    int64_t begun_ns = -1;  // when the step's first call began, by the device's clock; below 0: not known
    uint32_t calls = 0;
    uint64_t digest = 0;   // digest of the step's calls, as in StepGrid::digest
    bool mixed = false;    // a key used two configs, or a call was captured
    bool sampled = false;  // a call of a key without arms was a sample
    struct Used {
      CollectiveConfig config;
      bool as_arm = false;
    };
    std::map<uint32_t, Used> used;  // by KeyCode
  };

  // Returns the number of the key's config in the regression; -1 for NCCL's own choice or a config without a
  // number.
  int NumberOf(uint32_t key, const CollectiveConfig& config) const;
  // Returns the number of a config as NumberOf does, and gives a new config a number. When all numbers are in
  // use, the new config gets that of the config that was used least recently.
  int NumberFor(uint32_t key, const CollectiveConfig& config, StepRow& row);
  // Returns the duration of the step under way in nanoseconds. `next` is the first call of the next step. 0:
  // not known.
  int64_t TimeUntil(const GuardedCall& next);
  // Called when steps begin to be timed by another clock. Forgets the averages, the long steps and the block
  // under way.
  void ChangeClock();
  // Ends the step under way if `next` begins another one. Returns what Take returns.
  std::optional<double> End(const GuardedCall& next, uint64_t number);
  // Returns SeenConfig::block_excess of the config with this number.
  double ExcessInBlock(int number) const;
  // Returns the log of the step's time minus the estimated effects of its arms.
  std::optional<double> WithoutArms(const Step& step, double log_ns) const;
  // Adds a complete block to the sums from which the mean effect of one use follows.
  void AddToCost();
  // Adds a complete step to the block.
  void AddRow(const Step& step, int64_t step_ns);

  StepGrid grid_;
  bool common_ = false;
  StepRegression regression_;
  std::map<ConfigKey, int> numbers_;
  std::vector<Uses> uses_;                        // by the config's number
  std::map<uint32_t, CollectiveConfig> choices_;  // of keys that take part, by KeyCode
  std::vector<StepRow> block_;
  std::vector<int> arms_of_block_;  // uses of arms in each of its steps
  uint64_t arm_uses_ = 0;           // uses of arms in all blocks
  // Steps that took more than twice the usual time. Checkpoints and other stalls of the machine meet steps
  // with and without arms alike, so arms pay only for more than the stalls that steps without arms make
  // likely.
  struct LongSteps {
    struct Sum {
      uint64_t steps = 0;  // number of all steps, long or not
      uint64_t long_steps = 0;
      double excess = 0;  // extra time of the long steps, in usual steps
    };
    // Adds a step that took `usual_steps` times the usual time.
    void Add(double usual_steps, bool has_arms);
    // Returns what arms have to pay.
    double OfArms() const;
    // Returns the largest likely excess of stalls that met steps with arms.
    double Stalls() const;

    Sum with_arms, without_arms;
  };
  LongSteps long_steps_;
  // Sums over the steps of all blocks, for the regression of step time on arm uses. A step has n, the number
  // of arms that it used, minus the mean of its block, and t, the share by which it took longer than the
  // block's median; t of a long step is 0. The sums are of n * n and of n * t.
  double uses_squared_ = 0;
  double uses_with_time_ = 0;
  uint64_t rows_ = 0;
  Step now_;
  uint32_t calls_before_ = 0;  // calls of the last complete step
  uint32_t unlike_ = 0;
  struct Clock {
    // Number of further steps that may lack a stamp of the device before steps are timed by when calls are
    // issued; 0: they are timed that way already.
    uint32_t awaits_device = 0;
    uint32_t changes = 0;
  } clock_;
  uint32_t blocks_ = 0;
  uint32_t blocks_since_arms_ = 0;
  // Averages over the steps since the clock changed.
  struct Averages {
    uint64_t steps = 0;
    double step_ns = 0;
    double usual_ns = 0;
  } averages_;
};

}  // namespace dynamiccl
