// SPDX-License-Identifier: Apache-2.0
// NCCL's own choice is the reference of each key: its effect is 0. Every other config of a key gets a number
// in the regression when a step first uses it.
#include "src/decision/guard/step_experiment.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "src/base/statistics.h"
#include "src/decision/guard/step_period.h"

namespace dynamiccl {
namespace {

// A step that takes more than this many times the usual time is a long step. It is counted separately
// (LongSteps), because it may be a stall.
constexpr double kLongStep = 2;
// A long step counts as at most this many usual steps. One channel in place of 16 makes a step many times as
// long.
constexpr double kMaxOfLongStep = 32;
// With this probability, stalls alone cause at most a certain number of long steps. Arms do not pay for that
// many.
constexpr double kStallsShare = 0.95;

// Least weights of a new step in Averages::step_ns and in Averages::usual_ns, which follows more slowly.
constexpr double kFollowRate = 1.0 / 16;
constexpr double kUsualRate = 1.0 / 256;

// After this many steps in a row without a time stamp of the device, steps are timed by the host's clock
// instead.
constexpr uint32_t kDeviceSilence = 24;

// The excess of a block is judged against at least this many of the block's steps without arms.
constexpr size_t kFewestUsual = 2;

// An arm's effect is subtracted from a step's log time only if its standard error is at most this.
constexpr double kKnownArmError = 0.05;

uint32_t Packed(const CollectiveConfig& config) {
  return static_cast<uint32_t>(static_cast<uint8_t>(config.algorithm)) << 16 |
         static_cast<uint32_t>(static_cast<uint8_t>(config.protocol)) << 8 | config.channels;
}

}  // namespace

// Callers may pass this experiment's own grid, which the reset destroys, so `grid` is a copy.
void StepExperiment::Begin(StepGrid grid, bool common) {
  const double noise = regression_.noise();
  const Clock clock = clock_;
  const LongSteps::Sum without_arms = long_steps_.without_arms;
  *this = StepExperiment();
  clock_ = clock;
  long_steps_.without_arms = without_arms;
  if (noise > 0) regression_ = StepRegression(noise);
  grid_ = grid;
  common_ = common;
}

int StepExperiment::NumberOf(uint32_t key, const CollectiveConfig& config) const {
  const auto found = numbers_.find({key, Packed(config)});
  return found == numbers_.end() ? -1 : found->second;
}

std::optional<double> StepExperiment::Take(const GuardedCall& call, bool takes_part) {
  if (grid_.calls == 0 || call.number < grid_.origin) return std::nullopt;
  const uint64_t number = (call.number - grid_.origin) / grid_.calls;
  std::optional<double> ended;
  if (now_.calls == 0 || number != now_.number) ended = End(call, number);
  ++now_.calls;
  now_.digest += StepPeriod::DigestOf(KeyCode({call.key.collective, call.key.size_class, Role::kUnknown}));
  now_.mixed |= call.captured;
  const bool as_arm = call.use != CallUse::kChoice;
  // A key that takes no part in the experiment still uses its choice in most calls. Its few samples of NCCL's
  // choice are not noted as a use of a config.
  if (common_ ? call.use != CallUse::kTrial : as_arm && !takes_part) {
    now_.sampled |= call.use == CallUse::kDefaultSample;
    // The previous version, in which all keys tried a config together, decided such a trial. The trial is not
    // noted, so the step would count as one with the key's choice. The step is therefore left out.
    now_.mixed |= !common_ && call.use == CallUse::kTrial;
    return ended;
  }
  const uint32_t key = common_ ? kAllKeys : KeyCode(call.key);
  const auto [used, is_new] = now_.used.try_emplace(key, Step::Used{call.config, as_arm});
  now_.mixed |= !is_new && used->second.config != call.config;
  if (!as_arm) choices_[key] = call.config;
  return ended;
}

std::optional<double> StepExperiment::End(const GuardedCall& next, uint64_t number) {
  const bool complete = now_.calls > 0 && number == now_.number + 1;
  const bool is_alike = grid_.digest == 0 || now_.digest == grid_.digest;
  const bool usual = now_.calls == calls_before_ && is_alike;
  if (complete) unlike_ = is_alike ? 0 : unlike_ + 1;
  std::optional<double> level;
  const int64_t step_ns = complete && usual ? TimeUntil(next) : 0;
  if (step_ns > 0 && !now_.mixed) {
    level = WithoutArms(now_, std::log(static_cast<double>(step_ns)));
    AddRow(now_, step_ns);
  }
  if (complete) calls_before_ = now_.calls;
  now_ = {.number = number, .issued_ns = next.at_ns, .begun_ns = next.begun_ns};
  return level;
}

// A step is timed by the device's clock if the device stamps steps. A host that runs ahead issues a step's
// calls whenever its queue has room, so the host's and the device's times must not mix. A step without a
// stamp is left out, unless the device has not stamped any step for kDeviceSilence steps. A stamp that is not
// later than the one before it is ignored.
int64_t StepExperiment::TimeUntil(const GuardedCall& next) {
  if (now_.begun_ns >= 0 && next.begun_ns > now_.begun_ns) {
    if (clock_.awaits_device == 0) ChangeClock();
    clock_.awaits_device = kDeviceSilence;
    return next.begun_ns - now_.begun_ns;
  }
  if (clock_.awaits_device > 1) {
    --clock_.awaits_device;
    return 0;
  }
  if (std::exchange(clock_.awaits_device, 0) > 0) ChangeClock();
  return next.at_ns - now_.issued_ns;
}

void StepExperiment::ChangeClock() {
  ++clock_.changes;
  averages_ = {};
  long_steps_ = {};
  if (numbers_.empty()) regression_ = StepRegression();
  block_.clear();
  arms_of_block_.clear();
}

std::optional<double> StepExperiment::WithoutArms(const Step& step, double log_ns) const {
  if (step.sampled) return std::nullopt;
  for (const auto& [key, used] : step.used) {
    if (!used.as_arm) continue;
    const auto choice = choices_.find(key);
    const SeenConfig seen =
        Seen(key, used.config, choice == choices_.end() ? kLeaveNcclAlone : choice->second);
    if (seen.steps == 0 || seen.effect.error > kKnownArmError) return std::nullopt;
    log_ns -= seen.effect.mean;
  }
  return log_ns;
}

int StepExperiment::NumberFor(uint32_t key, const CollectiveConfig& config, StepRow& row) {
  int number = NumberOf(key, config);
  if (number >= 0) return number;
  row.first_use = true;
  number = regression_.AddConfig();
  if (number >= 0) {
    uses_.emplace_back();
  } else {
    const auto oldest = std::min_element(
        uses_.begin(), uses_.end(), [](const Uses& a, const Uses& b) { return a.last_row < b.last_row; });
    number = static_cast<int>(oldest - uses_.begin());
    std::erase_if(numbers_, [number](const auto& entry) { return entry.second == number; });
    // The number now stands for another config, so steps of the block under way that used the old one are
    // dropped.
    for (size_t i = block_.size(); i-- > 0;) {
      const std::vector<int>& used = block_[i].configs;
      if (std::find(used.begin(), used.end(), number) == used.end()) continue;
      block_.erase(block_.begin() + static_cast<std::ptrdiff_t>(i));
      arms_of_block_.erase(arms_of_block_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    regression_.Forget(number);
    *oldest = {};
  }
  numbers_[{key, Packed(config)}] = number;
  return number;
}

void StepExperiment::AddRow(const Step& step, int64_t step_ns) {
  const auto ns = static_cast<double>(step_ns);
  const double off = averages_.step_ns == 0 ? 0 : std::log(ns / averages_.step_ns);
  ++rows_;
  ++averages_.steps;
  const double limited = averages_.step_ns == 0 ? ns : std::min(ns, 2 * averages_.step_ns);
  const double share = 1 / static_cast<double>(averages_.steps);
  averages_.step_ns += std::max(share, kFollowRate) * (limited - averages_.step_ns);
  averages_.usual_ns += std::max(share, kUsualRate) * (limited - averages_.usual_ns);
  StepRow row{{}, std::log(ns), false};
  uint64_t arms = 0;
  for (const auto& [key, used] : step.used) {
    if (used.config.leaves_nccl_alone()) continue;
    const bool is_new = NumberOf(key, used.config) < 0;
    const int config = NumberFor(key, used.config, row);
    Uses& uses = uses_[static_cast<size_t>(config)];
    if (is_new) uses.first_off = off;
    ++(used.as_arm ? arms : uses.as_choice);
    uses.last_row = rows_;
    row.configs.push_back(config);
  }
  long_steps_.Add(std::exp(off), arms > 0);
  block_.push_back(std::move(row));
  arms_of_block_.push_back(static_cast<int>(arms));
  if (block_.size() < kStepsOfBlock) return;
  AddToCost();
  arms_of_block_.clear();
  regression_.TakeBlock(std::exchange(block_, {}));
  ++blocks_;
  blocks_since_arms_ += arm_uses_ > 0 ? 1 : 0;
}

SeenConfig StepExperiment::Seen(uint32_t key, const CollectiveConfig& config,
                                const CollectiveConfig& other) const {
  const int number = NumberOf(key, config), other_number = NumberOf(key, other);
  if (number < 0 && !config.leaves_nccl_alone()) return {};
  if (other_number < 0 && !other.leaves_nccl_alone()) return {};
  SeenConfig seen{regression_.Over(number, other_number)};
  // In every block some steps use NCCL's choice for the key, so all steps count.
  seen.steps = number < 0 ? blocks_ * static_cast<uint32_t>(kStepsOfBlock) : regression_.steps(number);
  seen.blocks = number < 0 ? blocks_ : regression_.blocks(number);
  seen.first_off = number < 0 ? 0 : uses_[static_cast<size_t>(number)].first_off;
  seen.block_excess = ExcessInBlock(number);
  return seen;
}

// Most questions are about configs that the block under way has not used, so these come first.
double StepExperiment::ExcessInBlock(int number) const {
  std::vector<double> with_config, usual;
  for (size_t i = 0; i < block_.size(); ++i) {
    const std::vector<int>& used = block_[i].configs;
    if (arms_of_block_[i] > 0 && std::find(used.begin(), used.end(), number) != used.end())
      with_config.push_back(block_[i].log_time);
  }
  if (with_config.empty()) return 0;
  for (size_t i = 0; i < block_.size(); ++i) {
    if (arms_of_block_[i] == 0) usual.push_back(block_[i].log_time);
  }
  if (usual.size() < kFewestUsual) return 0;
  const double level = Median(usual);
  double excess = 0;
  for (const double log_time : with_config) excess += std::min(std::expm1(log_time - level), kMaxOfOneStep);
  return excess;
}

// Unlike the regression, this sum counts the first use of a config too, because setting up connections takes
// time.
void StepExperiment::AddToCost() {
  std::vector<double> times;
  for (const StepRow& row : block_) times.push_back(row.log_time);
  const double level = Median(times);
  const auto steps = static_cast<double>(block_.size());
  const double mean_uses = std::accumulate(arms_of_block_.begin(), arms_of_block_.end(), 0.0) / steps;
  for (size_t i = 0; i < block_.size(); ++i) {
    const double uses = arms_of_block_[i] - mean_uses;
    uses_squared_ += uses * uses;
    if (times[i] - level <= std::log(kLongStep)) uses_with_time_ += uses * std::expm1(times[i] - level);
    arm_uses_ += static_cast<uint64_t>(arms_of_block_[i]);
  }
}

void StepExperiment::LongSteps::Add(double usual_steps, bool has_arms) {
  Sum& sum = has_arms ? with_arms : without_arms;
  ++sum.steps;
  if (usual_steps <= kLongStep) return;
  ++sum.long_steps;
  sum.excess += std::min(usual_steps, kMaxOfLongStep) - 1;
}

double StepExperiment::LongSteps::OfArms() const {
  return std::max(0.0, with_arms.excess - Stalls());
}

// The number of stalls that meet steps with arms follows a Poisson distribution, if stalls do not depend on
// arms.
double StepExperiment::LongSteps::Stalls() const {
  if (without_arms.long_steps == 0) return 0;
  const auto long_steps = static_cast<double>(without_arms.long_steps);
  const double expected =
      long_steps * static_cast<double>(with_arms.steps) / static_cast<double>(without_arms.steps);
  double most = 0, probability = std::exp(-expected), sum = probability;
  while (sum < kStallsShare && probability > 0) {
    probability *= expected / ++most;
    sum += probability;
  }
  return most * without_arms.excess / long_steps;
}

double StepExperiment::lost_ns() const {
  const double of_one_use = uses_squared_ == 0 ? 0 : std::max(0.0, uses_with_time_ / uses_squared_);
  return (static_cast<double>(arm_uses_) * of_one_use + long_steps_.OfArms()) * averages_.step_ns;
}

double StepExperiment::saved_ns() const {
  double share = 0;
  for (size_t i = 0; i < uses_.size(); ++i)
    share -= static_cast<double>(uses_[i].as_choice) *
             std::min(0.0, regression_.Over(static_cast<int>(i), -1).mean);
  return share * averages_.step_ns;
}

}  // namespace dynamiccl
