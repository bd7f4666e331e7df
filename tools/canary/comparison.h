// SPDX-License-Identifier: Apache-2.0
// Compares what two releases of NCCL do with the same communicator on the same machine, and says how grave
// each difference is.
#pragma once

#include <string>
#include <vector>

#include "tools/canary/cell.h"
#include "tools/canary/traffic_effect.h"

namespace dynamiccl {

// kGrave: the job fails, hangs or loses adapters or transports. kNotice: NCCL decides otherwise, which may or
// may not cost time. The canary was run on 226 upgrades from one release to the next, with usual numbers of
// nodes and ranks. Four of them raised a grave difference, and two of these alarms were right
// (docs/results/canary.md).
enum class Gravity { kNotice, kGrave };

enum class DifferenceKind {
  kEnd,         // init or a call fails or hangs in one of the two runs
  kSearch,      // NCCL's graph search gave up
  kRanks,       // ranks launch different kernels
  kAdapters,    // fewer or other adapters are connected
  kTransports,  // ranks reach each other by other means
  kBandwidth,   // the channels that the search found carry less or more together
  kChannels,
  kChoice,   // another algorithm, protocol or channel count
  kTraffic,  // the user's own calls take longer according to one cost model
  kMemory,   // NCCL takes more or less memory of a GPU
  kCpus,     // a thread that made a communicator stays on its CPUs, or no longer does
};
const char* Name(DifferenceKind kind);

struct Difference {
  DifferenceKind kind = DifferenceKind::kEnd;
  Gravity gravity = Gravity::kNotice;
  std::string before;
  std::string after;
  std::string note;                   // what it means; may be empty
  std::string where;                  // kChoice: the size, "1M"
  std::string collectives;            // kChoice: "AllReduce, AllGather"
  std::vector<std::string> warnings;  // kEnd: NCCL's warnings in the second run and not in the first

  bool operator==(const Difference&) const = default;
};

// kSame: no difference. kChanged: only notices. kWorse: the release runs, but with a grave difference.
// kFails: the release does not run, or its calls hang on GPUs (kRanks).
enum class CanaryVerdict { kSame, kChanged, kWorse, kFails };
const char* Name(CanaryVerdict verdict);

// Returns the differences between two runs, grave ones first. If the first run failed, nothing is grave: the
// only difference is how each of them ended. If one of the runs did not take place, there are no differences.
//
// `traffic` has the calls of a job; null: the calls of the cells are compared. With `traffic`, only choices
// for the job's calls are compared, first those that the cost model expects to become slower. It is then a
// grave difference if the job's calls take longer in total, and the loss of an adapter is only a notice if no
// call becomes slower.
std::vector<Difference> CompareCells(const Cell& before, const Cell& after, const Traffic* traffic = nullptr);

// Says in some words how a run ended: "init fails, 0 of 8 ranks joined: ...", with NCCL's last warning.
std::string EndText(const Cell& cell);

CanaryVerdict VerdictOf(const std::vector<Difference>& differences);

}  // namespace dynamiccl
