// SPDX-License-Identifier: Apache-2.0
// Predicts what a config will do to the steps of a job, from what experiments in other places found
// (SiteStore::findings). No description of a fabric says that one of its links is slow, but its calls show
// it: they take longer than the cost model predicts. So findings from like circumstances count, whatever the
// place is called.
//
// The prediction is a kernel regression (Nadaraya, "On Estimating Regression", Theory Probab. Appl. 9
// (1964)) that is drawn to 0 where few findings are near.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "src/decision/guard/step_regression.h"
#include "src/decision/site_store/site_store.h"

namespace dynamiccl {

// A config, and the job whose steps it would change.
struct EffectQuestion {
  FindingKey subject;
  Circumstances circumstances;
};

// Returns the effect on a step that StepFinding::effect states, with the standard deviation of the
// prediction; nothing if no finding that is trusted at `now_s` (seconds since 1970) resembles the question.
// Findings of the place itself count like all others. A pure function.
std::optional<StepEffect> ExpectedEffect(const SiteStore& store, const EffectQuestion& question,
                                         int64_t now_s);

// True if an earlier run in this place began in like circumstances, or if none of its findings is trusted at
// `now_s`. If not, a link has become slow since then, or is well again.
bool BeganLike(const SiteStore& store, const SitePlace& place, const Circumstances& circumstances,
               int64_t now_s);

// True if a config with this expected effect is so likely to be good that steps should use it at once.
bool IsPromising(const StepEffect& expected);

}  // namespace dynamiccl
