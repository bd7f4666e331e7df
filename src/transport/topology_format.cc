// SPDX-License-Identifier: Apache-2.0
// Writes topology files. They are read back in tests, shown by `dynamiccl link show`, and compared as text to
// find out whether two ranks have the same topology.
#include <fmt/format.h>

#include "src/transport/topology.h"

namespace dynamiccl {
namespace {

// Returns the shortest decimal number that reads back as the same double.
std::string Number(double value) {
  return fmt::format("{}", value);
}

void AddClass(std::string& text, const char* name, const std::optional<LinkShape>& shape, int rails) {
  if (!shape) return;
  text += fmt::format("\n[link.{}]\n", name);
  if (rails > 1) text += fmt::format("rails = {}\n", rails);
  for (const LinkField& field : LinkFieldTable()) {
    text += fmt::format("{} = {}\n", field.name, Number((*shape).*field.value));
  }
}

void AddTarget(std::string& text, const LinkTarget& target) {
  if (target.from != kAnyNode) text += fmt::format("from = {}\n", target.from);
  if (target.to != kAnyNode) text += fmt::format("to = {}\n", target.to);
  if (target.rail != kAnyRail) text += fmt::format("rail = {}\n", target.rail);
  if (target.both) text += "both = true\n";
}

void AddChange(std::string& text, const LinkChange& change) {
  for (size_t i = 0; i < kLinkFields; ++i) {
    const LinkField& field = LinkFieldTable()[i];
    if (change.sets(i)) text += fmt::format("{} = {}\n", field.name, Number(change.values.*field.value));
  }
}

void AddEvent(std::string& text, const LinkEvent& event) {
  text += "\n[[event]]\n";
  const auto amount = [&](int64_t value) {
    return event.by_call ? std::to_string(value) : Number(static_cast<double>(value) / 1e9);
  };
  text += fmt::format("{} = {}\n", event.by_call ? "at_call" : "at_s", amount(event.begin));
  if (event.end != kNeverNs) {
    text += fmt::format("{} = {}\n", event.by_call ? "for_calls" : "for_s", amount(event.end - event.begin));
  }
  AddTarget(text, event.target);
  AddChange(text, event.change);
}

}  // namespace

std::string FormatTopology(const Topology& topology) {
  std::string text = fmt::format("version = 1\nnodes = {}\n", topology.nodes);
  if (topology.ranks_per_node.size() == 1) {
    text += fmt::format("ranks_per_node = {}\n", topology.ranks_per_node.front());
  } else if (!topology.ranks_per_node.empty()) {
    text += fmt::format("ranks_per_node = [{}]\n", fmt::join(topology.ranks_per_node, ", "));
  }
  text += fmt::format("seed = {}\n", topology.seed);
  AddClass(text, "intra", topology.intra, 1);
  AddClass(text, "inter", topology.inter, topology.rails);
  for (const LinkOverride& override : topology.overrides) {
    text += "\n[[link.override]]\n";
    AddTarget(text, override.target);
    AddChange(text, override.change);
  }
  for (const LinkEvent& event : topology.events) AddEvent(text, event);
  return text;
}

}  // namespace dynamiccl
