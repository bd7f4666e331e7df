// SPDX-License-Identifier: Apache-2.0
// Plain values that describe an emulated link: its numbers, changes of some numbers, and the selection of
// links that a change applies to. Files, messages and command-line options all iterate over one table of the
// fields.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/collective/fabric.h"

namespace dynamiccl {

// One direction of one rail. Latency and bandwidth are nominal, and the planner knows only these two. The
// other fields are the link's present condition, which a job can find out only by measuring.
struct LinkShape {
  double latency_us = 0;
  double bandwidth_gbps = 0;  // 1e9 bytes per second; 0: only latency is emulated
  double jitter_us = 0;       // mean of a random delay added to each message
  double load = 0;            // share of the bandwidth that other jobs' traffic takes
  double burst_on_ms = 0;     // length of a burst of that traffic
  double burst_off_ms = 0;    // mean pause between bursts; 0: the traffic is steady
  double degrade = 1;         // health: multiplies the bandwidth, divides the latency

  LinkParameters nominal() const { return {latency_us, bandwidth_gbps}; }
  friend bool operator==(const LinkShape&, const LinkShape&) = default;
};

// One row of the table of fields: name, command-line option, member and range.
struct LinkField {
  const char* name;    // key in topology files
  const char* option;  // option of `dynamiccl link set`
  double LinkShape::*value;
  double least;
  double most;
  bool positive;  // whether `least` itself is excluded
  const char* meaning;
};
inline constexpr size_t kLinkFields = 7;
// Returns the fields in the order in which files and messages list them.
std::span<const LinkField, kLinkFields> LinkFieldTable();

// New values for some fields of a LinkShape. Bit i of `fields` says that field i of LinkFieldTable has a new
// value.
struct LinkChange {
  uint32_t fields = 0;
  LinkShape values;

  bool sets(size_t field) const { return (fields >> field & 1u) != 0; }
  void Set(size_t field, double value);
  void ApplyTo(LinkShape& shape) const;
  friend bool operator==(const LinkChange&, const LinkChange&) = default;
};

// Returns kInvalidArgument, naming the first field that is out of its range.
Status CheckRanges(const LinkChange& change);

// These values in a LinkTarget select every node and every rail.
inline constexpr int kAnyNode = -1;
inline constexpr int kAnyRail = -1;

// Selects links: those from node `from` to node `to`, or those inside one node if `from` and `to` name the
// same node.
struct LinkTarget {
  int from = kAnyNode;
  int to = kAnyNode;
  int rail = kAnyRail;
  bool both = false;  // whether the other direction is meant as well

  bool Fits(int from_node, int to_node, int on_rail) const;
  friend bool operator==(const LinkTarget&, const LinkTarget&) = default;
};
// Returns for example "1 <-> 2 rail 0".
std::string Describe(const LinkTarget& target);

}  // namespace dynamiccl
