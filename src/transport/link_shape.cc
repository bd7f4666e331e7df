// SPDX-License-Identifier: Apache-2.0
// The table of link fields, and the functions on changes and targets. See link_shape.h.
#include "src/transport/link_shape.h"

#include <array>
#include <cmath>

namespace dynamiccl {
namespace {

// Upper bounds of a link's times: 1 s in microseconds, 1,000 s in milliseconds. No preset comes near them; on
// a slower link a test would only time out.
constexpr double kMaxMicroseconds = 1e6;
constexpr double kMaxMilliseconds = 1e6;

constexpr std::array<LinkField, kLinkFields> kTable = {{
    {"latency_us", "--latency", &LinkShape::latency_us, 0, kMaxMicroseconds, false, "one-way latency, us"},
    {"bandwidth_gbps", "--bandwidth", &LinkShape::bandwidth_gbps, 0, 1e6, true,
     "bandwidth of a rail, 10^9 bytes a second"},
    {"jitter_us", "--jitter", &LinkShape::jitter_us, 0, kMaxMicroseconds, false,
     "mean of the random delay of each message, us"},
    {"load", "--load", &LinkShape::load, 0, 0.99, false, "share of the bandwidth that strangers take"},
    {"burst_on_ms", "--burst-on", &LinkShape::burst_on_ms, 0, kMaxMilliseconds, false,
     "length of the load's bursts, ms (0: steady)"},
    {"burst_off_ms", "--burst-off", &LinkShape::burst_off_ms, 0, kMaxMilliseconds, false,
     "mean pause between bursts, ms (0: steady)"},
    {"degrade", "--degrade", &LinkShape::degrade, 0, 1, true,
     "health: multiplies the bandwidth, divides the latency"},
}};

}  // namespace

std::span<const LinkField, kLinkFields> LinkFieldTable() {
  return kTable;
}

void LinkChange::Set(size_t field, double value) {
  fields |= 1u << field;
  values.*kTable[field].value = value;
}

void LinkChange::ApplyTo(LinkShape& shape) const {
  for (size_t i = 0; i < kLinkFields; ++i) {
    if (sets(i)) shape.*kTable[i].value = values.*kTable[i].value;
  }
}

Status CheckRanges(const LinkChange& change) {
  for (size_t i = 0; i < kLinkFields; ++i) {
    const LinkField& field = kTable[i];
    const double value = change.values.*field.value;
    if (!change.sets(i)) continue;
    if (std::isfinite(value) && value >= field.least && value <= field.most &&
        (value > field.least || !field.positive)) {
      continue;
    }
    return MakeError(ErrorKind::kInvalidArgument, "'{}' must be a number {} {} to {}", field.name,
                     field.positive ? "above" : "from", field.least, field.most);
  }
  return {};
}

bool LinkTarget::Fits(int from_node, int to_node, int on_rail) const {
  const auto directed = [&](int a, int b) {
    const bool named = from != kAnyNode && from == to;
    return (from_node != to_node || named) && (from == kAnyNode || from == a) && (to == kAnyNode || to == b);
  };
  if (rail != kAnyRail && rail != on_rail) return false;
  return directed(from_node, to_node) || (both && directed(to_node, from_node));
}

std::string Describe(const LinkTarget& target) {
  const auto node = [](int number) { return number == kAnyNode ? "any" : std::to_string(number); };
  const std::string rail = target.rail == kAnyRail ? "" : fmt::format(" rail {}", target.rail);
  return fmt::format("{} {} {}{}", node(target.from), target.both ? "<->" : "->", node(target.to), rail);
}

}  // namespace dynamiccl
