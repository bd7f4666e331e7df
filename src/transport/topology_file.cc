// SPDX-License-Identifier: Apache-2.0
// Reads topology files; every complaint names the place in the file.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "src/transport/topology.h"

namespace dynamiccl {
namespace {

// More than the emulation is good for on one host.
constexpr int64_t kMaxNodes = 1024;
constexpr double kMaxLatencyUs = 1e6;

class TopologyReader {
 public:
  explicit TopologyReader(const std::string& source) : source_(source) {}

  Result<Topology> Read(const toml::table& root) const {
    DYNAMICCL_CHECK_OK(OnlyKeys(root, {"version", "nodes", "ranks_per_node", "link"}));
    DYNAMICCL_CHECK_OK(Integer(root, "version", 1, 1));
    Topology topology;
    DYNAMICCL_TRY(const int64_t nodes, Integer(root, "nodes", 1, kMaxNodes));
    topology.nodes = static_cast<int>(nodes);
    if (root.contains("ranks_per_node")) {
      DYNAMICCL_TRY(const int64_t per_node, Integer(root, "ranks_per_node", 1, kMaxNodes));
      topology.ranks_per_node = static_cast<int>(per_node);
    }
    if (const toml::node* const link = root.get("link")) DYNAMICCL_CHECK_OK(ReadLinks(*link, topology));
    return topology;
  }

 private:
  tl::unexpected<Error> Complain(const toml::source_position& at, const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}: line {}, column {}: {}", source_, at.line, at.column,
                     what);
  }

  Status OnlyKeys(const toml::table& table, std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : table) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      return Complain(key.source().begin, fmt::format("unknown key '{}'", key.str()));
    }
    return {};
  }

  Result<int64_t> Integer(const toml::table& table, std::string_view key, int64_t least, int64_t most) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return Complain(table.source().begin, fmt::format("key '{}' is missing", key));
    const auto value = node->value_exact<int64_t>();
    if (value && *value >= least && *value <= most) return *value;
    return Complain(node->source().begin,
                    fmt::format("'{}' must be an integer from {} to {}", key, least, most));
  }

  Result<double> Number(const toml::table& table, std::string_view key, double most) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return Complain(table.source().begin, fmt::format("key '{}' is missing", key));
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (value && std::isfinite(*value) && *value >= 0 && *value <= most) return *value;
    return Complain(node->source().begin, fmt::format("'{}' must be a number from 0 to {}", key, most));
  }

  Result<LinkParameters> ReadLink(const toml::table& table) const {
    LinkParameters link;
    DYNAMICCL_TRY(link.latency_us, Number(table, "latency_us", kMaxLatencyUs));
    DYNAMICCL_TRY(link.bandwidth_gbps, Number(table, "bandwidth_gbps", 1e6));
    if (link.bandwidth_gbps > 0) return link;
    return Complain(table.get("bandwidth_gbps")->source().begin, "'bandwidth_gbps' must be more than 0");
  }

  Result<std::optional<LinkParameters>> ReadClass(const toml::table& links, std::string_view key) const {
    const toml::node* const node = links.get(key);
    if (node == nullptr) return std::optional<LinkParameters>();
    const toml::table* const table = node->as_table();
    if (table == nullptr)
      return Complain(node->source().begin, fmt::format("'link.{}' must be a table", key));
    DYNAMICCL_CHECK_OK(OnlyKeys(*table, {"latency_us", "bandwidth_gbps"}));
    DYNAMICCL_TRY(const LinkParameters link, ReadLink(*table));
    return std::optional<LinkParameters>(link);
  }

  Status ReadLinks(const toml::node& node, Topology& topology) const {
    const toml::table* const links = node.as_table();
    if (links == nullptr) return Complain(node.source().begin, "'link' must be a table");
    DYNAMICCL_CHECK_OK(OnlyKeys(*links, {"intra", "inter", "override"}));
    DYNAMICCL_TRY(topology.intra, ReadClass(*links, "intra"));
    DYNAMICCL_TRY(topology.inter, ReadClass(*links, "inter"));
    const toml::node* const overrides = links->get("override");
    if (overrides == nullptr) return {};
    if (!overrides->is_array_of_tables()) {
      return Complain(overrides->source().begin, "'link.override' must be an array of tables");
    }
    for (const toml::node& entry : *overrides->as_array()) {
      DYNAMICCL_CHECK_OK(ReadOverride(*entry.as_table(), topology));
    }
    return {};
  }

  Status ReadOverride(const toml::table& table, Topology& topology) const {
    DYNAMICCL_CHECK_OK(OnlyKeys(table, {"from", "to", "latency_us", "bandwidth_gbps"}));
    LinkOverride override;
    DYNAMICCL_TRY(const int64_t from, Integer(table, "from", 0, topology.nodes - 1));
    DYNAMICCL_TRY(const int64_t to, Integer(table, "to", 0, topology.nodes - 1));
    DYNAMICCL_TRY(override.link, ReadLink(table));
    override.from_node = static_cast<int>(from);
    override.to_node = static_cast<int>(to);
    topology.overrides.push_back(override);
    return {};
  }

  const std::string& source_;
};

}  // namespace

Result<Topology> ParseTopology(std::string_view text, const std::string& source) {
  const toml::parse_result parsed = toml::parse(text, source);
  if (parsed) return TopologyReader(source).Read(parsed.table());
  const toml::parse_error& error = parsed.error();
  return MakeError(ErrorKind::kInvalidArgument, "{}: line {}, column {}: {}", source,
                   error.source().begin.line, error.source().begin.column, error.description());
}

}  // namespace dynamiccl
