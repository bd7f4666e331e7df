// SPDX-License-Identifier: Apache-2.0
// What an emulated link is like, as plain values: its numbers, changes of some of them, and which links a
// change is for. The table of fields is what files, messages and options iterate.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/collective/fabric.h"

namespace dynamiccl {

// One direction of one rail. Latency and bandwidth are what the link is nominally, and all that a planner is
// told; the rest is its condition, which nobody is told.
struct LinkShape {
  double latency_us = 0;
  double bandwidth_gbps = 0;  // 1e9 bytes a second; 0: only latency is emulated
  double jitter_us = 0;       // mean of a random delay added to each message
  double load = 0;            // share of the bandwidth that strangers take
  double burst_on_ms = 0;     // the load comes in bursts of this length ...
  double burst_off_ms = 0;    // ... this far apart on average; 0: it is steady
  double degrade = 1;         // health: the bandwidth is multiplied, the latency divided by it

  LinkParameters nominal() const { return {latency_us, bandwidth_gbps}; }
  friend bool operator==(const LinkShape&, const LinkShape&) = default;
};

struct LinkField {
  const char* name;    // key in files
  const char* option;  // of `dynamiccl link set`
  double LinkShape::*value;
  double least;
  double most;
  bool positive;  // `least` itself is not allowed
  const char* meaning;
};
inline constexpr size_t kLinkFields = 7;
std::span<const LinkField, kLinkFields> LinkFieldTable();

// New values of some fields, by the table's order.
struct LinkChange {
  uint32_t fields = 0;  // bit i: field i is set
  LinkShape values;

  bool sets(size_t field) const { return (fields >> field & 1u) != 0; }
  void Set(size_t field, double value);
  void ApplyTo(LinkShape& shape) const;
  friend bool operator==(const LinkChange&, const LinkChange&) = default;
};

// An error names the first field that is out of its range.
Status CheckRanges(const LinkChange& change);

inline constexpr int kAnyNode = -1;
inline constexpr int kAnyRail = -1;

// Which links: those from a node to another one, or (from and to equal and named) those inside a node.
struct LinkTarget {
  int from = kAnyNode;
  int to = kAnyNode;
  int rail = kAnyRail;
  bool both = false;  // the other direction as well

  bool Fits(int from_node, int to_node, int on_rail) const;
  friend bool operator==(const LinkTarget&, const LinkTarget&) = default;
};
std::string Describe(const LinkTarget& target);

}  // namespace dynamiccl
