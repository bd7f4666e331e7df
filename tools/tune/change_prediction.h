// SPDX-License-Identifier: Apache-2.0
// Predicts what a setting of the framework would be worth, with the simulator of `dynamiccl advise`. The run
// in which the job was watched gives the job's calls, their times, and the time that remains for computing.
// The simulator then runs the calls that the job would make with the setting. Configs of NCCL are not
// predicted, because the calls were timed only with NCCL's own choice.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/simulator/system.h"
#include "tools/advise/step_prediction.h"
#include "tools/tune/candidates.h"

namespace dynamiccl {

// In all measured cases predictions of buckets and of resharding were off by at most this share of a step
// (docs/results/tune.md).
inline constexpr double kPredictionError = 0.10;

class ChangePrediction {
 public:
  // Prepares predictions from the run in which the job was watched. An error says why they are not possible.
  static Result<ChangePrediction> From(const WatchedRun& base);

  // Returns the predicted step time with the candidate's settings, divided by that of the unchanged job.
  // Nothing for a candidate with a config, and for settings that the simulator does not know.
  std::optional<double> RatioOf(const Candidate& candidate) const;
  // Returns the share of the unchanged job's simulated step that waits for communication, from 0 to 1.
  double ExposedShare() const;
  // Returns each call of a step with the candidate's settings, so far as they decide the step's time. Two
  // candidates with equal lists are the same to the job. For jobs with buckets the calls stand in their
  // order. If FSDP2 waits for each call before it goes on, the order changes nothing, and the list is sorted.
  // Empty for other jobs, for settings that only change when calls are issued, and where RatioOf returns
  // nothing.
  std::vector<std::pair<Collective, uint64_t>> CallsOf(const Candidate& candidate) const;

 private:
  ChangePrediction() = default;
  // Returns the job with the candidate's settings; nothing where RatioOf returns nothing.
  std::optional<AdvisedJob> JobWith(const Candidate& candidate) const;

  AdvisedJob job_;
  System system_;
  int ranks_per_node_ = 1;
  SeenSchedule seen_;
  TrainerCompute compute_;
  PredictedStep own_;
};

// The predicted step time of one candidate, or the reason why it is not tried. The journal keeps it.
struct Forecast {
  // The candidate's name.
  std::string setting;
  // Predicted step time divided by that of the unchanged job; 0: not predicted.
  double ratio = 0;
  // Candidate::not_tried.
  std::string not_tried;
};

// Returns the forecasts of the framework's candidates, the most promising first. A candidate is marked as not
// tried if it is predicted to lose more than kPredictionError, or if it makes the same calls as the unchanged
// job or as a candidate before it.
std::vector<Forecast> ForecastsOf(const ChangePrediction& prediction,
                                  const std::vector<Candidate>& candidates);
// Copies the forecasts into the list, orders the list's candidates by them, and takes out the candidates that
// are not tried.
void Apply(const std::vector<Forecast>& forecasts, CandidateList& list);

}  // namespace dynamiccl
