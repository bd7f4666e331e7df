// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/guard/simulated_job.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace dynamiccl::testing {
namespace {

constexpr double kNoise = 0.05;
constexpr double kComputeNoise = 0.02;
// The memory of the noise "waves". They last about fifty steps, as on a shared machine with an H200.
constexpr double kWaveMemory = 0.975;
// The host issues the calls of a step in this fraction of the time that the calls take.
constexpr int64_t kHostTimesFaster = 5;

double Uniform(std::mt19937_64& random, double from, double to) {
  return std::uniform_real_distribution(from, to)(random);
}
double Normal(std::mt19937_64& random, double deviation) {
  return std::normal_distribution(0.0, deviation)(random);
}

CollectiveConfig ConfigNumber(int i) {
  const Algorithm algorithm = i % 2 == 0 ? Algorithm::kRing : Algorithm::kTree;
  return {algorithm, static_cast<Protocol>(i / 2 % 3), static_cast<uint8_t>(1 << i / 6)};
}

}  // namespace

const char* Name(Noise noise) {
  constexpr const char* kNames[] = {"normal", "tails", "memory", "bursts", "drift", "stalls"};
  return kNames[static_cast<int>(noise)];
}
const char* Name(Timing timing) {
  constexpr const char* kNames[] = {"all", "planned", "windows"};
  return kNames[static_cast<int>(timing)];
}

double TrueKey::BestRatio() const {
  double best = 1;
  for (const Config& config : configs) best = std::min(best, config.ratio);
  return best;
}

SimulatedJob::SimulatedJob(const JobOptions& options)
    : options_(options),
      random_(options.seed),
      pace_random_(options.seed + 1'000'000),
      guard_({0.005, options.timing_cost, options.carries, options.expected, options.began_like},
             [this](const TableKey& key, Regime) { return Knowledge(key); }) {
  MakeKeys();
  plan_ = guard_.plan();
  for (const TrueKey& key : truth_) entries_.push_back({key.key, Knowledge(key.key).policy_choice, {}});
}

void SimulatedJob::DrawKeys() {
  for (int i = 0; i < options_.keys; ++i) {
    TrueKey key;
    key.key.size_class.index = static_cast<uint8_t>(40 + options_.class_step * i);
    key.nccl_ns = 1e5 * options_.transfer_times * std::exp(Uniform(random_, 0, 3));
    for (int c = 0; c < 12; ++c) key.configs.push_back({ConfigNumber(c), 1, 1});
    DrawRatios(key);
    truth_.push_back(key);
  }
  for (int place = 0; place < options_.calls_per_step; ++place)
    order_.push_back(static_cast<size_t>(place % options_.keys));
  // The order is shuffled, so that no part of a step repeats by itself.
  std::shuffle(order_.begin(), order_.end(), std::mt19937_64(options_.seed));
}

void SimulatedJob::MakeKeys() {
  if (options_.given.empty()) {
    DrawKeys();
  } else {
    truth_ = options_.given;
    order_ = options_.places;
    options_.calls_per_step = static_cast<int>(order_.size());
  }
  history_.resize(truth_.size());
  factor_.assign(truth_.size(), 1.0);
  ordinals_.assign(truth_.size(), 0);
  for (int place = 0; place < options_.calls_per_step; ++place)
    bias_.push_back(Normal(random_, options_.noise == Noise::kMemory ? 0.05 : 0.0));
}

size_t SimulatedJob::IndexOf(const TableKey& key) const {
  const auto found = std::find_if(truth_.begin(), truth_.end(),
                                  [&](const TrueKey& each) { return KeyCode(each.key) == KeyCode(key); });
  return static_cast<size_t>(found - truth_.begin());
}

// Draws the key's predicted ratios, and the true ratios around them. The two differ as a cost model's
// predictions differ from measured times. Most configs are worse than NCCL's choice.
void SimulatedJob::DrawRatios(TrueKey& key) {
  for (TrueKey::Config& config : key.configs) {
    config.predicted = std::exp(Uniform(random_, -0.2, 1.0));
    config.ratio = config.predicted * std::exp(Normal(random_, options_.spread));
    if (options_.nothing_to_win) config.ratio = std::max(config.ratio, 1.0);
  }
  if (options_.policy_ratio > 0) key.configs[11].ratio = options_.policy_ratio;
  if (options_.one_channel_ratio == 0 && options_.one_tree_ratio == 0) return;
  // On such a fabric a cost model errs alike for all keys. So every key gets the first key's predictions and
  // ratios.
  if (!truth_.empty()) key.configs = truth_[0].configs;
  if (options_.one_channel_ratio > 0) key.configs[4].ratio = options_.one_channel_ratio;
  if (options_.one_tree_ratio > 0) key.configs[5].ratio = options_.one_tree_ratio;
}

KeyKnowledge SimulatedJob::Knowledge(const TableKey& asked) const {
  KeyKnowledge known;
  const size_t index = IndexOf(asked);
  if (index == truth_.size()) return known;  // The job has not called this key.
  const TrueKey& key = truth_[index];
  known.nccls_ns = key.nccl_ns / options_.slowness;
  if (options_.policy_ratio > 0) known.policy_choice = key.configs[11].config;
  const auto best = std::min_element(key.configs.begin(), key.configs.end(),
                                     [](const auto& a, const auto& b) { return a.ratio < b.ratio; });
  if (options_.confirmed_best) known.confirmed = best->ratio < 1 ? best->config : kLeaveNcclAlone;
  const auto earlier = options_.confirmed.find(KeyCode(asked));
  if (earlier != options_.confirmed.end()) known.confirmed = earlier->second;
  if (!options_.trials) return known;
  for (const TrueKey::Config& config : key.configs)
    known.candidates.push_back({config.config, config.predicted, config.of_nccls_pair});
  if (!options_.given.empty()) return known;
  std::sort(known.candidates.begin(), known.candidates.end(),
            [](const auto& a, const auto& b) { return a.predicted < b.predicted; });
  return known;
}

CollectiveConfig SimulatedJob::ChoiceOf(size_t key) const {
  return entries_[key].choice;
}

const TrueKey::Config* SimulatedJob::Find(size_t key, const CollectiveConfig& config) const {
  const auto& configs = truth_[key].configs;
  const auto found = std::find_if(configs.begin(), configs.end(),
                                  [&](const TrueKey::Config& each) { return each.config == config; });
  return found == configs.end() ? nullptr : &*found;
}

double SimulatedJob::RatioOf(size_t key, const CollectiveConfig& config) const {
  const TrueKey::Config* const found = Find(key, config);
  return found == nullptr ? 1 : found->ratio;
}

double SimulatedJob::NoiseOf(int place) {
  double noise = Normal(random_, kNoise);
  if (options_.noise == Noise::kMemory) {
    memory_ = 0.9 * memory_ + Normal(random_, kNoise * std::sqrt(1 - 0.81));
    noise = memory_ + bias_[static_cast<size_t>(place)];
  }
  if (options_.noise == Noise::kTails && Uniform(random_, 0, 1) < 0.02) {
    noise += std::log(Uniform(random_, 1, 5));
  }
  if (options_.noise == Noise::kBursts) {
    const double chance = static_cast<double>(options_.step_ns) / options_.calls_per_step / 20e9;
    if (Uniform(random_, 0, 1) < chance) burst_until_ns_ = now_ns_ + 300'000'000;
    if (now_ns_ < burst_until_ns_) noise += std::log(1.4);
  }
  if (options_.noise == Noise::kDrift) {
    noise += 0.05 * std::sin(2 * std::numbers::pi * static_cast<double>(now_ns_) / 600e9);
  }
  return noise;
}

int64_t SimulatedJob::Skew(double transfer_ns) {
  double skew = 0;
  for (int rank = 0; rank < 4; ++rank) {
    skew = std::max(skew, transfer_ns * skew_share_ * Uniform(random_, 0, 1));
  }
  if (options_.noise == Noise::kStalls && Uniform(random_, 0, 1) < 0.05) {
    skew += transfer_ns * Uniform(random_, 0, 10);
  }
  return static_cast<int64_t>(skew);
}

bool SimulatedJob::TimedByPlan(const KeyPlan& entry, bool samples, uint32_t ordinal) const {
  if (options_.timing == Timing::kAll) return true;
  const bool window = calls_ / 2 % 100 == PlaceIn(100, 0, static_cast<uint32_t>(calls_ / 200));
  if (options_.timing == Timing::kWindows) return window;
  return window || IsTimed(plan_, entry, samples, {ordinal, calls_});
}

void SimulatedJob::Issue() {
  if (CallsAhead() == 0) {
    host_ns_ = now_ns_;
    return;
  }
  host_ns_ += options_.step_ns / options_.calls_per_step / kHostTimesFaster;
  if (ahead_ns_.size() == CallsAhead()) {
    host_ns_ = std::max(host_ns_, ahead_ns_.front());
    ahead_ns_.pop_front();
  }
  ahead_ns_.push_back(now_ns_);
}

void SimulatedJob::Time(bool by_plan, double transfer_ns, GuardedCall& call) {
  call.on_suspicion = !by_plan;
  if (!by_plan && (options_.timing == Timing::kWindows || !guard_.wants_more_times())) return;
  call.transfer_ns = static_cast<int64_t>(transfer_ns);
  timing_ns_ += options_.timing_cost * transfer_ns;
  ++timed_calls_;
}

void SimulatedJob::Call(size_t index, int place) {
  const KeyPlan& entry = entries_[index];
  const uint32_t ordinal = ordinals_[index]++;
  const bool samples = !entry.choice.leaves_nccl_alone();
  const PlannedUse use = UseOf(plan_, entry, samples, {ordinal, calls_});
  Issue();
  GuardedCall call{entry.key, use.use, entry.choice, version_, host_ns_};
  call.number = calls_;
  call.structure_changes = structure_changes_;
  call.stage = stage_;
  if (use.use == CallUse::kDefaultSample) call.config = kLeaveNcclAlone;
  if (use.use == CallUse::kTrial) call.config = use.config;
  const double wave = index < static_cast<size_t>(options_.hidden_keys) ? call_wave_log_ : 0;
  const double nccl_ns = truth_[index].nccl_ns * factor_[index] * std::exp(NoiseOf(place) + wave);
  const double ratio = RatioOf(index, call.config);
  const double transfer_ns = nccl_ns * ratio;
  if (use.use == CallUse::kTrial) {
    ++trials_;
    worst_trial_ratio_ = std::max(worst_trial_ratio_, ratio);
  }
  call.skew_ns = Skew(nccl_ns);
  if (options_.device_times && BeginsStep(plan_, calls_)) call.begun_ns = now_ns_ + device_shift_ns_;
  Time(TimedByPlan(entry, samples, ordinal), transfer_ns, call);
  KeyHistory& history = history_[index];
  ++history.calls;
  history.non_default += call.config.leaves_nccl_alone() ? 0 : 1;
  history.time_ns += transfer_ns;
  history.nccl_ns += nccl_ns;
  news_.emplace_back(calls_ + static_cast<uint64_t>(options_.news_calls) + CallsAhead(), call);
  ++calls_;
  const double passed_ns = PassedNs(index, call.config, transfer_ns) + SetupNs(call.config.algorithm);
  now_ns_ += static_cast<int64_t>(options_.issued_within * passed_ns);
  waits_ns_ += (1 - options_.issued_within) * passed_ns;
}

double SimulatedJob::PassedNs(size_t key, const CollectiveConfig& config, double transfer_ns) {
  double compute_ns = pace_ * static_cast<double>(options_.step_ns) / options_.calls_per_step *
                      std::exp(Normal(pace_random_, kComputeNoise));
  if (key >= static_cast<size_t>(options_.hidden_keys)) {
    const TrueKey::Config* const found = Find(key, config);
    const double exposed = found == nullptr ? truth_[key].exposed : found->exposed;
    late_ns_.push_back(options_.exposed * exposed * transfer_ns);
    if (late_ns_.size() <= static_cast<size_t>(options_.waits_late * options_.calls_per_step))
      return compute_ns;
    compute_ns += late_ns_.front();
    late_ns_.pop_front();
    return compute_ns;
  }
  if (options_.steals > 0 && config == truth_[key].configs[11].config) compute_ns *= 1 + options_.steals;
  if (config.leaves_nccl_alone()) compute_ns *= 1 + options_.crowding;
  return compute_ns;
}

double SimulatedJob::SetupNs(Algorithm algorithm) {
  if (algorithm != Algorithm::kTree || std::exchange(has_trees_, true)) return 0;
  return static_cast<double>(options_.setup_ns);
}

// Delivers what has reached the leader, lets the guard propose, and activates the version whose first call
// has come.
void SimulatedJob::Deliver() {
  while (!news_.empty() && news_.front().first <= calls_) {
    guard_.TakeCall(news_.front().second);
    news_.pop_front();
  }
  if (!coming_) {
    coming_ = guard_.Tick(now_ns_);
    switch_at_ = calls_ + static_cast<uint64_t>(options_.switch_calls);
  }
  if (!coming_ || calls_ < switch_at_) return;
  guard_.Committed(++version_, now_ns_);
  plan_ = coming_->plan;
  for (const KeyPlan& entry : plan_.keys) {
    const size_t index = IndexOf(entry.key);
    if (index == truth_.size()) continue;  // The job has not called this key.
    if (entry.choice != entries_[index].choice) history_[index].changed_at = history_[index].calls;
    entries_[index] = entry;
  }
  std::fill(ordinals_.begin(), ordinals_.end(), 0u);
  switches_.push_back({now_ns_, calls_, coming_->reason});
  coming_.reset();
}

void SimulatedJob::Step() {
  const double memory = options_.pace_memory;
  pace_log_ = memory * pace_log_ + Normal(pace_random_, options_.step_noise * std::sqrt(1 - memory * memory));
  const auto move = [&](double deviation, double& wave) {
    if (deviation == 0) return;
    wave = kWaveMemory * wave + Normal(pace_random_, deviation * std::sqrt(1 - kWaveMemory * kWaveMemory));
  };
  move(options_.wave_noise, wave_log_);
  move(options_.call_waves, call_wave_log_);
  pace_ = std::exp(pace_log_ + wave_log_);
  if (!has_steps_) std::shuffle(order_.begin(), order_.end(), pace_random_);
  for (int place = 0; place < options_.calls_per_step; ++place) {
    Call(order_[static_cast<size_t>(place)], place);
    Deliver();
  }
  now_ns_ += static_cast<int64_t>(waits_ns_);
  waits_ns_ = 0;
  ++steps_;
  if (options_.waits_every == 0 || steps_ % static_cast<uint64_t>(options_.waits_every) != 0) return;
  host_ns_ = now_ns_;
  ahead_ns_.clear();
}

void SimulatedJob::RunSteps(int steps) {
  for (int i = 0; i < steps; ++i) Step();
}
void SimulatedJob::RunFor(int64_t ns) {
  RunSteps(static_cast<int>(ns / options_.step_ns));
}

void SimulatedJob::ChangeFabric(double factor, double share_of_keys, bool redraw) {
  const auto changed = static_cast<size_t>(std::ceil(share_of_keys * static_cast<double>(truth_.size())));
  for (size_t i = 0; i < changed; ++i) {
    factor_[i] *= factor;
    if (redraw) DrawRatios(truth_[i]);
  }
}

void SimulatedJob::Grow(int classes, double spread) {
  const size_t before = truth_.size();
  for (size_t i = 0; i < before; ++i) {
    TrueKey key = truth_[i];
    key.key.size_class.index = static_cast<uint8_t>(key.key.size_class.index + classes);
    key.nccl_ns *= std::exp2(classes / 4.0);
    for (TrueKey::Config& config : key.configs) config.ratio *= std::exp(Normal(random_, spread));
    truth_.push_back(std::move(key));
    KeyPlan entry{truth_.back().key, Knowledge(truth_.back().key).policy_choice, {}};
    for (const KeyPlan& planned : plan_.keys) {
      if (KeyCode(planned.key) == KeyCode(entry.key)) entry = planned;
    }
    entries_.push_back(std::move(entry));
  }
  history_.resize(truth_.size());
  factor_.resize(truth_.size(), 1.0);
  ordinals_.resize(truth_.size(), 0);
  for (size_t& key : order_) key += before;
}

void SimulatedJob::UsePlaces(const std::vector<size_t>& places) {
  order_ = places;
  bias_.resize(places.size(), 0.0);
  options_.calls_per_step = static_cast<int>(places.size());
}

void SimulatedJob::ReorderCalls() {
  order_.push_back(order_.front());
  bias_.push_back(bias_.front());
  ++options_.calls_per_step;
  std::shuffle(order_.begin(), order_.end(), pace_random_);
}

void SimulatedJob::SpoilChoices(double ratio) {
  for (size_t i = 0; i < truth_.size(); ++i) {
    for (TrueKey::Config& config : truth_[i].configs) {
      if (config.config == ChoiceOf(i)) config.ratio = ratio;
    }
  }
}

double SimulatedJob::NcclNs() const {
  double sum = 0;
  for (const KeyHistory& key : history_) sum += key.nccl_ns;
  return sum;
}
double SimulatedJob::LossNs() const {
  double sum = timing_ns_ + (has_trees_ ? static_cast<double>(options_.setup_ns) : 0);
  for (const KeyHistory& key : history_) sum += key.time_ns - key.nccl_ns;
  return sum;
}
double SimulatedJob::LossShare() const {
  return LossNs() / NcclNs();
}

}  // namespace dynamiccl::testing
