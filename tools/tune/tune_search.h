// SPDX-License-Identifier: Apache-2.0
// Which candidates run in the next turn, by successive halving (Jamieson and Talwalkar, "Non-stochastic Best
// Arm Identification and Hyperparameter Optimization", AISTATS 2016). In a turn the job runs once as it is
// and once with each of a few candidates, whose times are compared with the job's own in the same turn only.
// A round is as many turns as the candidates need that are still in.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "src/base/statistics.h"
#include "tools/tune/candidates.h"

namespace dynamiccl {

// Less than this share of a step is not worth a change, and the search ends where no more can be expected.
inline constexpr double kWorthwhile = 0.005;

struct TriedCandidate {
  Candidate candidate;
  // Milliseconds of a step, by turn.
  std::map<int, double> step_ms;
  // Says why it was given up. Empty if it was not.
  std::string given_up;
  // True while it runs in the turns that follow.
  bool in = true;
};

// The time of a step as a share of the job's own, with a 95 % interval, which is infinite below six turns.
struct TunedRatio {
  double ratio = 1;
  ConfidenceInterval interval;
  size_t turns = 0;
};

// The search, without the job: it says what to run and is told what came of it. Candidate 0 is the job as it
// is. Used on one thread by the tune that owns it.
class TuneSearch {
 public:
  // `level_rounds`: rounds before the slower half is given up, 1 or 2.
  TuneSearch(const CandidateList& list, int level_rounds);

  // Begins the next turn and returns its candidates in the order of running. The job itself comes first in
  // one turn and last in the next, so that a drift of the machine falls on all alike. Empty when the search
  // is over.
  std::vector<size_t> NextTurn();
  void Record(size_t candidate, double step_ms) { tried_[candidate].step_ms[turn_] = step_ms; }
  // Takes a candidate out of the search.
  void GiveUp(size_t candidate, const std::string& why);

  // Number of turns begun.
  int turn() const { return turn_; }
  const std::vector<TriedCandidate>& tried() const { return tried_; }
  // Returns the candidate's ratio. That of a finalist is of the final's turns alone, since those before chose
  // it and so flatter it.
  TunedRatio RatioOf(size_t candidate) const;
  // Returns the candidate with the least ratio of those that are worth a change and whose whole interval lies
  // below 1; 0 if there is none.
  size_t Best() const;

 private:
  enum class Stage { kSingles, kHalving, kFinal, kOver };

  std::vector<size_t> In() const;
  // Returns the candidates that are still in, the one with the least ratio first.
  std::vector<size_t> Ranked() const;
  void BeginRound();
  void Advance();
  void CombineBest();
  // Gives up all but the `most` fastest.
  void KeepFastest(size_t most);
  void Judge();

  std::vector<TriedCandidate> tried_;
  // The candidates [1, first_config_) set the framework; those that follow are configs, then combinations.
  size_t first_config_ = 1;
  int level_rounds_;
  Stage stage_ = Stage::kSingles;
  int turn_ = 0;
  int round_ = 0;
  // The last turn before the final.
  int final_after_ = std::numeric_limits<int>::max();
  // Rounds of the current level that are done.
  int in_level_ = 0;
  // Candidates that have not run in this round.
  std::vector<size_t> pending_;
};

}  // namespace dynamiccl
