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
// How many configs of each kind PreferLowLatency puts first: together half of kMaxArms, so that the other
// half are tried as for any key.
inline constexpr size_t kLowLatencyEach = 2;
// A config is adopted when its steps are faster by this many standard errors, in at least this many blocks of
// steps, and by at least this much in logs. After few steps more errors are needed (IsSurelyFaster). With
// normal noise, 40 configs without any difference and a dozen looks at each, that is 1 wrong adoption in
// 2,500 jobs.
inline constexpr double kAdoptedErrors = 4.8;
inline constexpr uint32_t kAdoptedBlocks = 3;
inline constexpr double kLeastGain = 0.003;

// True if the config is faster by enough, and surely enough, to be adopted.
bool IsSurelyFaster(const SeenConfig& arm);
// True if the config looks much faster: by 2 % and by three standard errors. It is not sure yet.
bool LooksMuchFaster(const SeenConfig& arm);

// Sets how long the search tries an arm that does not look like a gain.
struct ArmPatience {
  // The arm goes when it is shown not to gain this much, in logs, or half a per cent if that is more.
  double worthwhile = 0;
  // It goes after this many steps if it looks slower, and after twice as many unless it looks like a gain by
  // one standard error; 0: this rule does not apply.
  uint32_t uses_to_show = 0;
  // The rule of uses_to_show waits until the standard error of the arm's effect is at most this, in logs, or
  // this over the root of two after twice as many steps; 0: the error does not matter.
  double error_to_show = 0;
  // The arm goes if its first use alone made a step longer by this much, in logs, even though setting up
  // connections or a stall may be the cause (KeySearch::GiveSecondUse); 0: the first use is not judged.
  double gross_first_use = 0;
  // The arm goes as soon as its steps of the block under way took longer by so many usual steps together
  // (SeenConfig::block_excess), so that a leader that is slow after all is not used for the whole block; 0:
  // only complete blocks are judged.
  double most_in_block = 0;
};

// The search on one key, owned by its GuardedKey on the leader's control thread. It has no clock and no
// source of random numbers.
class KeySearch {
 public:
  // Gives a config's estimated effect on steps, relative to the key's choice.
  using SeenOf = std::function<SeenConfig(const CollectiveConfig& config)>;

  // Replaces the configs that may be tried, the most promising first. Configs that were given up stay given
  // up.
  void SetCandidates(std::vector<ProbeCandidate> candidates);
  // Puts a few candidates first that suit a call whose latency is critical: kLowLatencyEach with the protocol
  // LL or LL128, and as many with one or two channels. Each kind keeps its order.
  void PreferLowLatency();
  // Gives up open configs that are shown to be no gain or that exhaust the patience. Returns those among them
  // that make steps so slow that they must go before the next version.
  std::vector<CollectiveConfig> Judge(const SeenOf& seen, const ArmPatience& patience = {});
  // Opens further configs until `most` are open, except `choice`. Configs that resemble a fast one come
  // first; a config that resembles only slow ones is not opened.
  void Refill(const CollectiveConfig& choice, const SeenOf& seen, size_t most = kMaxArms);
  // Returns the open config with the fastest steps, if it is surely faster than the choice.
  std::optional<CollectiveConfig> Winner(const SeenOf& seen) const;
  // The choice changed: `choice` is no arm any more, and the former choice may be tried again.
  void Adopt(const CollectiveConfig& choice);
  // Allows everything to be tried again, because the fabric or the steps changed. Open configs come first.
  void Restart();
  // Lets those configs be tried once more that were given up after a single use. The use may only have set up
  // connections. Leaves out configs whose use made a step longer by `most` or more, in logs. Returns false if
  // there are none.
  bool GiveSecondUse(const SeenOf& seen, double most);

  const std::vector<CollectiveConfig>& open() const { return open_; }
  // Returns the open configs that the next version should use. These are all of them, or only those few that
  // look much faster than the choice, so that this is certain soon. With `all_may_cost` false: only those
  // that look faster.
  std::vector<CollectiveConfig> Next(const SeenOf& seen, bool all_may_cost) const;
  // True when a search that began has nothing open.
  bool over() const { return began_ && open_.empty(); }
  bool began() const { return began_; }
  bool has_candidates() const { return !candidates_.empty(); }
  const std::vector<ProbeCandidate>& candidates() const { return candidates_; }
  // Opens a config, whatever others like it have shown. Returns false if it is open already or was given up.
  bool Open(const CollectiveConfig& config);
  bool GaveUp(const CollectiveConfig& config) const { return IsClosed(config); }
  // True if the config is one that may be tried.
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
