// SPDX-License-Identifier: Apache-2.0
// Divides the collectives of one rank into training steps while they pass. Memory grows with the number of
// steps, 32 bytes each, and not with the number of calls.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "src/collective/collective.h"
#include "traces/format/trace_record.h"

namespace dynamiccl {

// The most calls of a step. A repeating sequence is found only if it has at most half as many calls.
inline constexpr uint64_t kLongestStep = 1 << 20;

// True if the call consists of sends and receives. Such calls are in no step.
bool BetweenTwo(const TraceRecord& call);
// A hash of the fields in which equal calls of two steps are equal: communicator, operation and arguments.
uint64_t StepKeyOf(const TraceRecord& call);

// One step. Two steps with equal hashes and numbers of calls have equal operations.
struct SeenStep {
  int64_t number = 0;  // by the program's marks, or counted
  uint64_t hash = 0;   // of the keys of its calls, in order
  uint64_t calls = 0;
  int64_t begin_ns = 0;  // issue of its first call
};

// Steps in the order of their numbers, built from calls in order of issue.
class SeenSteps {
 public:
  void Take(int64_t number, const TraceRecord& call);
  // Returns the place of the step with this number in steps(). If it is missing, returns the place where it
  // belongs.
  size_t PlaceOf(int64_t number);
  const std::vector<SeenStep>& steps() const { return steps_; }

 private:
  std::vector<SeenStep> steps_;
  size_t last_ = 0;  // the place that was looked up last
};

// Says to which step each collective belongs.
struct StepDivision {
  bool marked = false;         // the program marked the steps
  bool paced = false;          // each of the last calls is a step, see RecordedStep::paced
  uint64_t skipped = 0;        // without marks: collectives before the first step
  uint64_t calls_of_step = 0;  // without marks

  // Returns the number of the step of collective `place` (counted from 0); nothing if it belongs to none.
  // `mark` is the last mark before it; -1: none.
  std::optional<int64_t> NumberOf(uint64_t place, int64_t mark) const;
};

// Takes all calls of a section in order of issue, then says how they divide into steps.
class StepSearch {
 public:
  // `mark` is the step of the last mark before the call; -1: none.
  void Take(const TraceRecord& call, int64_t mark);

  // Steps are those that the program marked, if it marked two with collectives. Else they are the shortest
  // sequence that the end repeats. Else, if `timed`, each of at least 8 equal calls at the end that come at
  // one pace is a step. Else all calls are one step.
  StepDivision Divide(bool timed) const;

  // Number of calls except those of sends and receives.
  uint64_t collectives() const { return collectives_; }
  const SeenSteps& marked() const { return marked_; }
  // Number of calls of sends and receives, by collective, and their share of all calls' bytes.
  const std::map<Collective, size_t>& between_two() const { return between_two_; }
  double between_two_share() const { return all_bytes_ > 0 ? between_bytes_ / all_bytes_ : 0; }
  // Number of AllReduces of int32 numbers, by their number of elements.
  const std::map<int64_t, size_t>& int32_reduces() const { return int32_reduces_; }

 private:
  // One of the last kLongestStep collectives.
  struct Recent {
    uint64_t key = 0;
    int64_t issued_ns = 0;
  };
  // The collective `back` places before the last one.
  const Recent& FromEnd(uint64_t back) const { return recent_[(collectives_ - 1 - back) % kLongestStep]; }
  uint64_t Period() const;
  bool AllEqual(uint64_t last) const;
  uint64_t PacedCalls() const;

  uint64_t collectives_ = 0;
  std::vector<Recent> recent_;  // collective i is at i % kLongestStep
  SeenSteps marked_;
  std::map<Collective, size_t> between_two_;
  double between_bytes_ = 0;
  double all_bytes_ = 0;
  std::map<int64_t, size_t> int32_reduces_;
};

}  // namespace dynamiccl
