// SPDX-License-Identifier: Apache-2.0
// What differs between two releases in the same cell, and how grave it is.
#pragma once

#include <string>
#include <vector>

#include "tools/canary/cell.h"
#include "tools/canary/traffic_effect.h"

namespace dynamiccl {

// kGrave: the job fails, hangs or loses adapters or transports. Of 226 upgrades by one release on ordinary
// worlds four raised one, two of them rightly (docs/results/canary.md). kNotice: NCCL decides otherwise, with
// or without harm.
enum class Gravity { kNotice, kGrave };

enum class DifferenceKind {
  kEnd,         // init or a call fails or hangs in one of both
  kSearch,      // NCCL's graph search gave up
  kAdapters,    // fewer or other adapters are connected
  kTransports,  // ranks reach each other by other means
  kBandwidth,   // the channels that the search found carry less or more together
  kChannels,
  kChoice,   // another algorithm, protocol or channel count
  kTraffic,  // the user's own calls take longer by one model
};
const char* Name(DifferenceKind kind);

struct Difference {
  DifferenceKind kind = DifferenceKind::kEnd;
  Gravity gravity = Gravity::kNotice;
  std::string before;
  std::string after;
  std::string note;         // what it means; may be empty
  std::string where;        // kChoice: the size, "1M"
  std::string collectives;  // kChoice: "AllReduce, AllGather"

  bool operator==(const Difference&) const = default;
};

// kSame: no difference. kChanged: only notices. kWorse: something grave, but it runs. kFails: it does not.
enum class CanaryVerdict { kSame, kChanged, kWorse, kFails };
const char* Name(CanaryVerdict verdict);

// Returns the differences between two runs, grave ones first. A failure that the newer release does not have
// any more is a notice. If either run did not take place, there are none. With `traffic`, the calls of a job,
// only choices for these calls are compared, and those that the model expects to become slower come first.
// It is grave then if the calls take longer together; a loss of adapters is not, if no call takes longer by
// it. Null: choices are compared for all calls of the cells.
std::vector<Difference> CompareCells(const Cell& before, const Cell& after, const Traffic* traffic = nullptr);

CanaryVerdict VerdictOf(const std::vector<Difference>& differences);

}  // namespace dynamiccl
