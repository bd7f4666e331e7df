// SPDX-License-Identifier: Apache-2.0
// Finds out how many calls of a communicator make one training step, and how long a step takes, from the
// calls alone: programs repeat their calls.
//
// The period is the smallest one that the last calls show three times in a row. The smallest period of a text
// is its length minus its longest border (Knuth, Morris and Pratt, "Fast pattern matching in strings", SIAM
// J. Comput. 6 (1977)). Parts of a step, such as equal layers, can have periods of their own. So the period
// is searched again where such a part ends, and the period of the widest window counts. Example: calls A B A
// B C, repeated, have the period 5, although A B has the period 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dynamiccl {

// The period of one communicator's calls, owned by its Guard on the leader's control thread. In a program
// without a period, searches become rare, so the object costs little. A known period that no longer fits is
// kept for a while, so rare calls of another kind do not end it.
class StepPeriod {
 public:
  // The most calls of a step: three such steps fill a ring of 8192 calls.
  static constexpr size_t kMaxCalls = 2730;

  // Adds a call of the key with this KeyCode, issued at `issued_ns`. Calls come in order.
  void Take(uint32_t key, int64_t issued_ns);
  // Calls in a step; 0: no period is known.
  size_t calls() const { return period_; }
  // Returns what a call of this key adds to a digest of calls. The digest is a sum, so it does not depend on
  // the order of the calls.
  static uint64_t DigestOf(uint32_t key);
  // Returns a digest of the calls of the last step; 0: no period is known. The digest does not depend on the
  // order of the calls, so it does not depend on where a step begins either.
  uint64_t digest() const;
  // True if the last step had the same calls as the one before it.
  bool steady() const { return period_ > 0 && matched_ >= period_; }
  // Number of calls in a row, up to the last one, that repeat with the period, including the calls in which
  // the period was found; 0 while the steps are not steady.
  size_t repeated() const { return steady() ? matched_ + period_ : 0; }
  // Average time of the last steps in nanoseconds; 0: not known.
  int64_t step_ns() const { return static_cast<int64_t>(step_ns_); }

 private:
  struct Call {
    uint32_t key = 0;
    int64_t issued_ns = 0;
  };

  // Returns the call that came `calls` calls before the last one; at most kKept - 1.
  const Call& Before(size_t calls) const { return last_[(taken_ - 1 - calls) % kKept]; }
  // Compares the last call with the call one period before it.
  void Follow(const Call& call);
  // Looks for a period in windows of several widths, the widest first.
  void Search();
  // Returns how many calls in a row, up to the last one, equal the call `period` calls before them.
  size_t MatchedBefore(size_t period) const;
  // The least period of the last `window` calls; `window` itself if they have none.
  size_t PeriodOf(size_t window) const;

  // Number of calls from the start to the first search, and from that search to the next one.
  static constexpr size_t kFirstSearch = 12;
  static constexpr size_t kFirstPause = 4;
  // Number of calls between a call that does not fit the period and the next search.
  static constexpr size_t kNextSearch = 24;
  static constexpr size_t kKept = 3 * kMaxCalls + 2;
  std::vector<Call> last_;  // the last kKept calls, as a ring
  size_t taken_ = 0;
  size_t period_ = 0;
  size_t matched_ = 0;    // calls in a row that equal the call a period before
  size_t unmatched_ = 0;  // calls since the period was last steady
  bool fits_ = false;     // every call since the last search fitted the period
  // The next search takes place when taken_ has this value, and the one after it search_again_ calls later.
  // Each search without a result doubles search_again_, or makes it larger by a quarter while no period is
  // known.
  size_t search_at_ = kFirstSearch;
  size_t search_again_ = kFirstPause;
  double step_ns_ = 0;
};

}  // namespace dynamiccl
