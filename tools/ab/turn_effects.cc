// SPDX-License-Identifier: Apache-2.0
#include "tools/ab/turn_effects.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "src/collective/size_class.h"
#include "src/decision/override_rules.h"
#include "tools/ab/rule_settings.h"

namespace dynamiccl {
namespace {

// Standard errors on each side of a 95 % interval.
constexpr double kErrorsOfInterval = 1.96;
// The least standard error of an effect, as a logarithm: no experiment measures a step's time more exactly.
constexpr double kLeastError = 0.001;
// Fewer timed calls than this do not show a job's circumstances.
constexpr size_t kLeastTimedCalls = 16;

// Returns no rules for "default".
Result<OverrideRules> RulesOf(const std::string& setting) {
  if (setting == "default") return OverrideRules();
  if (std::filesystem::exists(setting)) return OverrideRules::ReadFile(setting);
  DYNAMICCL_TRY(const std::string text, RulesOfSetting(setting));
  return OverrideRules::Parse(text, setting + ".toml");
}

// True if the rules and, where no rule matches, the job leave all calls to NCCL.
bool LeavesNcclAlone(const OverrideRules& rules, bool has_policy) {
  const auto leaves = [](const OverrideRule& rule) { return rule.config.leaves_nccl_alone(); };
  const auto& all = rules.rules();
  return std::all_of(all.begin(), all.end(), leaves) && (!has_policy || !all.empty());
}

RuleSubject SubjectOf(const TraceCall& call, const CommunicatorInfo& communicator) {
  const CollectiveCall& issued = call.issued.call;
  RuleSubject subject{.collective = issued.collective,
                      .bytes = issued.bytes,
                      .n_nodes = communicator.n_nodes,
                      .n_ranks = communicator.n_ranks};
  if (call.decision) {
    subject.role = call.decision->role;
    subject.phase = call.decision->phase;
    subject.stage = call.decision->stage;
  }
  return subject;
}

// The value that all calls share; unknown once two differ.
template <typename T>
class Common {
 public:
  void Add(T value) {
    if (value_ && *value_ != value) differ_ = true;
    value_ = value;
  }
  T value() const { return differ_ ? T::kUnknown : value_.value_or(T::kUnknown); }

 private:
  std::optional<T> value_;
  bool differ_ = false;
};

// The calls of a job to which a setting's rules give a config.
class AffectedCalls {
 public:
  AffectedCalls(const OverrideRules& rules, const ComparedJob& job) {
    for (const TraceCall& call : job.calls->calls) {
      const auto communicator = job.calls->communicators.find(call.communicator);
      if (communicator == job.calls->communicators.end()) continue;
      const RuleSubject subject = SubjectOf(call, communicator->second);
      const OverrideRule* const rule = rules.Match(subject);
      if (rule == nullptr && job.has_policy && subject.bytes >= kLeastBytesOfSetting) mixed_ = true;
      if (rule == nullptr || rule->config.leaves_nccl_alone()) continue;
      Add(subject, rule->config);
    }
  }

  // True if at least one call is affected, all affected calls get the same config, and all other calls are
  // left to NCCL.
  bool IsOneConfig() const { return config_ && !mixed_; }

  MeasuredEffect Effect(const MeasurementContext& fabric) const {
    MeasuredEffect effect;
    effect.topology = fabric.topology;
    effect.collectives = collectives_;
    effect.bytes = static_cast<uint64_t>(squares_ / bytes_);
    effect.role = role_.value();
    effect.phase = phase_.value();
    effect.config = *config_;
    const int most = fabric.model.fabric.max_channels;
    effect.channel_count = ChannelCountOf(config_->channels == 0 ? most : config_->channels, most);
    return effect;
  }

 private:
  void Add(const RuleSubject& subject, const CollectiveConfig& config) {
    if (subject.bytes == 0) return;
    if (config_ && *config_ != config) mixed_ = true;
    config_ = config;
    collectives_ |= static_cast<uint8_t>(1u << static_cast<unsigned>(subject.collective));
    const auto bytes = static_cast<double>(subject.bytes);
    bytes_ += bytes;
    squares_ += bytes * bytes;
    role_.Add(subject.role);
    phase_.Add(subject.phase);
  }

  std::optional<CollectiveConfig> config_;
  bool mixed_ = false;
  uint8_t collectives_ = 0;
  double bytes_ = 0, squares_ = 0;
  Common<Role> role_;
  Common<Phase> phase_;
};

// The time of the job's communication under NCCL's choice.
struct Communication {
  double slowness = 0;  // log2, averaged by bytes
  double share = 0;     // part of a step's time
};

std::optional<Communication> CommunicationOf(const TurnComparison& comparison, const ComparedJob& job) {
  double bytes = 0, slowness = 0, microseconds = 0;
  size_t timed = 0;
  for (const TraceCall& call : job.calls->calls) {
    const CollectiveCall& issued = call.issued.call;
    if (call.issued.duration_ns <= 0 || issued.bytes == 0) continue;
    if (!call.decision || !call.decision->config.leaves_nccl_alone()) continue;
    const double expected_us =
        TimeOfNcclsChoice(job.fabric.model, issued.collective, LowerBound(SizeClassOf(issued.bytes)),
                          kLeaveNcclAlone, NcclConfigs(issued.collective));
    if (expected_us <= 0) continue;
    const double us = static_cast<double>(call.issued.duration_ns) / 1e3;
    const auto weight = static_cast<double>(issued.bytes);
    bytes += weight;
    slowness += weight * std::log2(us / expected_us);
    microseconds += us;
    ++timed;
  }
  const double step_us = 1e3 * comparison.settings.front().step_ms;
  if (timed < kLeastTimedCalls || step_us <= 0) return std::nullopt;
  const double of_step =
      microseconds / static_cast<double>(timed) * static_cast<double>(comparison.calls_of_step);
  return Communication{slowness / bytes, of_step / step_us};
}

// Sets ratio, error and steps of `effect`; false if they are not known.
bool SetTimes(const SettingTimes& times, uint32_t turn_steps, MeasuredEffect& effect) {
  const ConfidenceInterval& interval = times.interval;
  if (!std::isfinite(interval.high) || !(interval.low > 0) || !(times.ratio > 0)) return false;
  effect.log_ratio = std::log(times.ratio);
  effect.error =
      std::max(kLeastError, (std::log(interval.high) - std::log(interval.low)) / (2 * kErrorsOfInterval));
  // The first step of a turn does not count.
  effect.steps = static_cast<uint32_t>(times.turns) * std::max(1u, turn_steps - 1);
  return effect.steps > 0;
}

}  // namespace

Status CheckIsNcclsChoice(const std::string& first, bool has_policy) {
  DYNAMICCL_TRY(const OverrideRules rules, RulesOf(first));
  if (LeavesNcclAlone(rules, has_policy)) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument,
                            "effects are relative to NCCL's choice, and the first setting is '{}'{}", first,
                            has_policy ? " under a policy" : ""),
                  fmt::format("name {} as the first setting", has_policy ? "nccl" : "default"));
}

Result<TurnEffects> EffectsOfTurns(const TurnComparison& comparison, const ComparedJob& job) {
  DYNAMICCL_CHECK_OK(CheckIsNcclsChoice(job.settings.front(), job.has_policy));
  TurnEffects effects;
  effects.file.library = "dynamiccl ab";
  effects.file.contexts = {job.fabric};
  const auto communication = CommunicationOf(comparison, job);
  for (size_t i = 1; i < job.settings.size(); ++i) {
    DYNAMICCL_TRY(const OverrideRules rules, RulesOf(job.settings[i]));
    const AffectedCalls calls(rules, job);
    MeasuredEffect effect;
    if (calls.IsOneConfig()) effect = calls.Effect(job.fabric);
    if (!calls.IsOneConfig() || !SetTimes(comparison.settings[i], comparison.turn_steps, effect)) {
      ++effects.left_out;
      continue;
    }
    if (communication) effect.slowness = communication->slowness;
    if (communication) effect.share = communication->share;
    effects.file.effects.push_back(effect);
  }
  return effects;
}

}  // namespace dynamiccl
