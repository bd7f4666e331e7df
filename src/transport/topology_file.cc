// SPDX-License-Identifier: Apache-2.0
// Reads topology files. Every error names the place in the file.
#include <cmath>
#include <limits>
#include <vector>

#include "src/base/toml_reader.h"
#include "src/transport/topology.h"

namespace dynamiccl {
namespace {

// In seconds, longer than any job. Much larger times would overflow a count of nanoseconds.
constexpr int64_t kMaxEventSeconds = 1'000'000;
// Largest call number of an event. Numbers of the file pass through doubles, which hold every integer up to
// 2^53.
constexpr int64_t kMaxEventCalls = int64_t{1} << 53;

using Keys = TomlReader::Keys;

Keys WithLinkFields(Keys keys) {
  for (const LinkField& field : LinkFieldTable()) keys.push_back(field.name);
  return keys;
}

// Reads one file into a Topology, with one function for each kind of table. It has no state beyond that of
// the base class.
class TopologyReader : private TomlReader {
 public:
  using TomlReader::TomlReader;

  Result<Topology> Read(const toml::table& root) const {
    DYNAMICCL_CHECK_OK(OnlyKeys(root, {"version", "nodes", "ranks_per_node", "seed", "link", "event"}));
    DYNAMICCL_CHECK_OK(Integer(root, "version", 1, 1));
    Topology topology;
    DYNAMICCL_TRY(const int64_t nodes, Integer(root, "nodes", 1, kMaxNodes));
    topology.nodes = static_cast<int>(nodes);
    if (root.contains("ranks_per_node")) DYNAMICCL_CHECK_OK(ReadRanks(root, topology));
    if (root.contains("seed")) {
      DYNAMICCL_TRY(topology.seed, Integer(root, "seed", 0, std::numeric_limits<int64_t>::max()));
    }
    if (const toml::node* const link = root.get("link")) DYNAMICCL_CHECK_OK(ReadLinks(*link, topology));
    DYNAMICCL_CHECK_OK(
        ForEachTable(root, "event", [&](const toml::table& table) { return ReadEvent(table, topology); }));
    return topology;
  }

 private:
  Status ReadRanks(const toml::table& root, Topology& topology) const {
    const toml::node& node = *root.get("ranks_per_node");
    if (!node.is_array()) {
      DYNAMICCL_TRY(const int64_t each, Integer(root, "ranks_per_node", 1, kMaxNodes));
      topology.ranks_per_node = {static_cast<int>(each)};
      return {};
    }
    for (const toml::node& entry : *node.as_array()) {
      const auto ranks = entry.value_exact<int64_t>();
      if (!ranks || *ranks < 1 || *ranks > kMaxNodes) {
        return Complain(entry.source().begin,
                        fmt::format("'ranks_per_node' must hold integers from 1 to {}", kMaxNodes));
      }
      topology.ranks_per_node.push_back(static_cast<int>(*ranks));
    }
    if (topology.ranks_per_node.size() == static_cast<size_t>(topology.nodes)) return {};
    return Complain(node.source().begin, fmt::format("'ranks_per_node' has {} numbers for {} nodes",
                                                     topology.ranks_per_node.size(), topology.nodes));
  }

  // Returns the link fields that the table sets, each checked against its range.
  Result<LinkChange> ReadChange(const toml::table& table) const {
    LinkChange change;
    for (size_t i = 0; i < kLinkFields; ++i) {
      const LinkField& field = LinkFieldTable()[i];
      if (!table.contains(field.name)) continue;
      LinkChange one;
      DYNAMICCL_TRY(const double value, Number(table, field.name));
      one.Set(i, value);
      const Status checked = CheckRanges(one);
      if (!checked) return Complain(table.get(field.name)->source().begin, checked.error().message);
      change.Set(i, value);
    }
    if (change.fields != 0) return change;
    return Complain(table.source().begin, "no key says what the link is like");
  }

  // Latency and bandwidth, the first two fields, must be given if the link's class has no table that gives
  // them.
  Status CheckComplete(const toml::table& table, const LinkChange& change) const {
    for (size_t i = 0; i < 2; ++i) {
      if (change.sets(i)) continue;
      return Complain(table.source().begin, fmt::format("key '{}' is missing", LinkFieldTable()[i].name));
    }
    return {};
  }

  Result<std::optional<LinkShape>> ReadClass(const toml::table& links, std::string_view key,
                                             const Keys& more) const {
    const toml::node* const node = links.get(key);
    if (node == nullptr) return std::optional<LinkShape>();
    const toml::table* const table = node->as_table();
    if (table == nullptr)
      return Complain(node->source().begin, fmt::format("'link.{}' must be a table", key));
    DYNAMICCL_CHECK_OK(OnlyKeys(*table, WithLinkFields(more)));
    DYNAMICCL_TRY(const LinkChange change, ReadChange(*table));
    DYNAMICCL_CHECK_OK(CheckComplete(*table, change));
    LinkShape shape;
    change.ApplyTo(shape);
    return std::optional<LinkShape>(shape);
  }

  Status ReadLinks(const toml::node& node, Topology& topology) const {
    const toml::table* const links = node.as_table();
    if (links == nullptr) return Complain(node.source().begin, "'link' must be a table");
    DYNAMICCL_CHECK_OK(OnlyKeys(*links, {"intra", "inter", "override"}));
    DYNAMICCL_TRY(topology.intra, ReadClass(*links, "intra", {}));
    DYNAMICCL_TRY(topology.inter, ReadClass(*links, "inter", {"rails"}));
    if (topology.inter) {
      const toml::table& inter = *links->get("inter")->as_table();
      DYNAMICCL_TRY(topology.rails, OptionalInteger(inter, "rails", 1, kMaxRails, 1));
    }
    return ForEachTable(*links, "override",
                        [&](const toml::table& table) { return ReadOverride(table, topology); });
  }

  Result<LinkTarget> ReadTarget(const toml::table& table, const Topology& topology) const {
    LinkTarget target;
    DYNAMICCL_TRY(target.from, OptionalInteger(table, "from", 0, topology.nodes - 1, kAnyNode));
    DYNAMICCL_TRY(target.to, OptionalInteger(table, "to", 0, topology.nodes - 1, kAnyNode));
    DYNAMICCL_TRY(target.rail, OptionalInteger(table, "rail", 0, topology.rails - 1, kAnyRail));
    if (const toml::node* const both = table.get("both")) {
      const auto value = both->value_exact<bool>();
      if (!value) return Complain(both->source().begin, "'both' must be true or false");
      target.both = *value;
    }
    return target;
  }

  Status ReadOverride(const toml::table& table, Topology& topology) const {
    DYNAMICCL_CHECK_OK(OnlyKeys(table, WithLinkFields({"from", "to", "rail", "both"})));
    LinkOverride override;
    DYNAMICCL_TRY(override.target, ReadTarget(table, topology));
    DYNAMICCL_TRY(override.change, ReadChange(table));
    if (!ClassOf(topology, override.target)) DYNAMICCL_CHECK_OK(CheckComplete(table, override.change));
    topology.overrides.push_back(override);
    return {};
  }

  // Returns the table, [link.intra] or [link.inter], that the target's links belong to.
  static const std::optional<LinkShape>& ClassOf(const Topology& topology, const LinkTarget& target) {
    return target.from != kAnyNode && target.from == target.to ? topology.intra : topology.inter;
  }

  Status ReadEvent(const toml::table& table, Topology& topology) const {
    DYNAMICCL_CHECK_OK(OnlyKeys(
        table, WithLinkFields({"at_s", "for_s", "at_call", "for_calls", "from", "to", "rail", "both"})));
    LinkEvent event;
    event.by_call = table.contains("at_call");
    if (event.by_call == table.contains("at_s")) {
      return Complain(table.source().begin, "an event has either 'at_s' or 'at_call'");
    }
    DYNAMICCL_CHECK_OK(event.by_call ? ReadCalls(table, event) : ReadSeconds(table, event));
    DYNAMICCL_TRY(event.target, ReadTarget(table, topology));
    DYNAMICCL_TRY(event.change, ReadChange(table));
    if (!ClassOf(topology, event.target) && !AllShaped(topology, event.target)) {
      return Complain(table.source().begin, "an event needs links that 'link' shapes");
    }
    topology.events.push_back(event);
    return {};
  }

  // Returns whether every link of the target is emulated. [link.override] can make links emulated for which
  // there is neither [link.intra] nor [link.inter].
  static bool AllShaped(const Topology& topology, const LinkTarget& target) {
    for (int from = 0; from < topology.nodes; ++from) {
      for (int to = 0; to < topology.nodes; ++to) {
        if (target.Fits(from, to, target.rail) && !topology.Between(from, to, target.rail)) return false;
      }
    }
    return true;
  }

  Status ReadCalls(const toml::table& table, LinkEvent& event) const {
    if (table.contains("for_s")) {
      return Complain(table.get("for_s")->source().begin, "'for_s' belongs to 'at_s'");
    }
    DYNAMICCL_TRY(event.begin, Integer(table, "at_call", 1, kMaxEventCalls));
    if (!table.contains("for_calls")) return {};
    DYNAMICCL_TRY(const int64_t calls, Integer(table, "for_calls", 1, kMaxEventCalls));
    event.end = event.begin + calls;
    return {};
  }

  Status ReadSeconds(const toml::table& table, LinkEvent& event) const {
    if (table.contains("for_calls")) {
      return Complain(table.get("for_calls")->source().begin, "'for_calls' belongs to 'at_call'");
    }
    DYNAMICCL_TRY(event.begin, Nanoseconds(table, "at_s", 0));
    if (!table.contains("for_s")) return {};
    DYNAMICCL_TRY(const int64_t ns, Nanoseconds(table, "for_s", 1));
    event.end = event.begin + ns;
    return {};
  }

  Result<int64_t> Nanoseconds(const toml::table& table, std::string_view key, int64_t least_ns) const {
    DYNAMICCL_TRY(const double seconds, Number(table, key));
    if (seconds >= 0 && seconds <= kMaxEventSeconds && std::llround(seconds * 1e9) >= least_ns) {
      return std::llround(seconds * 1e9);
    }
    return Complain(table.get(key)->source().begin,
                    fmt::format("'{}' must be seconds {} 0 to {}", key, least_ns > 0 ? "above" : "from",
                                kMaxEventSeconds));
  }
};

}  // namespace

Result<Topology> ParseTopology(std::string_view text, const std::string& source) {
  DYNAMICCL_TRY(const toml::table root, ParseToml(text, source));
  return TopologyReader(source).Read(root);
}

}  // namespace dynamiccl
