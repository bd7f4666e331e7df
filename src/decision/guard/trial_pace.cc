// SPDX-License-Identifier: Apache-2.0
// The budget for trials in a call of a key is
//     share of time x total_ns x (the key's part of what can be won) / the key's calls
// and a group of trials costs group x trial_ns. The rest is the number of calls after which the budget has
// paid for the group. The share of time grows with the credit that is left.
#include "src/decision/guard/trial_pace.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// Calls that a trial most often takes until it has an answer.
constexpr double kCallsOfTrial = 4;
// After a change of the fabric trials come at once if they may cost at most this share of the credit: the
// choices of before are gone, and the job is known to be long.
constexpr double kShareAtOnce = 0.5;
// The share of time grows by this part of itself with each call a key that is left to pay for trials.
constexpr double kFasterACreditCall = 0.5;
// The share of time is never more than this: 5 % of the communication time (docs/guard.md), which limits what
// 20 steps lose while trials last.
constexpr double kMaxShareOfTrials = 0.05;
// Calls of the choice after a group of trials at most. A uint16_t of the plan carries it.
constexpr double kLongestRest = 4096;

// The share of the communication time that trials may cost at present.
double ShareOfTime(const TrialFunds& funds) {
  const double credit_calls = std::max(0.0, funds.credit_ns) / std::max(1.0, funds.call_of_each_key_ns);
  const bool first = funds.total_ns < kFirstProbingCalls * funds.call_of_each_key_ns;
  const double budget = first ? kFirstProbingBudget : kProbingBudget;
  return std::min(budget * (1 + kFasterACreditCall * credit_calls), kMaxShareOfTrials);
}

}  // namespace

double ProbingBudgetNs(double total_ns, double call_of_each_key_ns) {
  const double first_ns = std::min(total_ns, kFirstProbingCalls * call_of_each_key_ns);
  return kFirstProbingBudget * first_ns + kProbingBudget * (total_ns - first_ns);
}

std::vector<uint16_t> RestsBetweenTrials(const std::vector<TriedKey>& keys, const TrialFunds& funds) {
  std::vector<uint16_t> rests(keys.size(), 0);
  double need_ns = 0;
  double worth_ns = 0;
  for (const TriedKey& key : keys) {
    need_ns += kCallsOfTrial * key.trials * key.trial_ns;
    worth_ns += key.worth_ns;
  }
  if (funds.after_change && need_ns <= kShareAtOnce * funds.credit_ns) return rests;
  const double may_cost_ns = ShareOfTime(funds) * funds.total_ns;
  for (size_t i = 0; i < keys.size(); ++i) {
    const TriedKey& key = keys[i];
    const double share = worth_ns > 0 ? key.worth_ns / worth_ns : 1;
    const double a_call_ns = may_cost_ns * share / std::max(key.calls, 1u);
    const double group = std::min(funds.group, key.trials);
    const double calls = group * key.trial_ns / std::max(a_call_ns, 1e-9);
    rests[i] = static_cast<uint16_t>(std::clamp(calls - group - 1, 0.0, kLongestRest));
  }
  return rests;
}

}  // namespace dynamiccl
