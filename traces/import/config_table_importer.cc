// SPDX-License-Identifier: Apache-2.0
// A table of times of forced configs as comma-separated text, for users who sweep with their own tools.
// Grammar: docs/formats/config_table.md. Rows of the same cell and config become its repeats. Example:
//     # measured with our own harness
//     collective,ranks,bytes,algorithm,protocol,channels,us
//     AllReduce,8,1048576,Ring,LL128,8,93.2
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

#include "traces/import/gzip_stream.h"
#include "traces/import/text_fields.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

// The columns that are read; other columns belong to the user and are ignored.
enum Column {
  kTopology,
  kCollective,
  kRanks,
  kNodes,
  kBytes,
  kAlgorithm,
  kProtocol,
  kChannels,
  kTime,
  kColumns
};
// Names of the columns in a header line; some of them are required.
constexpr std::array<std::string_view, kColumns> kNames = {
    "topology", "collective", "ranks", "nodes", "bytes", "algorithm", "protocol", "channels", "us"};
constexpr Column kRequired[] = {kCollective, kRanks, kBytes, kTime};

// Reads line by line into a measurement file. Import() makes one such object for each file and uses it on one
// thread. The first wrong line ends the import.
class TableParser {
 public:
  // Topologies are named after the file at `path`, and errors contain the path.
  explicit TableParser(const std::string& path) : path_(path), stem_(std::filesystem::path(path).stem()) {
    file_.library = "config table " + std::filesystem::path(path).filename().string();
  }

  // Processes one line; comments and empty lines are skipped.
  Status Take(std::string_view line) {
    ++line_number_;
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') return {};
    const auto fields = CommaFields(line);
    return header_ ? TakeRow(fields) : TakeHeader(fields);
  }

  Result<Imported> Finish() {
    if (file_.rows.empty()) return Fail("no row of times in this file");
    Imported imported;
    imported.unfilled.push_back({"fabric", file_.contexts.size(), "zeros"});
    if (untold_channels_ > 0) imported.unfilled.push_back({"channels", untold_channels_, "unknown"});
    imported.measurements = std::move(file_);
    return imported;
  }

 private:
  tl::unexpected<Error> Fail(const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}: line {}: {}", path_, line_number_, what);
  }

  // Finds the columns by name; one name twice is an error.
  Status TakeHeader(const std::vector<std::string_view>& fields) {
    header_.emplace();
    header_->fill(-1);
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto* const name = std::find(kNames.begin(), kNames.end(), fields[i]);
      if (name == kNames.end()) continue;  // a column of the user's own
      int& place = (*header_)[static_cast<size_t>(name - kNames.begin())];
      if (place >= 0) return Fail(fmt::format("column '{}' is there twice", fields[i]));
      place = static_cast<int>(i);
    }
    for (const Column column : kRequired) {
      if ((*header_)[column] < 0) return Fail(fmt::format("the header has no column '{}'", kNames[column]));
    }
    width_ = fields.size();
    return {};
  }

  // The field under a column; empty where the table has no such column.
  std::string_view Field(const std::vector<std::string_view>& fields, Column column) const {
    const int place = (*header_)[column];
    return place < 0 ? std::string_view() : fields[static_cast<size_t>(place)];
  }

  // A number from 1 to `most` under a column.
  Result<uint64_t> Count(const std::vector<std::string_view>& fields, Column column, uint64_t most) const {
    const auto value = NumberIn<uint64_t>(Field(fields, column));
    if (value && *value >= 1 && *value <= most) return *value;
    return Fail(
        fmt::format("'{}' is '{}', not a number from 1 to {}", kNames[column], Field(fields, column), most));
  }

  // Reads a row into a measurement.
  Status TakeRow(const std::vector<std::string_view>& fields) {
    if (fields.size() != width_)
      return Fail(fmt::format("{} fields under {} columns", fields.size(), width_));
    Measurement row;
    const auto collective = ParseCollective(Field(fields, kCollective));
    if (!collective) return Fail(fmt::format("no collective '{}'", Field(fields, kCollective)));
    row.collective = *collective;
    DYNAMICCL_TRY(row.bytes, Count(fields, kBytes, uint64_t{1} << 50));
    DYNAMICCL_TRY(row.config, ConfigOf(fields));
    row.is_default = row.config.algorithm == Algorithm::kUndefined;
    DYNAMICCL_TRY(const size_t topology, TopologyOf(fields));
    const auto time = NumberIn<float>(Field(fields, kTime));
    if (!time || !std::isfinite(*time) || *time < 0) {
      return Fail(fmt::format("'us' is '{}', not a time in microseconds", Field(fields, kTime)));
    }
    Append(topology, std::move(row), *time);
    return {};
  }

  // The config of a row; without an algorithm, the library's own choice.
  Result<CollectiveConfig> ConfigOf(const std::vector<std::string_view>& fields) {
    CollectiveConfig config = kLeaveNcclAlone;
    const std::string_view algorithm = Field(fields, kAlgorithm);
    const std::string_view protocol = Field(fields, kProtocol);
    if (algorithm.empty()) {
      if (!protocol.empty()) return Fail("a protocol without an algorithm");
      return config;
    }
    const auto parsed = ParseAlgorithm(algorithm);
    if (!parsed) return Fail(fmt::format("no algorithm '{}'", algorithm));
    config.algorithm = *parsed;
    if (!protocol.empty()) {
      const auto parsed_protocol = ParseProtocol(protocol);
      if (!parsed_protocol) return Fail(fmt::format("no protocol '{}'", protocol));
      config.protocol = *parsed_protocol;
    }
    if (Field(fields, kChannels).empty()) {
      ++untold_channels_;
      return config;
    }
    DYNAMICCL_TRY(const uint64_t channels, Count(fields, kChannels, kMaxNcclChannels));
    config.channels = static_cast<uint8_t>(channels);
    return config;
  }

  // Returns the index of the row's context. It combines the topology's own name and the number of ranks,
  // because one name may stand for communicators of several sizes.
  Result<size_t> TopologyOf(const std::vector<std::string_view>& fields) {
    DYNAMICCL_TRY(const uint64_t ranks, Count(fields, kRanks, 1 << 20));
    uint64_t nodes = 1;
    if (!Field(fields, kNodes).empty()) {
      DYNAMICCL_TRY(nodes, Count(fields, kNodes, ranks));
    }
    const std::string_view given = Field(fields, kTopology);
    name_.clear();
    fmt::format_to(std::back_inserter(name_), "{} x{}", given.empty() ? std::string_view(stem_) : given,
                   ranks);
    if (const auto known = topology_of_.find(name_); known != topology_of_.end()) {
      const auto above = static_cast<uint64_t>(file_.contexts[known->second].model.fabric.n_nodes);
      if (above == nodes) return known->second;
      return Fail(fmt::format("topology '{}' has {} nodes here and {} above", name_, nodes, above));
    }
    MeasurementContext context{.topology = name_, .model = {}};
    context.model.fabric.n_ranks = static_cast<int32_t>(ranks);
    context.model.fabric.n_nodes = static_cast<int32_t>(nodes);
    file_.contexts.push_back(context);
    return topology_of_[name_] = file_.contexts.size() - 1;
  }

  // Adds a time to the row of its cell and config.
  void Append(size_t topology, Measurement row, float microseconds) {
    const auto key = std::tuple(topology, row.collective, row.bytes, row.config.algorithm,
                                row.config.protocol, row.config.channels);
    const auto [place, is_new] = row_of_.emplace(key, file_.rows.size());
    if (is_new) {
      row.topology = file_.contexts[topology].topology;
      file_.rows.push_back(std::move(row));
    }
    file_.rows[place->second].microseconds.push_back(microseconds);
  }

  std::string path_;
  std::string stem_;
  size_t line_number_ = 0;
  size_t width_ = 0;
  // Position of each Column in a line; -1: the table does not have it. Empty before the header line.
  std::optional<std::array<int, kColumns>> header_;
  std::string name_;                                        // the topology of the current row
  std::map<std::string, size_t, std::less<>> topology_of_;  // topology and ranks -> index of its context
  std::map<std::tuple<size_t, Collective, uint64_t, Algorithm, Protocol, uint8_t>, size_t> row_of_;
  uint64_t untold_channels_ = 0;
  MeasurementFile file_;
};

// Recognises a file by the header line of its table.
class ConfigTable final : public TraceImporter {
 public:
  std::string_view name() const override { return "config-table"; }
  std::string_view sentence() const override {
    return "comma-separated times of forced configs, as measurements";
  }
  bool Recognises(std::string_view head) const override {
    while (head.starts_with('#')) head.remove_prefix(std::min(head.find('\n'), head.size() - 1) + 1);
    const auto fields = CommaFields(head.substr(0, head.find('\n')));
    return std::all_of(std::begin(kRequired), std::end(kRequired), [&](Column column) {
      return std::find(fields.begin(), fields.end(), kNames[column]) != fields.end();
    });
  }
  Result<Imported> Import(const std::string& path, const ImportOptions& /*options*/) const override {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
    TableParser parser(path);
    DYNAMICCL_CHECK_OK(stream.EachLine([&](std::string_view line) { return parser.Take(line); }));
    auto imported = parser.Finish();
    if (imported && stream.ended_in_line()) imported->notes.emplace_back(kLastLineOpen);
    return imported;
  }
};

}  // namespace

const TraceImporter& ConfigTableImporter() {
  static const ConfigTable importer;
  return importer;
}

}  // namespace dynamiccl
