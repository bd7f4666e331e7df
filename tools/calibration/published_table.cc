// SPDX-License-Identifier: Apache-2.0
// Reads a table line by line; the first line gives the columns.
#include "tools/calibration/published_table.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <istream>
#include <map>
#include <optional>
#include <vector>

#include "tools/calibration/timed_systems.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/nccl_tests_tables.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

// Columns that hold a time in microseconds.
constexpr std::string_view kTimes[] = {"us", "median_us", "oop_us", "ip_us", "oop_time_us", "ip_time_us"};
// Upper limits of plausible numbers: larger ones are errors of the file.
constexpr uint64_t kMaxBytes = uint64_t{1} << 50;
constexpr uint64_t kMaxRanks = 1 << 20;

// One table of published times while it is read. ReadPublishedTable owns the object on its stack.
class Table {
 public:
  Table(const std::string& path, std::optional<Collective> collective, TimedSystems& systems)
      : path_(path),
        stem_(std::filesystem::path(path).stem().string()),
        unnamed_(collective ? collective : TestIn(stem_)),
        systems_(systems) {}

  // Reads the next line of the table. The first line is the header.
  Status Take(std::string_view line) {
    ++line_number_;
    if (line.empty() || line == "\r") return {};
    const auto fields = CommaFields(line);
    if (columns_.empty()) {
      for (size_t i = 0; i < fields.size(); ++i) columns_.emplace(fields[i], i);
      width_ = fields.size();
      if (columns_.contains("collective") || columns_.contains("coll") || unnamed_) return {};
      return WithHint(Fail("no column 'collective' or 'coll', and the file's name does not tell which it is"),
                      kNameTheTest);
    }
    if (fields.size() != width_)
      return Fail(fmt::format("{} fields under {} columns", fields.size(), width_));
    return TakeRow(fields);
  }

 private:
  using Row = std::vector<std::string_view>;

  // Returns an error with the file and the number of the line.
  tl::unexpected<Error> Fail(const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}: line {}: {}", path_, line_number_, what);
  }

  // The field of a column, empty where the table does not have the column.
  std::string_view Field(const Row& row, std::string_view name) const {
    const auto found = columns_.find(name);
    return found == columns_.end() ? std::string_view() : row[found->second];
  }
  std::string_view Field(const Row& row, std::string_view name, std::string_view other) const {
    const std::string_view field = Field(row, name);
    return field.empty() ? Field(row, other) : field;
  }

  // The field as a whole number; an error when it is none or exceeds `most`.
  Result<uint64_t> Count(const Row& row, std::string_view name, uint64_t most) const {
    const auto value = NumberIn<uint64_t>(Field(row, name));
    if (value && *value <= most) return *value;
    return Fail(fmt::format("'{}' is '{}', not a number up to {}", name, Field(row, name), most));
  }

  std::optional<Collective> CollectiveOf(const Row& row) const {
    const std::string_view named = Field(row, "collective", "coll");
    return named.empty() ? unnamed_ : TestIn(named);
  }

  // Returns the config of a row. Returns nothing if the row's variant is not one of NCCL's algorithms.
  Result<std::optional<CollectiveConfig>> ConfigOf(const Row& row) const {
    CollectiveConfig config = kLeaveNcclAlone;
    const std::string_view variant = Field(row, "variant");
    const bool own = variant == "nccl_nvls" || variant == "nccl_pat" || variant.starts_with("nccl_collnet");
    const bool forced = variant == "nccl_ring" || variant == "nccl_tree";
    if (!variant.empty() && !own && !forced) return std::optional<CollectiveConfig>();
    const std::string_view algorithm = forced ? variant.substr(5) : Field(row, "algorithm", "algo");
    if (algorithm.empty()) return std::optional(config);
    const auto parsed = ParseAlgorithm(algorithm);
    if (!parsed) return Fail(fmt::format("no algorithm '{}'", algorithm));
    config.algorithm = *parsed;
    const std::string_view protocol = Field(row, "protocol", "proto");
    if (protocol.empty()) return std::optional(config);
    const auto parsed_protocol = ParseProtocol(protocol);
    if (!parsed_protocol) return Fail(fmt::format("no protocol '{}'", protocol));
    config.protocol = *parsed_protocol;
    const auto low = NumberIn<int>(Field(row, "ch_lo"));
    const auto high = NumberIn<int>(Field(row, "ch_hi"));
    if (low && high && *low <= *high && *high - *low < 255)
      config.channels = static_cast<uint8_t>(*high - *low + 1);
    return std::optional(config);
  }

  // Name and origin of the row's system: from its columns where the table has them, else from the file.
  std::pair<std::string, std::string> SystemOf(const Row& row) const {
    std::string name;
    for (const std::string_view column : {"system", "nccl", "config"}) {
      const std::string_view field = Field(row, column);
      if (field.empty()) continue;
      if (!name.empty()) name += " / ";
      name += field;
    }
    if (name.empty()) return {stem_, path_};
    return {name, ""};
  }

  Status TakeRow(const Row& row) {
    DYNAMICCL_TRY(const uint64_t bytes, Count(row, "bytes", kMaxBytes));
    DYNAMICCL_TRY(const uint64_t ranks, Count(row, "ranks", kMaxRanks));
    uint64_t nodes = 1;
    if (!Field(row, "nodes").empty()) {
      DYNAMICCL_TRY(nodes, Count(row, "nodes", ranks));
    }
    DYNAMICCL_TRY(const std::optional<CollectiveConfig> config, ConfigOf(row));
    const auto collective = CollectiveOf(row);
    if (!config || !collective || bytes == 0 || ranks == 0 || nodes == 0) return {};
    const TimedCell key{.collective = *collective,
                        .n_ranks = static_cast<int>(ranks),
                        .n_nodes = static_cast<int>(nodes),
                        .bytes = bytes,
                        .config = *config};
    const auto [system, origin] = SystemOf(row);
    for (const std::string_view column : kTimes) {
      const auto us = NumberIn<double>(Field(row, column));
      if (us && *us > 0 && std::isfinite(*us)) systems_.AddRepeat(system, origin, key, *us);
    }
    return {};
  }

  std::string path_;
  std::string stem_;
  std::optional<Collective> unnamed_;  // the collective of rows that name none
  TimedSystems& systems_;
  size_t line_number_ = 0;
  size_t width_ = 0;
  std::map<std::string, size_t, std::less<>> columns_;
};

}  // namespace

bool LooksLikePublishedTable(std::string_view head) {
  const auto fields = CommaFields(head.substr(0, head.find('\n')));
  const auto has = [&](std::string_view name) {
    return std::find(fields.begin(), fields.end(), name) != fields.end();
  };
  return has("bytes") && has("ranks") && std::any_of(std::begin(kTimes), std::end(kTimes), has) &&
         !(has("collective") && has("us"));  // such a table is a config table, which an importer reads
}

Status ReadPublishedTable(const std::string& path, std::optional<Collective> collective,
                          TimedSystems& systems) {
  DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
  Table table(path, collective, systems);
  for (std::string line; std::getline(stream.stream(), line);) DYNAMICCL_CHECK_OK(table.Take(line));
  return stream.status();
}

}  // namespace dynamiccl
