// SPDX-License-Identifier: Apache-2.0
// Decides which configs are tried on one key, by their effects on whole steps (step_experiment.h): it gives
// configs up, names one that is better than the key's choice, and says which are tried next.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "src/decision/guard/step_experiment.h"
#include "src/policy/probe_candidates.h"

namespace dynamiccl {

// Configs of a key that are tried at a time.
inline constexpr size_t kMaxArms = 8;
// A config is adopted when its steps are faster by this many standard errors, in at least so many blocks of
// steps, and by at least this much in logs. After few steps more errors are needed (IsSurelyFaster). For
// normal noise, 40 configs and a dozen looks at each that is 1 wrong adoption in 2,500 jobs without a
// difference.
inline constexpr double kAdoptedErrors = 4.8;
inline constexpr uint32_t kAdoptedBlocks = 3;
inline constexpr double kLeastGain = 0.003;

// True if the config is sure enough to be adopted.
bool IsSurelyFaster(const SeenConfig& arm);

// How long an arm is tried that looks like no gain.
struct ArmPatience {
  // It goes when it is shown to be no gain of so much, in logs, or of half a per cent where that is more.
  double worthwhile = 0;
  // It goes after so many steps if it looks slower, and after twice as many unless it looks like a gain by a
  // standard error; 0: it may stay.
  uint32_t uses_to_show = 0;
  // But not before the standard error of its effect is so small, in logs, or over the root of two of it after
  // twice as many steps; 0: however large it is.
  double error_to_show = 0;
  // It goes if its first use alone made a step longer by so much, in logs, though connections that were set
  // up may be the cause; 0: the first use is not judged.
  double gross_first_use = 0;
};

// The search on one key, owned by its GuardedKey on the leader's control thread. It has no clock and draws
// nothing.
class KeySearch {
 public:
  // Gives a config's estimated effect on steps, relative to the key's choice.
  using SeenOf = std::function<SeenConfig(const CollectiveConfig& config)>;

  // Replaces the configs that may be tried, the most promising first. Configs that were given up stay so.
  void SetCandidates(std::vector<ProbeCandidate> candidates);
  // Gives up open configs that are shown to be no gain, or exhaust the patience. Returns those of them that
  // make steps so slow that they must not wait for the next version.
  std::vector<CollectiveConfig> Judge(const SeenOf& seen, const ArmPatience& patience = {});
  // Opens further configs until `most` are open, but not `choice`. Configs that resemble a fast one come
  // first; a config that resembles slow ones alone is not opened.
  void Refill(const CollectiveConfig& choice, const SeenOf& seen, size_t most = kMaxArms);
  // The open config with the fastest steps, if it is surely faster than the choice.
  std::optional<CollectiveConfig> Winner(const SeenOf& seen) const;
  // The choice changed, so `choice` is no arm any more and the one before may be tried again.
  void Adopt(const CollectiveConfig& choice);
  // The fabric or the steps changed: everything may be tried again, what was open first.
  void Restart();

  const std::vector<CollectiveConfig>& open() const { return open_; }
  // Returns the open configs that the next version should use: all, or only the few that look much faster
  // than the choice, so that this is soon certain. With `all_may_cost` false it returns those that look
  // faster.
  std::vector<CollectiveConfig> Next(const SeenOf& seen, bool all_may_cost) const;
  // True when a search that began has nothing open.
  bool over() const { return began_ && open_.empty(); }
  bool began() const { return began_; }
  bool has_candidates() const { return !candidates_.empty(); }
  const std::vector<ProbeCandidate>& candidates() const { return candidates_; }
  // True if the config is one that may be tried.
  bool MayUse(const CollectiveConfig& config) const;

 private:
  bool IsOpen(const CollectiveConfig& config) const;
  bool IsClosed(const CollectiveConfig& config) const;
  // Expected log of a step's time over the choice's, from configs that resemble this one; nothing where none
  // of them was seen.
  std::optional<double> ExpectedOf(const CollectiveConfig& config, const SeenOf& seen) const;

  std::vector<ProbeCandidate> candidates_;
  std::vector<CollectiveConfig> open_;
  std::vector<CollectiveConfig> closed_;
  bool began_ = false;
};

}  // namespace dynamiccl
