// SPDX-License-Identifier: Apache-2.0
// How many calls of a communicator make one training step, and how long a step takes, read from the calls
// alone: programs repeat their calls. The period is the least one that the last calls show three times over
// (Knuth, Morris and Pratt, "Fast pattern matching in strings", SIAM J. Comput. 6 (1977): a text's least
// period is its length less its longest border). Stretches of a step can have periods of their own: where
// a stretch ends the period is looked for again, and that of the widest window counts.
// Leader only, one thread; times are passed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dynamiccl {

class StepPeriod {
 public:
  // A step has at most so many calls.
  static constexpr size_t kMaxCalls = 2730;

  // A call of this key was issued; in order.
  void Take(uint32_t key, int64_t issued_ns);
  // Calls of a step; 0: no period is known.
  size_t calls() const { return period_; }
  // The last step was like the one before it.
  bool steady() const { return period_ > 0 && matched_ >= period_; }
  // What a step took lately; 0: not known.
  int64_t step_ns() const { return static_cast<int64_t>(step_ns_); }

 private:
  struct Call {
    uint32_t key = 0;
    int64_t issued_ns = 0;
  };

  const Call& Before(size_t calls) const { return last_[(taken_ - 1 - calls) % kKept]; }
  void Follow(const Call& call);
  void Search();
  size_t PeriodOf(size_t window) const;

  static constexpr size_t kFirstSearch = 64;
  static constexpr size_t kKept = 3 * kMaxCalls + 2;
  std::vector<Call> last_;  // a ring
  size_t taken_ = 0;
  size_t period_ = 0;
  size_t matched_ = 0;    // calls in a row that are those of a period before
  size_t unmatched_ = 0;  // calls since the period was last steady
  bool fits_ = false;     // every call since the last search
  // Some calls after one that does not fit; a search in vain is repeated after twice as many.
  size_t search_at_ = kFirstSearch;
  size_t search_again_ = kFirstSearch;
  double step_ns_ = 0;
};

}  // namespace dynamiccl
