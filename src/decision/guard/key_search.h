// SPDX-License-Identifier: Apache-2.0
// Decides which configs are tried on one key, by their effects on whole steps (step_experiment.h): it gives
// configs up, finds the one that is better than the key's choice, and selects those to try next.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "src/decision/guard/step_experiment.h"
#include "src/policy/probe_candidates.h"

namespace dynamiccl {

// The most configs of a key that are tried at a time.
inline constexpr size_t kMaxArms = 8;
// Says how many configs of each kind PreferLowLatency puts first: together half of kMaxArms, so that the
// other half are tried as for any key.
inline constexpr size_t kLowLatencyEach = 2;
// A config is adopted when its steps are faster by this many standard errors, in at least kAdoptedBlocks
// blocks of steps, and by at least kLeastGain in logs. After few steps more standard errors are needed
// (IsSurelyFaster). With normal noise, 40 configs that change nothing, and a dozen looks at each, this adopts
// a wrong config in 1 of 2,500 jobs.
inline constexpr double kAdoptedErrors = 4.8;
inline constexpr uint32_t kAdoptedBlocks = 3;
inline constexpr double kLeastGain = 0.003;

// True if the config is faster by enough, and surely enough, to be adopted.
bool IsSurelyFaster(const SeenConfig& arm);
// True if the config looks much faster: by 2 % and by three standard errors. It is not sure yet.
bool LooksMuchFaster(const SeenConfig& arm);

// Sets how long the search tries an arm that does not look like a gain.
struct ArmPatience {
  // The arm is given up when it is shown not to gain this much, in logs. The least limit is half a per cent.
  double worthwhile = 0;
  // The arm is given up after this many steps if it looks slower, and after twice as many unless it looks
  // faster by one standard error; 0: there is no such limit.
  uint32_t uses_to_show = 0;
  // uses_to_show gives an arm up only if the standard error of the arm's effect, in logs, is at most this.
  // After twice as many steps the error must be at most this over the root of two. 0: the error does not
  // matter.
  double error_to_show = 0;
  // The arm is given up if the logarithm of the step time rose by this much at the arm's first use. A stall
  // or the set-up of connections may also have caused that, so KeySearch::GiveSecondUse can allow another
  // use. 0: the first use is not judged.
  double gross_first_use = 0;
  // The arm goes as soon as its steps of the block under way took this many usual steps longer in total
  // (SeenConfig::block_excess). So a leader that is slow after all is not used for the whole block. 0: only
  // complete blocks are judged.
  double most_in_block = 0;
};

// The search on one key, owned by its GuardedKey on the leader's control thread. A config is open while the
// search tries it. The search has no clock and no source of random numbers.
class KeySearch {
 public:
  // Returns a config's estimated effect on steps, relative to the key's choice.
  using SeenOf = std::function<SeenConfig(const CollectiveConfig& config)>;

  // Replaces the configs that may be tried, the most promising first. Configs that were given up stay given
  // up.
  void SetCandidates(std::vector<ProbeCandidate> candidates);
  // Puts a few candidates first that suit a call whose latency is critical: kLowLatencyEach with the protocol
  // LL or LL128, and as many with one or two channels. Each kind keeps its order.
  void PreferLowLatency();
  // Gives up open configs that are shown to be no gain or that exhaust the patience. Returns the ones that
  // make steps so slow that they must go before the next regular version.
  std::vector<CollectiveConfig> Judge(const SeenOf& seen, const ArmPatience& patience = {});
  // Opens further configs, that is, begins to try them, until `most` are open. `choice` is not opened.
  // Configs that resemble a fast one come first; a config that resembles only slow ones is not opened.
  void Refill(const CollectiveConfig& choice, const SeenOf& seen, size_t most = kMaxArms);
  // Returns the open config with the fastest steps, if it is surely faster than the choice.
  std::optional<CollectiveConfig> Winner(const SeenOf& seen) const;
  // The key's choice becomes `choice`, which is no longer an arm. The former choice may be tried again as an
  // arm.
  void Adopt(const CollectiveConfig& choice);
  // Allows every config to be tried again, because the fabric or the steps changed. Configs that are open
  // come first.
  void Restart();
  // Allows configs to be tried once more that were given up after a single use, because that use may only
  // have set up connections. Leaves out configs whose use made a step longer by `most` or more, in logs.
  // Returns false if there are no such configs.
  bool GiveSecondUse(const SeenOf& seen, double most);

  const std::vector<CollectiveConfig>& open() const { return open_; }
  // Returns the open configs that the next version should use: all of them, or only the few that look much
  // faster than the choice, so that their gain is soon certain. With `all_may_cost` false it returns only
  // configs that look faster.
  std::vector<CollectiveConfig> Next(const SeenOf& seen, bool all_may_cost) const;
  // True if a search has begun and no config is open any more.
  bool over() const { return began_ && open_.empty(); }
  bool began() const { return began_; }
  bool has_candidates() const { return !candidates_.empty(); }
  const std::vector<ProbeCandidate>& candidates() const { return candidates_; }
  // Opens a config even if configs that resemble it were slow. Returns false if the config is open already or
  // was given up.
  bool Open(const CollectiveConfig& config);
  // Gives the config up for this search, whether it is open or not.
  void GiveUp(const CollectiveConfig& config);
  bool GaveUp(const CollectiveConfig& config) const { return IsClosed(config); }
  // True if the config is among the candidates.
  bool MayUse(const CollectiveConfig& config) const;

 private:
  bool IsOpen(const CollectiveConfig& config) const;
  bool IsClosed(const CollectiveConfig& config) const;
  // Returns the expected log of a step's time over the choice's, from configs that resemble this one; nothing
  // if steps have used none of them.
  std::optional<double> ExpectedOf(const CollectiveConfig& config, const SeenOf& seen) const;

  std::vector<ProbeCandidate> candidates_;
  std::vector<CollectiveConfig> open_;
  std::vector<CollectiveConfig> closed_;
  bool began_ = false;
};

}  // namespace dynamiccl
