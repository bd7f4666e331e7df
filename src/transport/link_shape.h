// SPDX-License-Identifier: Apache-2.0
// What an emulated link is like, as plain values: its numbers, changes of some of them, and which links a
// change is for. Files, messages and command-line options all iterate over one table of the fields.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/collective/fabric.h"

namespace dynamiccl {

// One direction of one rail. Latency and bandwidth are nominal, and they are all that a planner is told. The
// other fields are the link's condition, which a job can only find out by measuring.
struct LinkShape {
  double latency_us = 0;
  double bandwidth_gbps = 0;  // 1e9 bytes a second; 0: only latency is emulated
  double jitter_us = 0;       // mean of a random delay added to each message
  double load = 0;            // share of the bandwidth that other jobs' traffic takes
  double burst_on_ms = 0;     // length of a burst of that traffic
  double burst_off_ms = 0;    // mean pause between bursts; 0: the traffic is steady
  double degrade = 1;         // health: multiplies the bandwidth, divides the latency

  LinkParameters nominal() const { return {latency_us, bandwidth_gbps}; }
  friend bool operator==(const LinkShape&, const LinkShape&) = default;
};

// One line of the table: name, option, member and range of a field.
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
// The fields in the order in which files and messages have them.
std::span<const LinkField, kLinkFields> LinkFieldTable();

// New values for some fields. Bit i of `fields` says that field i of the table is set.
struct LinkChange {
  uint32_t fields = 0;
  LinkShape values;

  bool sets(size_t field) const { return (fields >> field & 1u) != 0; }
  void Set(size_t field, double value);
  void ApplyTo(LinkShape& shape) const;
  friend bool operator==(const LinkChange&, const LinkChange&) = default;
};

// kInvalidArgument, naming the first field that is out of its range.
Status CheckRanges(const LinkChange& change);

// Wildcards of a target.
inline constexpr int kAnyNode = -1;
inline constexpr int kAnyRail = -1;

// Selects links: those from one node to another one, or, if `from` and `to` are equal and named, those inside
// a node.
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
