// SPDX-License-Identifier: Apache-2.0
// Says how a guard reports what it found about configs to later jobs, and how it uses what other jobs found.
#include <algorithm>
#include <cmath>

#include "src/decision/guard/guard.h"

namespace dynamiccl {
namespace {

// Circumstances are known only if the keys that were timed at least kLeastTimes times have this share of the
// bytes.
constexpr double kLeastShareTimed = 0.5;
constexpr uint32_t kLeastTimes = 2;
// Steps that a search waits at most for times of calls after a change of the fabric. A rank sends its times
// every quarter of a second or sooner.
constexpr uint64_t kStepsAwaited = 24;
// A config's effect is reported as a finding if at least this many steps used it and its standard error, in
// logs, is at most kMaxErrorOfFinding. Two steps are enough, because a config that is surely no gain may get
// no further use.
constexpr uint32_t kStepsOfFinding = 2;
constexpr double kMaxErrorOfFinding = 0.2;
// The least standard error of a finding, in logs. NCCL's own choice has this error, because its effect is 0
// by definition.
constexpr double kLeastErrorOfFinding = 0.001;

// Returns the largest number of channels among the candidates of a config's algorithm and protocol.
int MostChannels(const CollectiveConfig& config, const std::vector<ProbeCandidate>& candidates) {
  int most = config.channels;
  for (const ProbeCandidate& candidate : candidates) {
    const CollectiveConfig& other = candidate.config;
    if (other.algorithm == config.algorithm && other.protocol == config.protocol)
      most = std::max<int>(most, other.channels);
  }
  return most;
}

}  // namespace

double Guard::StepNsOfNccls() const {
  const auto step_ns = static_cast<double>(steps_.step_ns());
  const auto leader = common_.Leader(experiment_);
  if (plan_.common_pause == 0 || !leader) return step_ns;
  const double share = 1 - 1.0 / plan_.common_pause;
  return step_ns / (1 - share + share * std::exp(common_.Known(*leader, experiment_).mean));
}

std::optional<Circumstances> Guard::CircumstancesNow() const {
  double bytes = 0, timed_bytes = 0, slowness = 0, calls = 0, total_ns = 0;
  for (const auto& [code, key] : keys_) {
    const TimeLevel& level = key.account().default_level();
    const double share = ShareOf(key);
    calls += key.calls();
    total_ns += key.calls() * level.mean();
    if (share < options_.least_share) continue;
    if (!key.choice().leaves_nccl_alone()) return std::nullopt;
    bytes += share;
    if (level.count() < kLeastTimes || key.predicted_ns() <= 0) continue;
    timed_bytes += share;
    slowness += share * std::log2(level.mean() / key.predicted_ns());
  }
  if (timed_bytes == 0 || timed_bytes < kLeastShareTimed * bytes || steps_.step_ns() <= 0)
    return std::nullopt;
  const double of_step_ns = total_ns / calls * static_cast<double>(steps_.calls());
  return Circumstances{slowness / timed_bytes, of_step_ns / StepNsOfNccls()};
}

bool Guard::AwaitsCircumstances() const {
  return options_.expected && changed_circumstances_ && experiment_.steps() < kStepsAwaited &&
         !CircumstancesNow();
}

bool Guard::HasNewCircumstances() const {
  return options_.expected && common_.began() && !common_.circumstances() && CircumstancesNow();
}

// Forgets only the results that nothing is better than NCCL's choice. Every other choice stays, because steps
// compare it with NCCL's own all the time.
void Guard::ForgetOtherCircumstances() {
  if (!options_.began_like) return;
  const auto now = CircumstancesNow();
  if (!now || options_.began_like(*now)) return;
  std::erase_if(settled_, [this](const auto& each) {
    const auto key = keys_.find(each.first);
    return each.second && key != keys_.end() && key->second.choice().leaves_nccl_alone();
  });
}

EffectQuestion Guard::QuestionOf(const CollectiveConfig& config, const CommonSearch& search) const {
  EffectQuestion question;
  question.circumstances = search.circumstances().value_or(Circumstances{});
  question.subject.algorithm = config.algorithm;
  question.subject.protocol = config.protocol;
  question.subject.channels = ChannelCountOf(config.channels, MostChannels(config, search.candidates()));
  for (const auto& [code, key] : keys_) {
    if (ShareOf(key) >= options_.least_share)
      question.subject.collectives |= static_cast<uint8_t>(1u << static_cast<unsigned>(key.key().collective));
  }
  return question;
}

void Guard::UseFindings() {
  proposed_common_.Know(CircumstancesNow());
  std::optional<Belief> best = common_.began() ? proposed_common_.belief() : used_before_;
  double promised = best ? best->expected.mean : 0;
  if (common_.began()) {
    const auto leader = common_.Leader(experiment_);
    promised = leader ? common_.Known(*leader, experiment_).mean : 0;
  }
  const bool asks = options_.expected && proposed_common_.circumstances();
  for (const ProbeCandidate& candidate : proposed_common_.candidates()) {
    if (!asks || experiment_.Seen(kAllKeys, candidate.config, kLeaveNcclAlone).steps > 0) continue;
    const auto expected = options_.expected(QuestionOf(candidate.config, proposed_common_));
    if (!expected || !IsPromising(expected->effect) || expected->effect.mean >= promised) continue;
    best = Belief{candidate.config, expected->effect, expected->from};
    promised = expected->effect.mean;
  }
  if (best) proposed_common_.Believe(*best);
}

std::vector<std::pair<FindingKey, StepFinding>> Guard::Findings() const {
  // Without circumstances a search says nothing to other jobs, so the findings of the search before it still
  // count.
  if (!searches_together() || !common_.began() || !common_.circumstances()) return kept_findings_;
  std::vector<std::pair<FindingKey, StepFinding>> findings;
  EffectQuestion nccls = QuestionOf(kLeaveNcclAlone, common_);
  findings.emplace_back(nccls.subject, StepFinding{nccls.circumstances, 0, kLeastErrorOfFinding, 1, 0});
  for (const ProbeCandidate& candidate : common_.candidates()) {
    const SeenConfig seen = experiment_.Seen(kAllKeys, candidate.config, kLeaveNcclAlone);
    if (seen.steps < kStepsOfFinding || !(seen.effect.error <= kMaxErrorOfFinding)) continue;
    const EffectQuestion question = QuestionOf(candidate.config, common_);
    const double error = std::max(seen.effect.error, kLeastErrorOfFinding);
    findings.emplace_back(question.subject,
                          StepFinding{question.circumstances, seen.effect.mean, error, seen.steps, 0});
  }
  return findings;
}

}  // namespace dynamiccl
