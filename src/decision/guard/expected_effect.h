// SPDX-License-Identifier: Apache-2.0
// Predicts how a config will change the steps of a job, from what experiments of other jobs found
// (SiteStore::findings), or else by the networks of a policy that learnt from such experiments. No
// description of a fabric says that one of its links is slow, but its calls show it by taking longer than the
// cost model predicts. So a finding counts if its job's calls were about as slow, whatever place it comes
// from.
//
// The prediction from findings is a kernel regression (Nadaraya, "On Estimating Regression", Theory Probab.
// Appl. 9 (1964)) that is drawn to 0 where few findings are near.
//
// Only the leader of a communicator makes predictions. They decide which config its guard proposes to try
// first, and reach the other ranks as the arms of a proposed plan. So they may be computed from values that
// only the leader has, such as the times of its calls and its site store: every rank decides by the plan on
// which all have agreed, and never by a prediction.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "src/collective/fabric.h"
#include "src/decision/guard/step_regression.h"
#include "src/decision/guard/table_plan.h"
#include "src/decision/site_store/site_store.h"

namespace dynamiccl {

struct Policy;

// A config, and the job whose steps it would change.
struct EffectQuestion {
  FindingKey subject;
  Circumstances circumstances;
};

// Returns the predicted effect on a step, as StepFinding::effect states it, and the prediction's standard
// deviation. Returns nothing if no finding that is trusted at `now_s` (seconds since 1970) resembles the
// question. Findings of the job's own place count like all others. A pure function.
std::optional<StepEffect> ExpectedEffect(const SiteStore& store, const EffectQuestion& question,
                                         int64_t now_s);

// Returns the effect that the policy's networks predict. Returns nothing if the policy learnt from no
// experiments, or if the question lies outside of what the networks saw in training. `fabric` is the job's. A
// pure function.
std::optional<StepEffect> PredictedEffectOf(const Policy& policy, const Fabric& fabric,
                                            const EffectQuestion& question);

// The source of an expectation.
enum class ExpectedFrom : uint8_t {
  kOtherPlaces,
  kPolicy,
  kBeforeChange,  // this job's steps before a change of the fabric
};
struct Expectation {
  StepEffect effect;
  ExpectedFrom from = ExpectedFrom::kOtherPlaces;
};

// The sources of a job's expectations; null: the job does not have this one.
struct ExpectationSources {
  const SiteStore* store = nullptr;
  const Policy* policy = nullptr;
  Fabric fabric;
};
// Returns what the store's findings predict. Only if they predict nothing for this config, returns what the
// policy predicts: findings were measured on this site, a policy may come from anywhere. A pure function.
std::optional<Expectation> ExpectedBy(const ExpectationSources& sources, const EffectQuestion& question,
                                      int64_t now_s);

// True if an earlier run in this place began in like circumstances, or if no finding of this place is trusted
// at `now_s`. If false, a link of the place has become slow since that run, or a slow link is well again.
bool BeganLike(const SiteStore& store, const SitePlace& place, const Circumstances& circumstances,
               int64_t now_s);

// Returns the plan of a communicator's first version. A policy that predicts effects on steps leaves keys to
// NCCL until steps or a prediction speak for another config: its choices rest on the times of single calls,
// and a call that is faster alone can make a step slower (docs/results/adaptive-steps.md). Every other policy
// chooses from the first call on. `policy` may be null.
TablePlan FirstPlan(const Policy* policy);

// True if a config with this expected effect is so likely to be good that steps should use it at once.
bool IsPromising(const StepEffect& expected);

}  // namespace dynamiccl
