// SPDX-License-Identifier: Apache-2.0
// Predicts what a setting of the framework would be worth, from the start in which the job was watched: the
// simulator of `dynamiccl advise` gets its calls, their times, and the time that is left for computing, then
// the calls that the setting would make of them. Configs of NCCL are not predicted: the calls were timed with
// NCCL's own choice only.
#pragma once

#include <optional>
#include <string>
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
  // An error says why the job's changes cannot be predicted.
  static Result<ChangePrediction> From(const WatchedRun& base);

  // Predicted step with the candidate's settings as a share of the job's own; nothing for a candidate with a
  // config, and for settings that the simulator does not know.
  std::optional<double> RatioOf(const Candidate& candidate) const;
  // Bytes of a DDP job's calls: two candidates with equal ones are the same to it. Empty for other jobs,
  // whose settings change when a call is issued, and where RatioOf is nothing.
  std::vector<uint64_t> CallsOf(const Candidate& candidate) const;

 private:
  ChangePrediction() = default;
  // The job with the candidate's settings; nothing where RatioOf is nothing.
  std::optional<AdvisedJob> JobWith(const Candidate& candidate) const;

  AdvisedJob job_;
  System system_;
  int ranks_per_node_ = 1;
  SeenSchedule seen_;
  TrainerCompute compute_;
  int64_t step_ns_ = 0;
};

// The prediction for one candidate, which the journal keeps.
struct Forecast {
  // The candidate's name.
  std::string setting;
  // Predicted step as a share of the job's own; 0: not predicted.
  double ratio = 0;
  // Candidate::not_tried.
  std::string not_tried;
};

// Returns the forecasts of the framework's candidates, the most promising first. Not worth a start are those
// that lose more than kPredictionError and those with the calls of one that is tried.
std::vector<Forecast> ForecastsOf(const ChangePrediction& prediction,
                                  const std::vector<Candidate>& candidates);
// Fills the forecasts into the list, puts its candidates into their order, and takes out those that are not
// worth a start.
void Apply(const std::vector<Forecast>& forecasts, CandidateList& list);

}  // namespace dynamiccl
