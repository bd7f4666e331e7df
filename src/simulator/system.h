// SPDX-License-Identifier: Apache-2.0
// A cluster as the simulator sees it: how ranks sit on nodes, and what each (algorithm, protocol) costs there
// by formula. A machine may have cliffs, that is sizes at which the time jumps; residuals say by how much
// measured times differ from the formulas. docs/formats/system.md has the grammar of the file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/collective/algorithm.h"
#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/protocol.h"

namespace dynamiccl {

// Costs of one (algorithm, protocol). Bandwidths are "bus" bandwidths: what one rank sends over its link in a
// second, whatever the algorithm; they count for all channels together. closed_form.h has the formulas.
struct PathCosts {
  double base_us = 0;       // constant latency of a call
  double intra_hop_us = 0;  // latency of a step to a rank of the same node
  double inter_hop_us = 0;  // latency of a step to another node
  double intra_gbps = 0;    // 1e9 bytes per second inside a node; 0: the path does not exist
  double inter_gbps = 0;    // 1e9 bytes per second between nodes; 0: the same as inside a node
  double channel_gbps = 0;  // the most that one channel carries; 0: one channel carries all

  bool known() const { return intra_gbps > 0; }
  friend bool operator==(const PathCosts&, const PathCosts&) = default;
};

// The factor exp(log_factor) by which measured times differ from the formulas. It belongs to a configuration
// whose algorithm and protocol are known, to an algorithm whose protocol the library picks (protocol
// undefined), or to the library's own choice (both undefined). Beyond the measured sizes and rank counts the
// nearest residual counts.
struct Residual {
  Collective collective = Collective::kAllReduce;
  Algorithm algorithm = Algorithm::kUndefined;
  Protocol protocol = Protocol::kUndefined;
  int n_ranks = 2;
  uint64_t bytes = 0;  // NCCL's total
  double log_factor = 0;

  // Returns whether the two residuals differ in size and factor only.
  bool SameColumn(const Residual& other) const {
    return collective == other.collective && algorithm == other.algorithm && protocol == other.protocol &&
           n_ranks == other.n_ranks;
  }
  friend bool operator==(const Residual&, const Residual&) = default;
};

// Says how far predictions were off at one rank count that the fit did not use: |predicted / measured - 1|.
struct StatedError {
  Collective collective = Collective::kAllReduce;
  int n_ranks = 2;
  int cells = 0;  // measured times that were predicted
  double median = 0;
  double mean = 0;

  friend bool operator==(const StatedError&, const StatedError&) = default;
};

// Says between which factors of the prediction nine of ten measured times of a collective lay. Both widths
// are natural logarithms, so that a width w is the interval from prediction / exp(w) to prediction * exp(w).
// A width of 0 is not known. stated_interval.h says which width a communicator has.
struct StatedInterval {
  Collective collective = Collective::kAllReduce;
  // The width at measured rank counts, for sizes between measured ones, and the number of measured times by
  // which it is judged.
  double seen = 0;
  int seen_cells = 0;
  // The width at rank counts that a fit did not see, for a DistanceFrom of 1 to those that it saw.
  double unseen = 0;
  int unseen_cells = 0;

  friend bool operator==(const StatedInterval&, const StatedInterval&) = default;
};

// Selects the prediction itself or one end of its interval.
enum class IntervalPart : int { kShortest = -1, kPrediction = 0, kLongest = 1 };

// Holds the contents of a system file. It is a plain value.
struct System {
  std::string name;
  std::string source;  // where the constants come from, in words
  int ranks_per_node = 1;
  int max_channels = 1;
  // Ranks of a node that together reach all of its network: a communicator with fewer ranks on a node has
  // their share of inter_gbps. 1: a single rank reaches all of it.
  int network_ranks = 1;
  std::array<std::array<PathCosts, kProtocols>, kAlgorithms> paths = {};
  std::vector<Residual> residuals;  // ascending in size within one key and rank count
  // For rank counts between two measured ones: the share of the formulas' own curve in the prediction, from 0
  // to 1. The rest is a straight line from one measured time to the other, in logarithms of ranks and time.
  double formula_share = 1;
  // Share of a residual's logarithm that is left at twice or half the rank count at which it was measured,
  // from 0 to 1.
  double residual_reach = 1;
  // Above the largest measured rank count: the share of the straight line through the times at the two
  // largest ones, in logarithms, from 0 to 1. It fades with the distance by residual_reach.
  double line_share = 0;
  // A cliff at a size with at least this many bytes per rank has the same bytes per rank at every rank count.
  // Every other cliff has the same size at every rank count. 0: all cliffs have the same size.
  uint64_t drift_bytes_per_rank = 0;
  std::vector<StatedError> errors;        // by collective and rank count; empty: not known
  std::vector<StatedInterval> intervals;  // by collective; empty: not known
  // Set by callers that ask for the ends of intervals; no part of the file.
  IntervalPart part = IntervalPart::kPrediction;

  PathCosts& path(Algorithm a, Protocol p) { return paths[static_cast<size_t>(a)][static_cast<size_t>(p)]; }
  const PathCosts& path(Algorithm a, Protocol p) const {
    return paths[static_cast<size_t>(a)][static_cast<size_t>(p)];
  }
  // Number of nodes that `n_ranks` fill; the last one may be partly filled.
  int NodesFor(int n_ranks) const { return (n_ranks + ranks_per_node - 1) / ranks_per_node; }
  friend bool operator==(const System&, const System&) = default;
};

// Returns the text of the file, ended by a line with its hash. Every number survives writing and reading bit
// for bit.
std::string FormatSystem(const System& system);
// Writes a system and replaces the file in one step. Refuses a system that reading would refuse.
Status WriteSystemFile(const std::string& path, const System& system);

// Reads the text of a system file. `source` names the text in errors, which state line and column. Returns
// kCorrupt for a text that is truncated or damaged.
Result<System> ParseSystem(std::string_view text, const std::string& source);
// Reads a file of at most 64 MiB; kNotFound when it cannot be read, otherwise as ParseSystem.
Result<System> ReadSystemFile(const std::string& path);

// The last line of a system file: "# xxh3 <16 hex digits>" over all bytes before it. TOML takes it for a
// comment. It shows that a file is whole and unchanged.

inline constexpr std::string_view kSystemSealPrefix = "# xxh3 ";
// Stands in place of the digits in a file written by hand. The hash is then not compared, but the line must
// exist.
inline constexpr std::string_view kUncheckedSeal = "unchecked";

// Returns the hash digits for `text`, which is everything before the last line.
std::string SystemSealOf(std::string_view text);

}  // namespace dynamiccl
