// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/common_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "src/collective/legal_configs.h"

namespace dynamiccl {
namespace {

// All keys try a config together only if keys with at least this share of the bytes can use the config.
constexpr double kLeastShare = 1.0 / 3;
// An arm is given up at once when its steps within one block took this many usual steps longer in total. The
// limit holds in both rounds. It matters for arms that many steps use; a block has at most two steps with the
// same challenger.
constexpr double kMaxInBlock = 0.6;
// The search looks for gains of kSoughtGain (3 %, in logs). Where steps vary little, smaller gains show soon,
// so it looks for gains of kSoughtOfNoise times the steps' standard deviation, but at least kLeastSoughtGain.
constexpr double kSoughtGain = 0.03;
constexpr double kLeastSoughtGain = 0.01;
constexpr double kSoughtOfNoise = 0.5;
// Patience with an arm in the first round. A large gain shows after few uses. So an arm is given up after two
// uses if its steps look slower. It is given up after four uses unless its steps look faster by one standard
// error, and after one use that made a step longer by half or more (0.405 is log(1.5)).
constexpr ArmPatience kPatienceAtFirst{
    .worthwhile = kSoughtGain, .uses_to_show = 2, .gross_first_use = 0.405, .most_in_block = kMaxInBlock};
// Patience with an arm in the second round. If steps vary by more than kUsualNoise, small gains take longer
// to show, so all arms are tried again, and an arm that looks slow is given up only when the standard error
// of its effect is at most 4 %. Arms that the first round gave up after one use are tried once more, except
// those that made a step three times as long (1.1 is log(3)), because a second use of such an arm may cost
// too much.
constexpr double kHopelessFirstUse = 1.1;
constexpr ArmPatience kPatienceLater{.worthwhile = kSoughtGain,
                                     .uses_to_show = 2,
                                     .error_to_show = 0.04,
                                     .gross_first_use = kHopelessFirstUse,
                                     .most_in_block = kMaxInBlock};
constexpr double kUsualNoise = 0.05;
// The common search ends this many blocks of steps after the first use of an arm. An effect's standard error
// falls with the square root of the number of steps. So if steps vary by twice kUsualNoise, the search gets
// four times as many blocks, but at most StepRegression::kMaxBlocks.
constexpr double kMaxBlocksOfCommon = 14;
// The common search may last up to StepRegression::kMaxBlocks blocks while arms are untried, or while the
// steps of an arm are faster by this many standard errors.
constexpr double kWaitedErrors = 2;

// Findings of other jobs or the policy can make the search believe in a config. This config leads as long as
// it looks faster by this much, in logs. The estimate combines the belief with the steps of this job.
constexpr double kStillBelieved = 0.02;

// A config that most keys used before a change of the fabric is given up if at least kUsesToContradict steps
// have used it and its estimated gain is below kKeptOfGain of the gain before the change. Otherwise a config
// with a small gain would lead a narrow search, although a changed fabric calls for a wide search.
constexpr uint32_t kUsesToContradict = 2;
constexpr double kKeptOfGain = 0.5;

// Steps must have used each challenger this often before the leader may be adopted.
constexpr uint32_t kUsesOfChallenger = 2;
// At most this many challengers are open at a time, because each step with a challenger is a step without the
// leader.
constexpr size_t kMaxChallengers = 1;

double MaxBlocks(double noise) {
  const double times = std::max(1.0, noise / kUsualNoise);
  return std::min(kMaxBlocksOfCommon * times * times, static_cast<double>(StepRegression::kMaxBlocks));
}

ArmPatience Patience(bool tries_again, double noise) {
  ArmPatience patience = tries_again ? kPatienceLater : kPatienceAtFirst;
  patience.worthwhile = std::clamp(kSoughtOfNoise * noise, kLeastSoughtGain, kSoughtGain);
  return patience;
}

using Pair = std::pair<Algorithm, Protocol>;

Pair PairOf(const CollectiveConfig& config) {
  return {config.algorithm, config.protocol};
}

// Sums up the candidate lists of all keys for one pair of algorithm and protocol.
struct PairFacts {
  double share = 0;        // share of the bytes that are in calls of keys with this pair
  double best = 0;         // least time predicted with this pair for the heaviest key that has it
  double nccls_share = 0;  // share of the bytes that are in calls for which NCCL uses the pair
  int most_channels = 0;
  int rank = 0;  // place among all pairs, from 0: NCCL's own come first, the others follow by `best`

  bool ComesBefore(const PairFacts& other) const {
    if (nccls_share != other.nccls_share) return nccls_share > other.nccls_share;
    return best < other.best;
  }
};

std::map<Pair, PairFacts> FactsOf(const std::vector<JoiningKey>& heaviest_first) {
  std::map<Pair, PairFacts> facts;
  for (const JoiningKey& key : heaviest_first) {
    std::map<Pair, double> best;
    const auto nccls = std::find_if(key.candidates->begin(), key.candidates->end(),
                                    [](const ProbeCandidate& candidate) { return candidate.of_nccls_pair; });
    if (nccls != key.candidates->end()) facts[PairOf(nccls->config)].nccls_share += key.share;
    for (const ProbeCandidate& candidate : *key.candidates) {
      const auto [least, is_new] = best.try_emplace(PairOf(candidate.config), candidate.predicted);
      least->second = std::min(least->second, candidate.predicted);
      int& channels = facts[PairOf(candidate.config)].most_channels;
      channels = std::max<int>(channels, candidate.config.channels);
    }
    for (const auto& [pair, predicted] : best) {
      PairFacts& of = facts[pair];
      if (of.share == 0) of.best = predicted;
      of.share += key.share;
    }
  }
  for (auto& [pair, of] : facts) {
    for (const auto& [other, its] : facts) of.rank += its.ComesBefore(of) ? 1 : 0;
  }
  return facts;
}

// Returns the position of a config in the order of trials; -1: the config is not tried. Configs with all
// channels come last. The others follow the rank of their pair of algorithm and protocol, each pair with one
// channel and with half of its channels.
int PlaceOf(const PairFacts& of, int channels) {
  if (channels == 1) return 2 * of.rank;
  if (2 * channels == of.most_channels) return 2 * of.rank + 1;
  return channels == of.most_channels ? 2 * kAlgorithms * kProtocols + of.rank : -1;
}

}  // namespace

std::vector<ProbeCandidate> CommonCandidates(const std::vector<JoiningKey>& keys) {
  std::vector<JoiningKey> sorted = keys;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const JoiningKey& a, const JoiningKey& b) { return a.share > b.share; });
  double whole = 0;
  for (const JoiningKey& key : sorted) whole += key.share;
  const std::map<Pair, PairFacts> facts = FactsOf(sorted);
  std::vector<std::pair<int, ProbeCandidate>> placed;
  const auto is_placed = [&](const CollectiveConfig& config) {
    return std::any_of(placed.begin(), placed.end(),
                       [&](const auto& each) { return each.second.config == config; });
  };
  for (const JoiningKey& key : sorted) {
    for (const ProbeCandidate& candidate : *key.candidates) {
      const PairFacts& of = facts.at(PairOf(candidate.config));
      const int place = PlaceOf(of, candidate.config.channels);
      if (place < 0 || of.share < kLeastShare * whole) continue;
      if (!is_placed(candidate.config)) placed.emplace_back(place, candidate);
    }
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ProbeCandidate> candidates;
  for (const auto& [place, candidate] : placed) candidates.push_back(candidate);
  return candidates;
}

// Returns the effects of configs relative to steps in which every key uses its choice.
KeySearch::SeenOf CommonSearch::SeenIn(const StepExperiment& experiment) {
  return [&experiment](const CollectiveConfig& config) {
    return experiment.Seen(kAllKeys, config, kLeaveNcclAlone);
  };
}

void CommonSearch::Restart() {
  search_.Restart();
  done_ = tries_again_ = false;
  belief_.reset();
  circumstances_.reset();
}

bool CommonSearch::TryAgain(const StepExperiment& experiment) {
  const double noise = experiment.noise();
  if (tries_again_) return false;
  if (noise > kUsualNoise && experiment.blocks_since_arms() < MaxBlocks(noise)) {
    search_.Restart();
    return tries_again_ = true;
  }
  return tries_again_ = search_.GiveSecondUse(SeenIn(experiment), kHopelessFirstUse);
}

void CommonSearch::Remember(const StepExperiment& experiment) {
  const KeySearch::SeenOf seen_of = SeenIn(experiment);
  std::vector<std::pair<double, CollectiveConfig>> faster;
  bool seen_any = false;
  for (const ProbeCandidate& candidate : search_.candidates()) {
    const SeenConfig seen = seen_of(candidate.config);
    seen_any |= seen.steps > 0;
    if (seen.steps > 0 && seen.effect.mean < -seen.effect.error)
      faster.emplace_back(seen.effect.mean, candidate.config);
  }
  if (!seen_any) return;
  std::stable_sort(faster.begin(), faster.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (faster.size() > kMaxCommonArms) faster.resize(kMaxCommonArms);
  liked_.clear();
  for (const auto& [mean, config] : faster) liked_.push_back(config);
}

void CommonSearch::SetCandidates(std::vector<ProbeCandidate> candidates) {
  const auto place = [this](const ProbeCandidate& candidate) {
    return std::find(liked_.begin(), liked_.end(), candidate.config) - liked_.begin();
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  search_.SetCandidates(std::move(candidates));
}

std::vector<CollectiveConfig> CommonSearch::Judge(const StepExperiment& experiment) {
  if (!search_.began()) return {};
  Remember(experiment);
  if (HasLostItsGain(experiment)) {
    search_.GiveUp(belief_->config);
    belief_.reset();
  }
  return search_.Judge(SeenIn(experiment), Patience(tries_again_, experiment.noise()));
}

bool CommonSearch::IsKept(const CollectiveConfig& config, const StepExperiment& experiment) const {
  return IsBelieved(config, experiment) && belief_->from == ExpectedFrom::kBeforeChange;
}

bool CommonSearch::HasLostItsGain(const StepExperiment& experiment) const {
  return belief_ && belief_->from == ExpectedFrom::kBeforeChange &&
         SeenIn(experiment)(belief_->config).steps >= kUsesToContradict &&
         Known(belief_->config, experiment).mean > kKeptOfGain * belief_->expected.mean;
}

bool CommonSearch::HasUnjudgedArm(const StepExperiment& experiment) const {
  return std::any_of(open().begin(), open().end(),
                     [&](const CollectiveConfig& config) { return SeenIn(experiment)(config).steps == 0; });
}

void CommonSearch::Refill(const StepExperiment& experiment) {
  const KeySearch::SeenOf seen = SeenIn(experiment);
  // The believed config is tried alone until steps have shown its effect: until then, challengers would cost
  // more than they tell.
  if (belief_ && seen(belief_->config).steps == 0 && !search_.GaveUp(belief_->config)) {
    (void)search_.Open(belief_->config);
    return search_.Refill(kLeaveNcclAlone, seen, open().size());
  }
  if (const auto leader = Leader(experiment)) {
    size_t challengers = Next(experiment, true).size() - 1;
    for (const ProbeCandidate& candidate : search_.candidates()) {
      if (challengers == kMaxChallengers) break;
      if (MayChallenge(candidate.config, *leader, experiment) && search_.Open(candidate.config))
        ++challengers;
    }
    return;
  }
  size_t opened = 0;
  do {
    search_.Refill(kLeaveNcclAlone, seen, kMaxCommonArms);
    opened = open().size();
    // The second round keeps the effects that the first round measured, so many arms can be given up without
    // a further use.
    if (tries_again_) (void)search_.Judge(seen, Patience(true, experiment.noise()));
  } while (open().size() < opened);
}

std::optional<CollectiveConfig> CommonSearch::Leader(const StepExperiment& experiment) const {
  const KeySearch::SeenOf seen = SeenIn(experiment);
  std::optional<CollectiveConfig> leader;
  for (const CollectiveConfig& config : open()) {
    if (!LooksMuchFaster(seen(config)) && !IsBelieved(config, experiment)) continue;
    if (!leader || Known(config, experiment).mean < Known(*leader, experiment).mean) leader = config;
  }
  return leader;
}

StepEffect CommonSearch::Known(const CollectiveConfig& config, const StepExperiment& experiment) const {
  const SeenConfig seen = SeenIn(experiment)(config);
  if (!belief_ || config != belief_->config) return seen.effect;
  const StepEffect& expected = belief_->expected;
  if (seen.steps == 0) return expected;
  if (seen.effect.error <= 0) return seen.effect;
  const double of_belief = 1 / (expected.error * expected.error);
  const double of_steps = 1 / (seen.effect.error * seen.effect.error);
  return {(of_belief * expected.mean + of_steps * seen.effect.mean) / (of_belief + of_steps),
          1 / std::sqrt(of_belief + of_steps)};
}

bool CommonSearch::IsBelieved(const CollectiveConfig& config, const StepExperiment& experiment) const {
  return belief_ && config == belief_->config && Known(config, experiment).mean < -kStillBelieved;
}

bool CommonSearch::MayChallenge(const CollectiveConfig& config, const CollectiveConfig& leader,
                                const StepExperiment& experiment) const {
  if (config == leader || search_.GaveUp(config)) return false;
  if (!IsKept(leader, experiment) && config.channels != leader.channels) return false;
  const SeenConfig seen = SeenIn(experiment)(config);
  return seen.steps < kUsesOfChallenger || seen.effect.mean < SeenIn(experiment)(leader).effect.mean;
}

std::optional<CollectiveConfig> CommonSearch::Winner(const StepExperiment& experiment) const {
  const auto winner = search_.Winner(SeenIn(experiment));
  if (!winner || experiment.blocks_since_arms() >= kMaxBlocksOfCommon) return winner;
  const auto leader = Leader(experiment);
  if (!leader) return winner;
  return winner != leader || HasChallenger(*leader, experiment) ? std::nullopt : winner;
}

bool CommonSearch::HasChallenger(const CollectiveConfig& leader, const StepExperiment& experiment) const {
  const auto& candidates = search_.candidates();
  return std::any_of(candidates.begin(), candidates.end(), [&](const ProbeCandidate& candidate) {
    return MayChallenge(candidate.config, leader, experiment);
  });
}

bool CommonSearch::LacksChallenger(const StepExperiment& experiment) const {
  const auto leader = Leader(experiment);
  if (!leader || SeenIn(experiment)(*leader).steps == 0) return false;
  return Next(experiment, true).size() == 1 && HasChallenger(*leader, experiment);
}

std::vector<CollectiveConfig> CommonSearch::Next(const StepExperiment& experiment, bool all_may_cost) const {
  const auto leader = Leader(experiment);
  // Even when only arms that look faster may be used, the config that was in use before a change of the
  // fabric may lead.
  if (leader && !all_may_cost && IsKept(*leader, experiment)) return {*leader};
  if (!leader || !all_may_cost) return search_.Next(SeenIn(experiment), all_may_cost);
  std::vector<CollectiveConfig> next{*leader};
  for (const CollectiveConfig& config : open()) {
    if (MayChallenge(config, *leader, experiment)) next.push_back(config);
  }
  return next;
}

bool CommonSearch::LooksFaster(const StepExperiment& experiment, double errors) const {
  return std::any_of(open().begin(), open().end(), [&](const CollectiveConfig& config) {
    const StepEffect effect = SeenIn(experiment)(config).effect;
    return effect.mean < -errors * effect.error;
  });
}

bool CommonSearch::over(const StepExperiment& experiment) const {
  KeySearch next = search_;
  next.Refill(kLeaveNcclAlone, SeenIn(experiment), search_.candidates().size());
  const bool waits = LooksFaster(experiment, kWaitedErrors) || next.open().size() > open().size() ||
                     (tries_again_ && HasUnjudgedArm(experiment));
  const double most = waits ? StepRegression::kMaxBlocks : MaxBlocks(experiment.noise());
  return next.over() || experiment.blocks_since_arms() >= most;
}

}  // namespace dynamiccl
