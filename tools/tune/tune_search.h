// SPDX-License-Identifier: Apache-2.0
// Decides which candidates run next, by successive halving (Jamieson and Talwalkar, "Non-stochastic Best Arm
// Identification and Hyperparameter Optimization", AISTATS 2016). In a turn the job runs once unchanged and
// once with each of a few candidates. Their times are compared only with that of the unchanged job in the
// same turn. A round has as many turns as are needed to run every remaining candidate once.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "src/base/statistics.h"
#include "tools/tune/candidates.h"

namespace dynamiccl {

// A gain below this share of a step is not worth a change. The search ends when no candidate can be expected
// to gain more.
inline constexpr double kWorthwhile = 0.005;

struct TriedCandidate {
  Candidate candidate;
  // Milliseconds of a step, by the number of the turn.
  std::map<int, double> step_ms;
  // The reason why the candidate was given up. Empty if it was not.
  std::string given_up;
  // True while the candidate still runs in later turns.
  bool in = true;
  // True if the job failed with the candidate, or its settings were not in effect.
  bool failed = false;
};

// A candidate's step time divided by that of the unchanged job, with a 95 % interval. With fewer than six
// turns the interval is infinite.
struct TunedRatio {
  double ratio = 1;
  ConfidenceInterval interval;
  size_t turns = 0;
};

// The search for the best candidate. It starts no job: NextTurn says what to run, and Record receives the
// times. Candidate 0 is the unchanged job. TuneSession owns the object and uses it on one thread.
class TuneSearch {
 public:
  // `level_rounds` is the number of rounds after which the slower half is given up, 1 or 2.
  TuneSearch(const CandidateList& list, int level_rounds);

  // Begins the next turn and returns its candidates in the order of running. The unchanged job comes first
  // and last in alternate turns, so that a drift of the machine affects all candidates alike. Returns an
  // empty list when the search is over.
  std::vector<size_t> NextTurn();
  void Record(size_t candidate, double step_ms) { tried_[candidate].step_ms[turn_] = step_ms; }
  // Takes a candidate out of the search.
  void GiveUp(size_t candidate, const std::string& why);
  // Takes out a candidate with which the job failed. It is never the best, however fast its earlier turns
  // were.
  void Fail(size_t candidate, const std::string& why);

  // Number of turns begun.
  int turn() const { return turn_; }
  const std::vector<TriedCandidate>& tried() const { return tried_; }
  // Returns the candidate's ratio. For a finalist only the turns of the final count: the earlier turns
  // selected it, so their times are too favourable.
  TunedRatio RatioOf(size_t candidate) const;
  // Returns the finalist with the smallest ratio among those that never failed, that gain at least
  // kWorthwhile and whose whole interval lies below 1; 0 if there is none. A candidate that was given up
  // before the final is not the best, because the turns that its ratio rests on also chose the finalists.
  size_t Best() const;

 private:
  enum class Stage { kSingles, kHalving, kFinal, kOver };

  bool RanInFinal(size_t candidate) const;
  std::vector<size_t> In() const;
  // Returns the remaining candidates, the one with the smallest ratio first.
  std::vector<size_t> Ranked() const;
  void BeginRound();
  void Advance();
  void CombineBest();
  // Gives up all candidates except the `most` fastest.
  void KeepFastest(size_t most);
  void Judge();

  std::vector<TriedCandidate> tried_;
  // Index of the first config. tried_[1] to tried_[first_config_ - 1] are settings of the framework. After
  // the configs come the combinations.
  size_t first_config_ = 1;
  int level_rounds_;
  Stage stage_ = Stage::kSingles;
  int turn_ = 0;
  int round_ = 0;
  // Number of the last turn before the final.
  int final_after_ = std::numeric_limits<int>::max();
  // Rounds that are complete since the slower half of the candidates was last given up.
  int in_level_ = 0;
  // Candidates that still have to run in this round.
  std::vector<size_t> pending_;
};

}  // namespace dynamiccl
