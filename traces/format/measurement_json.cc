// SPDX-License-Identifier: Apache-2.0
// Tables of the cost model are arrays of rows, one for each algorithm with a number for each protocol.
// Reading checks all sizes and ranges.
#include "traces/format/measurement_json.h"

#include <cmath>
#include <limits>

namespace dynamiccl {
namespace {

// Latency in microseconds, bandwidth in GB/s.
Json LinkToJson(const LinkParameters& link) {
  return {{"latency_us", link.latency_us}, {"bandwidth_gbps", link.bandwidth_gbps}};
}

// Writes a table as one array for each algorithm.
Json TableToJson(const double (&table)[kAlgorithms][kProtocols]) {
  Json rows = Json::array();
  for (const auto& row : table) rows.push_back(Json(std::vector<double>(std::begin(row), std::end(row))));
  return rows;
}

// Reads an integer from `minimum` to `maximum`. T must hold this range.
template <typename T>
T NarrowField(const Json& json, const char* name, int64_t minimum, int64_t maximum) {
  return static_cast<T>(IntegerField(json, name, minimum, maximum));
}

// A link, of which both numbers are at least 0.
LinkParameters LinkField(const Json& json, const char* name) {
  const Json& link = json.at(name);
  for (const char* number : {"latency_us", "bandwidth_gbps"})
    if (!(NumberField(link, number) >= 0))
      throw LineError{fmt::format("'{}' of '{}' is below 0", number, name)};
  return {NumberField(link, "latency_us"), NumberField(link, "bandwidth_gbps")};
}

// Reads a table of the cost model; throws unless it has a row for each algorithm and a column for each
// protocol.
void TableField(const Json& json, const char* name, double (&table)[kAlgorithms][kProtocols]) {
  const auto rows = json.at(name).get<std::vector<std::vector<double>>>();
  if (rows.size() != kAlgorithms)
    throw LineError{fmt::format("'{}' has {} rows, not {}", name, rows.size(), kAlgorithms)};
  for (size_t a = 0; a < rows.size(); ++a) {
    if (rows[a].size() != kProtocols)
      throw LineError{fmt::format("'{}' has a row that is not {} long", name, kProtocols)};
    std::copy(rows[a].begin(), rows[a].end(), table[a]);
  }
}

// A number from `minimum` to `maximum`.
double BoundedField(const Json& json, const char* name, double minimum, double maximum) {
  const double value = NumberField(json, name);
  if (value >= minimum && value <= maximum) return value;
  throw LineError{fmt::format("'{}' is {}, not between {} and {}", name, value, minimum, maximum)};
}

// Like BoundedField, but returns nothing for JSON's null.
std::optional<double> OptionalField(const Json& json, const char* name, double minimum, double maximum) {
  if (json.at(name).is_null()) return std::nullopt;
  return BoundedField(json, name, minimum, maximum);
}

// Writes JSON's null for an empty value.
Json OptionalToJson(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

// The names of the collectives in `mask`; bit c stands for NCCL's number c.
Json CollectivesToJson(uint8_t mask) {
  Json names = Json::array();
  for (int c = 0; c < kTunableCollectives; ++c)
    if ((mask >> c & 1) != 0) names.push_back(Name(static_cast<Collective>(c)));
  return names;
}

// Reads what CollectivesToJson wrote. Throws if the list is empty, or names a collective about which no tuner
// is asked.
uint8_t CollectivesField(const Json& json, const char* name) {
  int mask = 0;
  for (const Json& value : json.at(name)) {
    const auto collective = ParseCollective(value.get<std::string>());
    if (!collective || static_cast<int>(*collective) >= kTunableCollectives)
      throw LineError{fmt::format("'{}' has {}, which is no collective with configs", name, value.dump())};
    mask |= 1 << static_cast<int>(*collective);
  }
  if (mask == 0) throw LineError{fmt::format("'{}' is empty", name)};
  return static_cast<uint8_t>(mask);
}

// Reads a value by its name. If the value is JSON's null, returns `absent`; if `absent` is empty, null is an
// error.
template <typename T>
T NamedField(const Json& json, const char* name, std::optional<T> (*parse)(std::string_view),
             std::optional<T> absent) {
  const Json& value = json.at(name);
  const auto parsed = value.is_null() ? absent : parse(value.get<std::string>());
  if (!parsed) throw LineError{fmt::format("'{}' is {}, which is no {}", name, value.dump(), name)};
  return *parsed;
}

}  // namespace

Json ContextToJson(const MeasurementContext& context) {
  const Fabric& fabric = context.model.fabric;
  const CostConstants& constants = context.model.constants;
  return {{"kind", "context"},
          {"topology", context.topology},
          {"ranks", fabric.n_ranks},
          {"nodes", fabric.n_nodes},
          {"max_channels", fabric.max_channels},
          {"intra", LinkToJson(fabric.intra)},
          {"inter", LinkToJson(fabric.inter)},
          {"base_latency_us", TableToJson(constants.base_latency_us)},
          {"intra_latency_us", TableToJson(constants.intra_latency_us)},
          {"inter_latency_us", TableToJson(constants.inter_latency_us)},
          {"ll_max_bandwidth", constants.ll_max_bandwidth},
          {"ring_ll128_channel_bandwidth", constants.ring_ll128_channel_bandwidth},
          {"tree_ll128_channel_bandwidth", constants.tree_ll128_channel_bandwidth},
          {"tree_channel_bandwidth", constants.tree_channel_bandwidth},
          {"gpu_corrections", context.model.gpu_corrections}};
}

// A float is written as a double with 9 to 17 digits and comes back as the same float.
Json RowToJson(const Measurement& row) {
  Json json = {{"kind", "row"},
               {"topology", row.topology},
               {"collective", Name(row.collective)},
               {"bytes", row.bytes},
               {"algorithm", nullptr},
               {"protocol", nullptr},
               {"channels", row.config.channels},
               {"default", row.is_default},
               {"us", row.microseconds}};
  if (row.config.algorithm != Algorithm::kUndefined) json["algorithm"] = Name(row.config.algorithm);
  if (row.config.protocol != Protocol::kUndefined) json["protocol"] = Name(row.config.protocol);
  return json;
}

// All ranges are checked here, so that later code may use the values without checks.
MeasurementContext ContextFromJson(const Json& json) {
  MeasurementContext context;
  context.topology = json.at("topology").get<std::string>();
  Fabric& fabric = context.model.fabric;
  fabric.n_ranks = NarrowField<int32_t>(json, "ranks", 1, INT32_MAX);
  fabric.n_nodes = NarrowField<int32_t>(json, "nodes", 1, fabric.n_ranks);
  fabric.max_channels = NarrowField<int32_t>(json, "max_channels", 1, 64);  // 64: NCCL's MAXCHANNELS
  fabric.intra = LinkField(json, "intra");
  fabric.inter = LinkField(json, "inter");
  CostConstants& constants = context.model.constants;
  TableField(json, "base_latency_us", constants.base_latency_us);
  TableField(json, "intra_latency_us", constants.intra_latency_us);
  TableField(json, "inter_latency_us", constants.inter_latency_us);
  constants.ll_max_bandwidth = NumberField(json, "ll_max_bandwidth");
  constants.ring_ll128_channel_bandwidth = NumberField(json, "ring_ll128_channel_bandwidth");
  constants.tree_ll128_channel_bandwidth = NumberField(json, "tree_ll128_channel_bandwidth");
  constants.tree_channel_bandwidth = NumberField(json, "tree_channel_bandwidth");
  // Files written before the key "gpu_corrections" existed hold models with these corrections.
  context.model.gpu_corrections = json.value("gpu_corrections", true);
  return context;
}

// A row without times, or with a time below 0, is an error.
Measurement RowFromJson(const Json& json) {
  Measurement row;
  row.topology = json.at("topology").get<std::string>();
  row.collective = NamedField<Collective>(json, "collective", ParseCollective, std::nullopt);
  row.bytes = NarrowField<uint64_t>(json, "bytes", 0, INT64_MAX);
  row.config.algorithm = NamedField<Algorithm>(json, "algorithm", ParseAlgorithm, Algorithm::kUndefined);
  row.config.protocol = NamedField<Protocol>(json, "protocol", ParseProtocol, Protocol::kUndefined);
  row.config.channels = NarrowField<uint8_t>(json, "channels", 0, 64);
  row.is_default = json.at("default").get<bool>();
  for (const Json& value : json.at("us")) {
    if (!value.is_number() || value.get<double>() < 0)
      throw LineError{"'us' holds something that is no duration"};
    row.microseconds.push_back(value.get<float>());
    if (!std::isfinite(row.microseconds.back()))
      throw LineError{"'us' holds a number beyond single precision"};
  }
  if (row.microseconds.empty()) throw LineError{"'us' is empty"};
  return row;
}

Json EffectToJson(const MeasuredEffect& effect) {
  return {{"kind", "effect"},
          {"topology", effect.topology},
          {"collectives", CollectivesToJson(effect.collectives)},
          {"bytes", effect.bytes},
          {"role", Name(effect.role)},
          {"phase", Name(effect.phase)},
          {"memory", Name(effect.memory)},
          {"exposed", OptionalToJson(effect.exposed)},
          {"slowness", OptionalToJson(effect.slowness)},
          {"share", OptionalToJson(effect.share)},
          {"algorithm", Name(effect.config.algorithm)},
          {"protocol", Name(effect.config.protocol)},
          {"channels", effect.config.channels},
          {"channel_count", Name(effect.channel_count)},
          {"log_ratio", effect.log_ratio},
          {"error", effect.error},
          {"steps", effect.steps}};
}

// Refuses numbers that no experiment can measure, such as a step that becomes e^8 times as long, so that
// agents are not trained on them.
MeasuredEffect EffectFromJson(const Json& json) {
  MeasuredEffect effect;
  effect.topology = json.at("topology").get<std::string>();
  effect.collectives = CollectivesField(json, "collectives");
  effect.bytes = NarrowField<uint64_t>(json, "bytes", 0, INT64_MAX);
  effect.role = NamedField<Role>(json, "role", ParseRole, std::nullopt);
  effect.phase = NamedField<Phase>(json, "phase", ParsePhase, std::nullopt);
  effect.memory = NamedField<MemoryPressure>(json, "memory", ParseMemoryPressure, std::nullopt);
  effect.exposed = OptionalField(json, "exposed", 0, 1);
  effect.slowness = OptionalField(json, "slowness", -32, 32);
  effect.share = OptionalField(json, "share", 0, 1024);
  if (effect.slowness.has_value() != effect.share.has_value())
    throw LineError{"'slowness' and 'share' are known together or not at all"};
  effect.config.algorithm = NamedField<Algorithm>(json, "algorithm", ParseAlgorithm, std::nullopt);
  effect.config.protocol = NamedField<Protocol>(json, "protocol", ParseProtocol, std::nullopt);
  effect.channel_count = NamedField<ChannelCount>(json, "channel_count", ParseChannelCount, std::nullopt);
  effect.config.channels = NarrowField<uint8_t>(json, "channels", 0, 64);
  effect.log_ratio = BoundedField(json, "log_ratio", -8, 8);
  effect.error = BoundedField(json, "error", std::numeric_limits<double>::min(), 8);
  effect.steps = NarrowField<uint32_t>(json, "steps", 1, UINT32_MAX);
  return effect;
}

}  // namespace dynamiccl
