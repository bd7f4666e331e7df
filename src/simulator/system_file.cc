// SPDX-License-Identifier: Apache-2.0
// Reads system files. Every complaint names the place in the file. The seal is checked before the text is
// parsed, so a truncated file is reported as such.
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "src/base/toml_reader.h"
#include "src/base/whole_file.h"
#include "src/simulator/path_keys.h"
#include "src/simulator/system.h"

namespace dynamiccl {
namespace {

// The most bytes of a file, 64 MiB, and the largest number of ranks in it: far beyond any real file.
constexpr size_t kMaxBytes = 64 << 20;
constexpr int kMaxRanks = 1 << 20;
// The version that is written. Version 1, without line_share and interval, is read too.
constexpr int kVersion = 2;

// Reads one file into a System, one function for each kind of table. It has no state beyond the base class.
class SystemReader : private TomlReader {
 public:
  using TomlReader::TomlReader;

  Result<System> Read(const toml::table& root) const {
    DYNAMICCL_TRY(const int64_t version, Integer(root, "version", 1, kVersion));
    Keys keys{"version",       "name",          "source",         "ranks_per_node",
              "max_channels",  "formula_share", "residual_reach", "drift_bytes_per_rank",
              "network_ranks", "path",          "residual",       "error"};
    if (version >= 2) keys.insert(keys.end(), {"line_share", "interval"});
    DYNAMICCL_CHECK_OK(OnlyKeys(root, keys));
    System system;
    DYNAMICCL_TRY(system.name, Text(root, "name"));
    DYNAMICCL_TRY(system.source, Text(root, "source"));
    DYNAMICCL_TRY(const int64_t ranks, Integer(root, "ranks_per_node", 1, kMaxRanks));
    DYNAMICCL_TRY(const int64_t channels, Integer(root, "max_channels", 1, 255));
    system.ranks_per_node = static_cast<int>(ranks);
    system.max_channels = static_cast<int>(channels);
    if (root.contains("network_ranks")) {
      DYNAMICCL_TRY(const int64_t network, Integer(root, "network_ranks", 1, ranks));
      system.network_ranks = static_cast<int>(network);
    }
    DYNAMICCL_CHECK_OK(ReadInterpolation(root, system));
    DYNAMICCL_CHECK_OK(
        ForEachTable(root, "path", [&](const toml::table& table) { return ReadPath(table, system); }));
    DYNAMICCL_CHECK_OK(ForEachTable(root, "residual",
                                    [&](const toml::table& table) { return ReadResiduals(table, system); }));
    DYNAMICCL_CHECK_OK(
        ForEachTable(root, "error", [&](const toml::table& table) { return ReadError(table, system); }));
    DYNAMICCL_CHECK_OK(ForEachTable(root, "interval",
                                    [&](const toml::table& table) { return ReadInterval(table, system); }));
    return system;
  }

 private:
  // Returns a required number in [least, most].
  Result<double> NumberWithin(const toml::table& table, std::string_view key, double least,
                              double most) const {
    if (!table.contains(key)) return Complain(table.source().begin, fmt::format("key '{}' is missing", key));
    DYNAMICCL_TRY(const double value, Number(table, key));
    if (value >= least && value <= most) return value;
    return Complain(table.get(key)->source().begin,
                    fmt::format("'{}' must be a number from {} to {}", key, least, most));
  }

  Status ReadInterpolation(const toml::table& root, System& system) const {
    if (root.contains("formula_share")) {
      DYNAMICCL_TRY(system.formula_share, NumberWithin(root, "formula_share", 0, 1));
    }
    if (root.contains("residual_reach")) {
      DYNAMICCL_TRY(system.residual_reach, NumberWithin(root, "residual_reach", 0, 1));
    }
    if (root.contains("line_share")) {
      DYNAMICCL_TRY(system.line_share, NumberWithin(root, "line_share", 0, 1));
    }
    if (!root.contains("drift_bytes_per_rank")) return {};
    DYNAMICCL_TRY(const int64_t bytes, Integer(root, "drift_bytes_per_rank", 0, int64_t{1} << 40));
    system.drift_bytes_per_rank = static_cast<uint64_t>(bytes);
    return {};
  }

  Result<Algorithm> ReadAlgorithm(const toml::table& table) const {
    DYNAMICCL_TRY(const std::string name, Text(table, "algorithm"));
    if (const auto algorithm = ParseAlgorithm(name)) return *algorithm;
    return Complain(table.get("algorithm")->source().begin, fmt::format("no algorithm '{}'", name));
  }

  Result<Protocol> ReadProtocol(const toml::table& table) const {
    DYNAMICCL_TRY(const std::string name, Text(table, "protocol"));
    if (const auto protocol = ParseProtocol(name)) return *protocol;
    return Complain(table.get("protocol")->source().begin, fmt::format("no protocol '{}'", name));
  }

  Status ReadPath(const toml::table& table, System& system) const {
    Keys keys{"algorithm", "protocol"};
    for (const PathKey& key : kPathKeys) keys.push_back(key.name);
    DYNAMICCL_CHECK_OK(OnlyKeys(table, keys));
    DYNAMICCL_TRY(const Algorithm algorithm, ReadAlgorithm(table));
    DYNAMICCL_TRY(const Protocol protocol, ReadProtocol(table));
    PathCosts& costs = system.path(algorithm, protocol);
    if (costs.known()) {
      return Complain(table.source().begin,
                      fmt::format("a second path {}/{}", Name(algorithm), Name(protocol)));
    }
    for (const PathKey& key : kPathKeys) {
      if (!key.required && !table.contains(key.name)) continue;
      DYNAMICCL_TRY(costs.*key.value, NumberWithin(table, key.name, 0, kMaxPathValue));
    }
    if (costs.known()) return {};
    return Complain(table.get("intra_gbps")->source().begin, "'intra_gbps' must be above 0");
  }

  Result<Collective> ReadCollective(const toml::table& table) const {
    DYNAMICCL_TRY(const std::string name, Text(table, "collective"));
    const auto collective = ParseCollective(name);
    if (collective && static_cast<int>(*collective) < kTunableCollectives) return *collective;
    return Complain(table.get("collective")->source().begin, fmt::format("no collective '{}'", name));
  }

  // Returns the key of a residual table: collective, algorithm and protocol (if any), and number of ranks.
  Result<Residual> ReadKey(const toml::table& table) const {
    Residual key;
    DYNAMICCL_TRY(key.collective, ReadCollective(table));
    if (table.contains("algorithm")) {
      DYNAMICCL_TRY(key.algorithm, ReadAlgorithm(table));
    }
    if (table.contains("protocol")) {
      DYNAMICCL_TRY(key.protocol, ReadProtocol(table));
      if (key.algorithm == Algorithm::kUndefined)
        return Complain(table.get("protocol")->source().begin, "a protocol without an algorithm");
    }
    DYNAMICCL_TRY(const int64_t ranks, Integer(table, "ranks", 2, kMaxRanks));
    key.n_ranks = static_cast<int>(ranks);
    return key;
  }

  // Reads how far predictions are off at one rank count.
  Status ReadError(const toml::table& table, System& system) const {
    DYNAMICCL_CHECK_OK(OnlyKeys(table, {"collective", "ranks", "cells", "median", "mean"}));
    DYNAMICCL_TRY(const Residual key, ReadKey(table));
    StatedError error{.collective = key.collective, .n_ranks = key.n_ranks};
    DYNAMICCL_TRY(const int64_t cells, Integer(table, "cells", 1, INT32_MAX));
    error.cells = static_cast<int>(cells);
    DYNAMICCL_TRY(error.median, NumberWithin(table, "median", 0, kMaxPathValue));
    DYNAMICCL_TRY(error.mean, NumberWithin(table, "mean", 0, kMaxPathValue));
    system.errors.push_back(error);
    return {};
  }

  // Reads one width of an interval and the number of measured times by which it is judged, if the file states
  // them.
  Status ReadWidth(const toml::table& table, const std::string& key, double& width, int& cells) const {
    if (!table.contains(key)) {
      if (!table.contains(key + "_cells")) return {};
      return Complain(table.source().begin, fmt::format("'{0}_cells' without '{0}'", key));
    }
    DYNAMICCL_TRY(width, NumberWithin(table, key, kLeastWidth, kMaxLogFactor));
    DYNAMICCL_TRY(const int64_t judged, Integer(table, key + "_cells", 1, INT32_MAX));
    cells = static_cast<int>(judged);
    return {};
  }

  // Reads how wide the intervals of one collective are.
  Status ReadInterval(const toml::table& table, System& system) const {
    DYNAMICCL_CHECK_OK(OnlyKeys(table, {"collective", "seen", "seen_cells", "unseen", "unseen_cells"}));
    StatedInterval interval;
    DYNAMICCL_TRY(interval.collective, ReadCollective(table));
    DYNAMICCL_CHECK_OK(ReadWidth(table, "seen", interval.seen, interval.seen_cells));
    DYNAMICCL_CHECK_OK(ReadWidth(table, "unseen", interval.unseen, interval.unseen_cells));
    if (interval.seen == 0 && interval.unseen == 0)
      return Complain(table.source().begin, "an interval needs 'seen' or 'unseen'");
    if (std::ranges::find(system.intervals, interval.collective, &StatedInterval::collective) !=
        system.intervals.end())
      return Complain(table.source().begin,
                      fmt::format("a second 'interval' for {}", Name(interval.collective)));
    system.intervals.push_back(interval);
    return {};
  }

  Result<const toml::array*> List(const toml::table& table, std::string_view key) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return Complain(table.source().begin, fmt::format("key '{}' is missing", key));
    if (node->is_array()) return node->as_array();
    return Complain(node->source().begin, fmt::format("'{}' must be an array", key));
  }

  // Reads one table of residuals: a list of sizes, and the factor of each.
  Status ReadResiduals(const toml::table& table, System& system) const {
    DYNAMICCL_CHECK_OK(
        OnlyKeys(table, {"collective", "algorithm", "protocol", "ranks", "bytes", "log_factor"}));
    DYNAMICCL_TRY(Residual residual, ReadKey(table));
    if (std::ranges::any_of(system.residuals, [&](const Residual& one) { return one.SameColumn(residual); }))
      return Complain(table.source().begin,
                      fmt::format("a second 'residual' for {} at {} ranks; put its sizes into the first",
                                  Name(residual.collective), residual.n_ranks));
    DYNAMICCL_TRY(const toml::array* const bytes, List(table, "bytes"));
    DYNAMICCL_TRY(const toml::array* const factors, List(table, "log_factor"));
    if (bytes->size() != factors->size() || bytes->empty())
      return Complain(table.source().begin, fmt::format("'bytes' has {} numbers and 'log_factor' has {}",
                                                        bytes->size(), factors->size()));
    residual.bytes = 0;
    for (size_t i = 0; i < bytes->size(); ++i) {
      const auto size = (*bytes)[i].value_exact<int64_t>();
      if (!size || *size <= static_cast<int64_t>(residual.bytes))
        return Complain((*bytes)[i].source().begin, "'bytes' must hold ascending integers above 0");
      const auto factor = (*factors)[i].value<double>();
      if (!factor || !(std::fabs(*factor) <= kMaxLogFactor))
        return Complain(
            (*factors)[i].source().begin,
            fmt::format("'log_factor' must hold numbers from {} to {}", -kMaxLogFactor, kMaxLogFactor));
      residual.bytes = static_cast<uint64_t>(*size);
      residual.log_factor = *factor;
      system.residuals.push_back(residual);
    }
    return {};
  }
};

// Returns kCorrupt unless the last line is a seal whose hash matches or that says "unchecked".
Status CheckSeal(std::string_view text, const std::string& source) {
  const size_t end = text.size() - (text.ends_with('\n') ? 1 : 0);
  const size_t line = text.empty() ? std::string_view::npos : text.rfind('\n', end == 0 ? 0 : end - 1);
  const size_t begin = line == std::string_view::npos ? 0 : line + 1;
  const std::string_view last = text.substr(begin, end - begin);
  if (!last.starts_with(kSystemSealPrefix) || !text.ends_with('\n')) {
    return WithHint(
        MakeError(ErrorKind::kCorrupt, "{}: the last line is not '{}...': the file is not whole", source,
                  kSystemSealPrefix),
        fmt::format("a file written by hand ends with the line '{}{}'", kSystemSealPrefix, kUncheckedSeal));
  }
  const std::string_view seal = last.substr(kSystemSealPrefix.size());
  if (seal == kUncheckedSeal || seal == SystemSealOf(text.substr(0, begin))) return {};
  return WithHint(
      MakeError(ErrorKind::kCorrupt, "{}: the hash of the last line is not the file's", source),
      fmt::format("after a change by hand let the last line be '{}{}'", kSystemSealPrefix, kUncheckedSeal));
}

}  // namespace

Result<System> ParseSystem(std::string_view text, const std::string& source) {
  DYNAMICCL_CHECK_OK(CheckSeal(text, source));
  DYNAMICCL_TRY(const toml::table root, ParseToml(text, source));
  return SystemReader(source).Read(root);
}

Result<System> ReadSystemFile(const std::string& path) {
  DYNAMICCL_TRY(const std::string text, ReadSmallFile(path, kMaxBytes));
  return ParseSystem(text, path);
}

}  // namespace dynamiccl
