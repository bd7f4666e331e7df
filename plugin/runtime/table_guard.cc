// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/table_guard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/decision/guard/learnt_at_site.h"
#include "src/decision/guard/table_plan.h"
#include "src/policy/probe_candidates.h"

namespace dynamiccl {
namespace {

// Assumed cost of timing a call, as a share of the call's time. On an H200 with NCCL 2.32.3 stamping kernels
// cost 20 % of a call of 128 KiB, 2.4 % at 1 MiB and 1.1 % at 4 MiB (docs/results/gpu.md).
constexpr double kTimingCost = 0.04;
// While a change is verified, the ranks are ordered to time this many calls at once. The order is renewed
// when 32 of them are left, so there is one message in 96 calls.
constexpr uint64_t kAllTimedCalls = 128;
// Nanoseconds from an offer to which the ranks did not agree to the guard's next offer.
constexpr int64_t kAgainNs = 1'000'000;
// The guard checks once a second which share of a key's time the program waits for. It writes the share into
// the trace when it has changed by a tenth.
constexpr int64_t kSharesEveryNs = 1'000'000'000;
constexpr double kNewShare = 0.1;
// The first plan may contain the choices of earlier runs for at most this many keys that were not called yet.
// Every other key gets the choice of earlier runs when it is first called.
constexpr size_t kMaxExpected = 300;

// Totals only grow, so an estimate that was corrected downwards adds nothing.
void Add(std::atomic<uint64_t>& counter, double by) {
  counter.fetch_add(static_cast<uint64_t>(std::max(0.0, by)), std::memory_order_relaxed);
}

std::string ChoiceName(const CollectiveConfig& config) {
  return config.leaves_nccl_alone() ? "NCCL's choice" : Describe(config);
}

// Returns a key's choice in a plan; `otherwise` is the policy's choice.
CollectiveConfig ChoiceIn(const TablePlan& plan, const TableKey& key, const CollectiveConfig& otherwise) {
  for (const KeyPlan& entry : plan.keys) {
    if (KeyCode(entry.key) == KeyCode(key)) return entry.choice;
  }
  return plan.others_use_policy ? otherwise : kLeaveNcclAlone;
}

}  // namespace

TableGuard::TableGuard(GuardSubject subject, std::shared_ptr<const Policy> policy, GuardTotals& totals)
    : subject_(std::move(subject)),
      totals_(totals),
      policy_(std::move(policy)),
      calls_(ReportersOf(subject_.n_ranks)),
      guard_(NewGuard()) {
  ExpectWhatIsKnown();
}

Guard TableGuard::NewGuard() {
  GuardOptions options;
  options.timing_cost = subject_.all_timed ? 0 : kTimingCost;
  options.first = FirstPlan(policy_.get());
  if (subject_.store || policy_)
    options.expected = [this](const EffectQuestion& question) { return Expected(question); };
  if (subject_.store) {
    options.began_like = [this](const Circumstances& now) {
      return BeganLike(*subject_.store, subject_.place, now, RealtimeNanoseconds() / 1'000'000'000);
    };
  }
  return Guard(options, [this](const TableKey& key, Regime regime) { return Knowledge(key, regime); });
}

KeyKnowledge TableGuard::Knowledge(const TableKey& key, Regime regime) const {
  KeyKnowledge known;
  if (const auto seen = seen_.find(KeyCode(key)); seen != seen_.end()) {
    known.policy_choice = seen->second.policy_choice;
    known.candidates = UnlikeFirst(policy_.get(), subject_.input,
                                   {key.collective, LowerBound(key.size_class), seen->second.allowed},
                                   {seen->second.nccls, subject_.channels_are_known});
    known.nccls_ns = 1000 * TimeOfNcclsChoice(subject_.input, key.collective, LowerBound(key.size_class),
                                              seen->second.nccls, seen->second.allowed);
  }
  if (subject_.store) {
    known.confirmed =
        ConfirmedAtSite(*subject_.store, subject_.place, key, regime, RealtimeNanoseconds() / 1'000'000'000);
  }
  return known;
}

std::optional<Expectation> TableGuard::Expected(EffectQuestion question) const {
  question.subject.place = subject_.place;
  const auto expected = ExpectedBy({subject_.store.get(), policy_.get(), subject_.input.fabric}, question,
                                   RealtimeNanoseconds() / 1'000'000'000);
  if (expected)
    Log(LogLevel::kTrace,
        "{}/{}, {} channels: {} {:+.1f} +- {:.1f} %, with calls at {:.2f} times their model and {:.0f} % of "
        "a step",
        Name(question.subject.algorithm), Name(question.subject.protocol), Name(question.subject.channels),
        expected->from == ExpectedFrom::kPolicy ? "the policy expects" : "jobs elsewhere let expect",
        100 * expected->effect.mean, 100 * expected->effect.error, std::exp2(question.circumstances.slowness),
        100 * question.circumstances.share);
  return expected;
}

void TableGuard::ExpectWhatIsKnown() {
  if (!subject_.store) return;
  const int64_t now_s = RealtimeNanoseconds() / 1'000'000'000;
  size_t expected = 0;
  for (const auto& [key, confirmed] : subject_.store->entries()) {
    if (key.place != subject_.place || key.regime != Regime::kNormal) continue;
    const auto known = ConfirmedAtSite(*subject_.store, subject_.place, key.key, key.regime, now_s);
    if (!known || ++expected > kMaxExpected) continue;
    guard_.Expect(key.key, *known);
  }
}

// Calls of versions before the last restart used another policy, so they are skipped.
void TableGuard::ReadCalls(int64_t now_ns) {
  DecidedCall decided;
  while (subject_.feed->Pop(decided)) {
    if (decided.version < first_version_) continue;
    seen_[KeyCode(decided.key)] = {decided.policy_choice, decided.nccls, decided.allowed};
    newest_call_ = decided.number;
    calls_.Add(decided);
  }
  while (const auto call = calls_.Next(now_ns)) guard_.TakeCall(*call);
}

void TableGuard::OrderTimes() {
  if (guard_.wants_more_times() && all_timed_until_ < newest_call_ + kAllTimedCalls / 4)
    all_timed_until_ = newest_call_ + kAllTimedCalls;
}

std::optional<TableOffer> TableGuard::Tick(int64_t now_ns) {
  now_ns_ = now_ns;
  ReadCalls(now_ns);
  OrderTimes();
  UpdateTotals();
  RecordWaitedShares(now_ns);
  if (now_ns < again_ns_) return std::nullopt;
  auto proposal = guard_.Tick(now_ns);
  if (!proposal) return std::nullopt;
  return Offer(std::move(*proposal));
}

// The offer may outlive this guard, so it holds a weak pointer.
TableOffer TableGuard::Offer(Proposal proposal) {
  TableOffer offer;
  offer.reason = proposal.revocation ? SwitchReason::kRevocation : SwitchReason::kAdoption;
  offer.plan = EncodePlan(proposal.plan);
  offer.ended = [guard = weak_from_this(), proposal = std::move(proposal),
                 before = guard_.plan()](const SwitchOutcome& outcome) {
    if (const auto self = guard.lock()) self->Ended(outcome, proposal, before);
  };
  return offer;
}

void TableGuard::Ended(const SwitchOutcome& outcome, const Proposal& proposal, const TablePlan& before) {
  if (outcome.end != SwitchOutcome::End::kCommitted) {
    totals_.failed.fetch_add(1, std::memory_order_relaxed);
    again_ns_ = now_ns_ + kAgainNs;
    return guard_.Failed(now_ns_);
  }
  guard_.Committed(outcome.version, now_ns_);
  totals_.versions[static_cast<size_t>(proposal.reason)].fetch_add(1, std::memory_order_relaxed);
  LogVersion(proposal, before, outcome.version);
}

// Returns the estimated effects of arms on a step, relative to `choice`, for example "; Ring/LL/2 -3.1 +- 1.0
// % in 12 steps".
std::string EffectsText(const StepExperiment& experiment, uint32_t key,
                        const std::vector<CollectiveConfig>& arms, const CollectiveConfig& choice) {
  std::string text;
  for (const CollectiveConfig& arm : arms) {
    const SeenConfig seen = experiment.Seen(key, arm, choice);
    text += fmt::format("; {} {:+.1f} +- {:.1f} % in {} steps", ChoiceName(arm), 100 * seen.effect.mean,
                        100 * seen.effect.error, seen.steps);
  }
  return text;
}

// Logs the effect of each arm of one key.
void LogArms(const Guard& guard, const KeyPlan& entry, uint32_t version) {
  if (entry.arms.empty()) return;
  const std::string arms = EffectsText(guard.experiment(), KeyCode(entry.key), entry.arms, entry.choice);
  Log(LogLevel::kTrace, "table v{}: {} of {} bytes, role {}, arms in one step of {}{}", version,
      Name(entry.key.collective), LowerBound(entry.key.size_class), Name(entry.key.role), entry.spacing,
      arms);
}

// Logs the effect of each common arm of the plan, and of those common arms that only the previous version
// had.
void LogCommonArms(const Guard& guard, const TablePlan& plan, const TablePlan& before, uint32_t version) {
  const std::vector<CollectiveConfig>& arms = plan.common;
  std::vector<CollectiveConfig> gone = before.common;
  std::erase_if(gone, [&](const CollectiveConfig& arm) {
    return std::find(arms.begin(), arms.end(), arm) != arms.end();
  });
  if (arms.empty() && gone.empty()) return;
  const std::string pace = plan.common_pause > 0
                               ? fmt::format("all steps but one of {}, the first arm but for one of {}",
                                             plan.common_pause, plan.common_spacing)
                               : fmt::format("one step of {}", plan.common_spacing);
  const StepExperiment& experiment = guard.experiment();
  Log(LogLevel::kTrace, "table v{}: all keys together, in {}{}{}{}", version, pace,
      EffectsText(experiment, kAllKeys, arms, kLeaveNcclAlone), gone.empty() ? "" : "; no more",
      EffectsText(experiment, kAllKeys, gone, kLeaveNcclAlone));
}

std::string_view Name(ExpectedFrom from) {
  switch (from) {
    case ExpectedFrom::kOtherPlaces:
      return "jobs in other places";
    case ExpectedFrom::kPolicy:
      return "the policy";
    case ExpectedFrom::kBeforeChange:
      return "steps before the fabric changed";
  }
  return "";
}

// Logs by how much the search for common arms expects one config to change steps, in the version with which
// the search begins.
void LogBelief(const Guard& guard, const TablePlan& plan, const TablePlan& before, uint32_t version) {
  const auto& belief = guard.belief();
  if (!belief || plan.common.empty() || !before.common.empty()) return;
  Log(LogLevel::kInfo, "table v{}: {} for all keys is expected to change steps by {:+.0f} +- {:.0f} %, by {}",
      version, ChoiceName(belief->config), 100 * belief->expected.mean, 100 * belief->expected.error,
      Name(belief->from));
}

// Logs one line for each key whose choice has changed, and one for the version. The report reads the latter
// (VersionReasons in tools/report/guard_account.h).
void TableGuard::LogVersion(const Proposal& proposal, const TablePlan& before, uint32_t version) const {
  size_t arms = proposal.plan.common.size();
  LogBelief(guard_, proposal.plan, before, version);
  LogCommonArms(guard_, proposal.plan, before, version);
  for (const KeyPlan& entry : proposal.plan.keys) {
    if (proposal.carried.contains(KeyCode(entry.key))) continue;
    arms += entry.arms.size();
    LogArms(guard_, entry, version);
    const auto seen = seen_.find(KeyCode(entry.key));
    const bool known = seen != seen_.end();
    const CollectiveConfig was =
        known ? ChoiceIn(before, entry.key, seen->second.policy_choice) : entry.choice;
    if (known && was == entry.choice) continue;
    Log(LogLevel::kInfo, "table v{}: {} of {} bytes, role {}: {}{} ({})", version, Name(entry.key.collective),
        LowerBound(entry.key.size_class), Name(entry.key.role), ChoiceName(entry.choice),
        known ? " in place of " + ChoiceName(was) : "", Name(proposal.reason));
  }
  const size_t carried = proposal.carried.size();
  const StepExperiment& experiment = guard_.experiment();
  Log(LogLevel::kInfo, "table v{}: {}; {} keys, {} trials{}, {} steps of the experiment so far{}", version,
      Name(proposal.reason), proposal.plan.keys.size() - carried, arms,
      carried == 0 ? "" : fmt::format(", {} other sizes as the nearest of them", carried),
      experiment.blocks() * StepExperiment::kStepsOfBlock,
      experiment.device_tells() ? ", timed by the device" : "");
}

void TableGuard::Restart(std::shared_ptr<const Policy> policy, uint32_t version) {
  policy_ = std::move(policy);
  first_version_ = version;
  seen_.clear();
  kept_.clear();
  calls_ = TimedCalls(reporters());
  added_probing_ns_ = 0;
  added_total_ns_ = {};
  guard_ = NewGuard();
  ExpectWhatIsKnown();
}

void TableGuard::UpdateTotals() {
  const uint64_t lost = subject_.feed->lost();
  totals_.lost.fetch_add(lost - std::exchange(added_lost_, lost), std::memory_order_relaxed);
  Add(totals_.probing_ns, guard_.probing_ns() - std::exchange(added_probing_ns_, guard_.probing_ns()));
  for (size_t i = 0; i < added_total_ns_.size(); ++i) {
    const double total_ns = guard_.total_ns(static_cast<Criticality>(i));
    Add(totals_.guarded_ns[i], total_ns - std::exchange(added_total_ns_[i], total_ns));
  }
}

void TableGuard::RecordWaitedShares(int64_t now_ns) {
  if (subject_.recorder == nullptr || now_ns < shares_from_ns_) return;
  shares_from_ns_ = now_ns + kSharesEveryNs;
  for (const auto& [code, key] : guard_.keys()) {
    if (guard_.CriticalityOf(key.key()) == Criticality::kUnknown) continue;
    const auto waited = guard_.effects().shares().Of(code);
    if (!waited) continue;
    const auto recorded = recorded_shares_.find(code);
    if (recorded != recorded_shares_.end() && std::abs(recorded->second - waited->share) < kNewShare)
      continue;
    recorded_shares_[code] = waited->share;
    subject_.recorder->Append(
        WaitedShareRecord({now_ns, subject_.number_in_trace(), key.key().collective,
                           LowerBound(key.key().size_class), key.key().role, waited->share}));
  }
}

SiteStore TableGuard::UnsavedResults(int64_t now_s) const {
  SiteStore fresh;
  const SiteStore learnt = LearntAtSite(guard_, subject_.place, now_s);
  for (const auto& [key, confirmed] : learnt.entries()) {
    const auto kept = kept_.find({KeyCode(key.key), key.regime});
    if (kept == kept_.end() || kept->second != confirmed.config) fresh.Learn(key, confirmed);
  }
  for (const auto& [key, finding] : learnt.findings()) {
    const auto kept = kept_findings_.find(key);
    if (kept == kept_findings_.end() || kept->second != finding.steps) fresh.Learn(key, finding);
  }
  return fresh;
}

void TableGuard::MarkSaved(const SiteStore& learnt) {
  for (const auto& [key, confirmed] : learnt.entries())
    kept_.insert_or_assign({KeyCode(key.key), key.regime}, confirmed.config);
  for (const auto& [key, finding] : learnt.findings()) kept_findings_.insert_or_assign(key, finding.steps);
}

}  // namespace dynamiccl
