// SPDX-License-Identifier: Apache-2.0
// Groups the rows of measurement files by file, topology, collective and size.
#include "agents/config/swept_key.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "src/base/statistics.h"
#include "src/collective/size_class.h"

namespace dynamiccl::agents {
namespace {

// Returns the repeats with even index (if `first` is 0) or with odd index (if `first` is 1).
std::vector<float> HalfOf(const Measurement& row, size_t first) {
  std::vector<float> half;
  for (size_t i = first; i < row.microseconds.size(); i += 2) half.push_back(row.microseconds[i]);
  return half;
}

// Returns nothing if there are fewer than two repeats, or if one of the two medians is not positive.
std::optional<SweptTime> TimeOf(const Measurement& row) {
  if (row.microseconds.size() < 2) return std::nullopt;
  const SweptTime time{Median(HalfOf(row, 0)), Median(HalfOf(row, 1))};
  // A time of zero has no logarithm and cannot have been measured.
  if (!(time.pick > 0) || !(time.value > 0)) return std::nullopt;
  return time;
}

SweptConfig SweptFrom(const Measurement& row, const SweptTime& time) {
  return {row.config, time, HalfOf(row, 0), HalfOf(row, 1)};
}

// Adds a measured row to its key: as the library's own choice, or as one more configuration. Of several rows
// of one configuration, and of several of the default, the first counts.
void Add(SweptKey& key, const Measurement& row, const SweptTime& time) {
  if (row.is_default) {
    if (!key.default_choice) key.default_choice = SweptFrom(row, time);
    return;
  }
  if (row.config.leaves_nccl_alone()) return;
  const auto same = [&](const SweptConfig& known) { return known.config == row.config; };
  if (std::none_of(key.configs.begin(), key.configs.end(), same)) key.configs.push_back(SweptFrom(row, time));
}

}  // namespace

std::vector<SweptKey> KeysOf(const std::vector<MeasurementFile>& files) {
  std::map<std::tuple<size_t, std::string, Collective, uint64_t>, SweptKey> keys;
  std::map<std::tuple<size_t, std::string, Collective>, ConfigMask> offered;
  for (size_t file = 0; file < files.size(); ++file) {
    std::map<std::string, const MeasurementContext*> contexts;
    for (const MeasurementContext& context : files[file].contexts) contexts[context.topology] = &context;
    for (const Measurement& row : files[file].rows) {
      const auto time = TimeOf(row);
      const auto context = contexts.find(row.topology);
      if (!time || context == contexts.end()) continue;
      SweptKey& key = keys[{file, row.topology, row.collective, row.bytes}];
      key.file = file;
      key.topology = row.topology;
      key.model = context->second->model;
      key.question.collective = row.collective;
      key.question.bytes = row.bytes;
      Add(key, row, *time);
      if (!row.config.leaves_nccl_alone())
        offered[{file, row.topology, row.collective}].set(
            ConfigIndex(row.config.algorithm, row.config.protocol));
    }
  }
  std::vector<SweptKey> found;
  for (auto& [order, key] : keys) {
    if (key.configs.empty()) continue;
    key.question.allowed = offered[{key.file, key.topology, key.question.collective}];
    found.push_back(std::move(key));
  }
  return found;
}

const char* Name(Split split) {
  // Names in the order of Split's enumerators.
  constexpr const char* kNames[kSplits] = {"seen", "held-out sizes", "held-out ranks", "held-out topology"};
  return kNames[static_cast<size_t>(split)];
}

bool IsHeldOut(const std::string& topology, const HoldOut& hold_out) {
  const auto covers = [&](const std::string& name) {
    if (!name.ends_with('*')) return topology == name;
    return topology.starts_with(std::string_view(name).substr(0, name.size() - 1));
  };
  return std::any_of(hold_out.topologies.begin(), hold_out.topologies.end(), covers);
}

std::vector<std::string> NotInFiles(const HoldOut& hold_out, const std::vector<MeasurementFile>& files) {
  const auto any = [&](const auto& fits) {
    return std::any_of(files.begin(), files.end(), [&](const MeasurementFile& file) {
      return std::any_of(file.contexts.begin(), file.contexts.end(), fits);
    });
  };
  std::vector<std::string> missing;
  for (const std::string& name : hold_out.topologies) {
    const HoldOut one{.topologies = {name}};
    if (!any([&](const MeasurementContext& context) { return IsHeldOut(context.topology, one); }))
      missing.push_back(name);
  }
  const auto has_ranks = [&](const MeasurementContext& context) {
    return context.model.fabric.n_ranks == hold_out.ranks;
  };
  if (hold_out.ranks > 0 && !any(has_ranks)) missing.push_back(std::to_string(hold_out.ranks) + " ranks");
  return missing;
}

Split SplitOf(const SweptKey& key, const HoldOut& hold_out) {
  if (IsHeldOut(key.topology, hold_out)) return Split::kHeldOutTopology;
  if (hold_out.ranks > 0 && key.model.fabric.n_ranks == hold_out.ranks) return Split::kHeldOutRanks;
  const int index = SizeClassOf(key.question.bytes).index;
  const bool out = hold_out.sizes > 0 && (index / 4 + index % 4) % hold_out.sizes == hold_out.sizes - 1;
  return out ? Split::kHeldOutSize : Split::kSeen;
}

}  // namespace dynamiccl::agents
