// SPDX-License-Identifier: Apache-2.0
// Both forms are collected in `Results`, where times of the same topology, collective and size become the
// repeats of one row. In-place results get a topology of their own (" in-place"), so that they are not mixed
// with out-of-place ones.
#include "traces/import/nccl_tests_tables.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "traces/import/json_document.h"
#include "traces/import/json_pieces.h"
#include "traces/import/system_names.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

// Longer names come first, because they contain shorter ones.
constexpr NamedTest kTests[] = {{"allreducegroup", std::nullopt},
                                {"allreducebias", std::nullopt},
                                {"allreducewithbias", std::nullopt},
                                {"reducescatter", Collective::kReduceScatter},
                                {"allreduce", Collective::kAllReduce},
                                {"allgather", Collective::kAllGather},
                                {"alltoallv", std::nullopt},
                                {"alltoall", Collective::kAllToAll},
                                {"sendrecv", Collective::kSendRecv},
                                {"broadcast", Collective::kBroadcast},
                                {"hypercube", std::nullopt},
                                {"bisection", std::nullopt},
                                {"scatter", std::nullopt},
                                {"gather", std::nullopt},
                                {"reduce", Collective::kReduce}};

// The file's name without folder and extension.
std::string StemOf(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

// Counts of rows or times that are left out, by reason, and of those that are kept although their results
// were wrong.
struct LeftOut {
  uint64_t empty = 0;    // of 0 bytes
  uint64_t untimed = 0;  // rows without a time
  uint64_t wrong = 0;    // kept, although the test found wrong results
  uint64_t other = 0;    // of tests that are no collectives of NCCL

  std::vector<std::string> Notes() const {
    std::vector<std::string> notes;
    const auto note = [&](uint64_t count, std::string_view what) {
      if (count > 0) notes.push_back(fmt::format("{} {}", count, what));
    };
    note(empty, "rows of 0 bytes: left out");
    note(untimed, "times that are not there: left out");
    note(wrong, "times whose results were wrong (#wrong above 0): kept");
    note(other, "rows of tests that are no collectives of NCCL: left out");
    return notes;
  }
};

// Rows and contexts of one file.
class Results {
 public:
  explicit Results(std::string source) { file_.library = std::move(source); }

  MeasurementFile& file() { return file_; }

  // Returns the times of a topology, collective and size, to which the caller appends a new one. The
  // topology's ranks and nodes are those of the first call.
  std::vector<float>& TimesOf(std::string_view topology, int32_t ranks, int32_t nodes, Collective collective,
                              uint64_t bytes) {
    auto place = topology_of_.find(topology);
    if (place == topology_of_.end()) {
      place = topology_of_.emplace(topology, file_.contexts.size()).first;
      file_.contexts.push_back({.topology = place->first, .model = {}});
      file_.contexts.back().model.fabric.n_ranks = ranks;
      file_.contexts.back().model.fabric.n_nodes = nodes;
    }
    const auto [row, is_new] =
        row_of_.try_emplace(std::tuple(place->second, collective, bytes), file_.rows.size());
    if (is_new) {
      file_.rows.push_back({.topology = place->first,
                            .collective = collective,
                            .bytes = bytes,
                            .config = kLeaveNcclAlone,
                            .is_default = is_default_,
                            .microseconds = {}});
    }
    return file_.rows[row->second].microseconds;
  }
  // After this call, rows are not marked as NCCL's own choice.
  void SetForced() { is_default_ = false; }

  // Returns the result, with notes on what the file does not contain.
  Imported Finish(const LeftOut& left_out) {
    Imported imported;
    const uint64_t rows = file_.rows.size();
    imported.unfilled = {{"algorithm", rows, "unknown"},
                         {"protocol", rows, "unknown"},
                         {"channels", rows, "unknown"},
                         {"fabric", file_.contexts.size(), "zeros"}};
    imported.notes = left_out.Notes();
    imported.measurements = std::move(file_);
    return imported;
  }

 private:
  MeasurementFile file_;
  bool is_default_ = true;
  std::map<std::string, size_t, std::less<>> topology_of_;  // index of its context
  std::map<std::tuple<size_t, Collective, uint64_t>, size_t> row_of_;
};

// True if the number is a plausible time: from 0 to 11 days, in microseconds.
bool IsTime(double microseconds) {
  return std::isfinite(microseconds) && microseconds >= 0 && microseconds < 1e12;
}

// ---- JSON ----

// Environment variables with which a user forces NCCL's choice.
constexpr std::string_view kForcing[] = {
    "NCCL_ALGO=",     "NCCL_PROTO=",    "NCCL_MIN_NCHANNELS=", "NCCL_MAX_NCHANNELS=",
    "NCCL_MIN_CTAS=", "NCCL_MAX_CTAS=", "NCCL_TUNER_PLUGIN="};

// The two halves of a result: the names of their members, and the suffix of their topology.
struct ResultHalf {
  std::string_view mean, each, suffix;
};
constexpr ResultHalf kHalves[] = {{"out_of_place", "out_of_place_per_iter", ""},
                                  {"in_place", "in_place_per_iter", " in-place"}};

// Reads a document of nccl-tests' -J: args, env, devices, results. The path must outlive it. Results are read
// as a stream, and kept as numbers until the document's end, because what they belong to may come behind
// them. A result without a size ends the import; one without a time is counted.
class JsonResults {
 public:
  JsonResults(const std::string& path, const ImportOptions& options)
      : path_(path), results_("nccl-tests"), collective_(options.collective) {}

  Result<Imported> Read(GzipStream& stream) {
    JsonPieces pieces(stream, path_);
    DYNAMICCL_CHECK_OK(pieces.ReadObject(
        [](std::string_view key) {
          if (key == "results") return JsonMemberUse::kElements;
          const bool wanted =
              key == "args" || key == "env" || key == "nccl_version" || key == "devices" || key == "config";
          return wanted ? JsonMemberUse::kWhole : JsonMemberUse::kSkip;
        },
        [this](std::string_view key, std::string_view text, uint64_t offset) {
          return TakePiece(key, text, offset);
        }));
    return Finish();
  }

 private:
  // One result of the document. A half for which the document gives no times has none here.
  struct Row {
    uint64_t bytes = 0;
    std::array<std::vector<float>, 2> microseconds;
  };

  tl::unexpected<Error> Fail(const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}: in the whole document (from byte 0): {}", path_, what);
  }

  // Reads a member of the document, or one result.
  Status TakePiece(std::string_view key, std::string_view text, uint64_t offset) {
    const auto json = document_.Parse(text);
    if (!json)
      return MakeError(ErrorKind::kInvalidArgument, "{}: byte {}: \"{}\" is not JSON", path_,
                       offset + document_.position(), key);
    if (key == "args") command_ = TextsIn(*json);
    if (key == "env") environment_ = TextsIn(*json);
    if (key == "nccl_version") version_ = json->Unsigned();
    if (key == "devices" && json->is_set()) TakeDevices(*json, true);
    if (key == "config") TakeDevices((*json)["devices"], false);
    return key == "results" ? TakeRow(*json, offset) : Status();
  }

  // The strings of an array; other values in it are ignored.
  static std::vector<std::string> TextsIn(JsonValue list) {
    std::vector<std::string> texts;
    list.EachElement([&](JsonValue text) {
      if (text.is_string()) texts.push_back(text.Text());
    });
    return texts;
  }

  // Reads ranks, hosts and the GPU's name. Some releases write them in `config`, others at the top of the
  // document. Those at the top have precedence.
  void TakeDevices(JsonValue devices, bool at_top) {
    if (devices_at_top_) return;
    devices_at_top_ = at_top;
    ranks_ = 0;
    devices.EachElement([this](JsonValue device) {
      ++ranks_;
      const std::string host = device["hostname"].Text();
      hosts_.insert(host);
      patterns_.insert(HostPattern(host));
      machines_.insert(device["device_info"].Text());
    });
  }

  Status TakeRow(JsonValue json, uint64_t offset) {
    const auto fail = [&](const std::string& what) {
      return MakeError(ErrorKind::kInvalidArgument, "{}: byte {}: result {}: {}", path_, offset, seen_, what);
    };
    const auto bytes = json["size"].Unsigned();
    if (!bytes) return fail("no size in bytes");
    left_out_.empty += *bytes == 0;
    if (*bytes > 0) rows_.push_back({.bytes = *bytes, .microseconds = {}});
    for (size_t half = 0; *bytes > 0 && half < std::size(kHalves); ++half) {
      if (!TakeTimes(json, kHalves[half], rows_.back().microseconds[half]))
        return fail(fmt::format("{} has a time that is none", kHalves[half].mean));
    }
    ++seen_;
    return {};
  }

  // Takes the single iterations where they are given, else the mean. Returns false for a wrong time.
  bool TakeTimes(JsonValue json, const ResultHalf& half, std::vector<float>& times) {
    const JsonValue body = json[half.mean];
    if (!body.is_set()) return true;
    left_out_.wrong += body["nwrong"].Number(HUGE_VAL).value_or(0) > 0;
    bool right = true;
    const auto take = [&](JsonValue time) {
      const double us = time.Number(HUGE_VAL).value_or(-1);
      right &= IsTime(us);
      times.push_back(static_cast<float>(us));
    };
    json[half.each]["times_us"].EachElement(take);
    if (!times.empty()) return right;
    const JsonValue mean = body["time"].is_set() ? body["time"] : body["cpu_time"];
    if (mean.is_number()) take(mean);
    left_out_.untimed += !mean.is_number();
    return right;
  }

  // Finds the test by the program's name, else by the file's name.
  Status NameTest() {
    const NamedTest* test = command_.empty() ? nullptr : NamedTestIn(StemOf(command_[0]));
    if (test == nullptr && !collective_) test = NamedTestIn(StemOf(path_));
    if (test == nullptr) return {};
    collective_ = test->collective;
    if (!collective_) return Fail(fmt::format("{} is no collective of NCCL", test->name));
    return {};
  }

  // Describes the system, and whether the environment forced choices.
  Status Describe() {
    MeasurementFile& file = results_.file();
    file.command = fmt::format("{}", fmt::join(command_, " "));
    DYNAMICCL_CHECK_OK(NameTest());
    if (version_) file.library = LibraryOfCode(*version_);
    for (const std::string& variable : environment_) {
      for (const std::string_view name : kForcing) {
        if (variable.starts_with(name)) forced_ += (forced_.empty() ? "" : ", ") + variable;
      }
    }
    if (!forced_.empty()) results_.SetForced();
    if (!collective_) return WithHint(Fail(kUnnamedTest), kNameTheTest);
    if (ranks_ == 0) return Fail("no devices: the number of ranks is not known");
    file.machine = fmt::format("{}", fmt::join(machines_, " + "));
    file.hosts = fmt::format("{}", fmt::join(patterns_, ","));
    return {};
  }

  Result<Imported> Finish() {
    DYNAMICCL_CHECK_OK(Describe());
    if (seen_ == 0) return Fail("no results");
    const auto nodes = std::max<int32_t>(1, static_cast<int32_t>(hosts_.size()));
    for (const Row& row : rows_) {
      for (size_t half = 0; half < std::size(kHalves); ++half) {
        const std::vector<float>& times = row.microseconds[half];
        if (times.empty()) continue;
        std::vector<float>& all = results_.TimesOf(fmt::format("{}{}", StemOf(path_), kHalves[half].suffix),
                                                   ranks_, nodes, *collective_, row.bytes);
        all.insert(all.end(), times.begin(), times.end());
      }
    }
    if (results_.file().rows.empty()) return Fail("no result with a time");
    Imported imported = results_.Finish(left_out_);
    if (!forced_.empty())
      imported.notes.push_back(fmt::format("the environment took choices away from NCCL: {}", forced_));
    return imported;
  }

  const std::string& path_;
  JsonDocument document_;
  Results results_;
  std::optional<Collective> collective_;
  std::vector<std::string> command_, environment_;
  std::optional<uint64_t> version_;
  bool devices_at_top_ = false;
  int32_t ranks_ = 0;
  std::set<std::string> hosts_, patterns_, machines_;
  size_t seen_ = 0;
  std::vector<Row> rows_;
  std::string forced_;
  LeftOut left_out_;
};

// ---- tables ----

// The columns that the importer knows.
enum Column { kCollective, kRanks, kNodes, kBytes, kTime, kInPlace, kWrong, kOutTime, kInTime, kColumns };
// A column's name; several names may mean the same column.
struct ColumnName {
  std::string_view name;
  Column column;
};
constexpr ColumnName kColumnNames[] = {
    {"collective", kCollective}, {"coll", kCollective}, {"ranks", kRanks},  {"gpus", kRanks},
    {"nodes", kNodes},           {"bytes", kBytes},     {"size", kBytes},   {"time", kTime},
    {"inplace", kInPlace},       {"oop_us", kOutTime},  {"ip_us", kInTime}, {"oop_time_us", kOutTime},
    {"ip_time_us", kInTime},     {"#wrong", kWrong}};
// Columns whose values distinguish runs.
constexpr std::string_view kRunColumns[] = {"system", "file", "config", "nccl", "aws_ofi_nccl", "job"};

// Place of each Column in a line; -1: not there.
using Places = std::array<int, kColumns>;

Places PlacesIn(const std::vector<std::string_view>& names) {
  Places places;
  places.fill(-1);
  for (size_t i = 0; i < names.size(); ++i) {
    for (const ColumnName& row : kColumnNames) {
      if (row.name == names[i]) places[row.column] = static_cast<int>(i);
    }
  }
  return places;
}

// True if the columns of a header are enough for results.
bool AreResults(const Places& places) {
  return places[kCollective] >= 0 && places[kRanks] >= 0 && places[kBytes] >= 0 &&
         (places[kOutTime] >= 0 || (places[kTime] >= 0 && places[kInPlace] >= 0));
}

// Reads a table line by line. The path must outlive it. The first wrong line ends the import; a missing time
// is counted.
class TableResults {
 public:
  explicit TableResults(const std::string& path) : path_(path), results_("nccl-tests") {}

  Status Take(std::string_view line) {
    ++line_number_;
    if (Trimmed(line).empty()) return {};
    const auto fields = CommaFields(line);
    if (width_ == 0) return TakeHeader(fields);
    // rccl-tests appends to a file of an earlier run, with a header of its own.
    if (AreResults(PlacesIn(fields))) return TakeHeader(fields);
    if (fields.size() != width_)
      return Fail(fmt::format("{} fields under {} columns", fields.size(), width_));
    return TakeRow(fields);
  }

  Result<Imported> Finish() {
    if (results_.file().rows.empty()) return Fail("no row of times in this file");
    return results_.Finish(left_out_);
  }

 private:
  tl::unexpected<Error> Fail(const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}: line {}: {}", path_, line_number_, what);
  }

  Status TakeHeader(const std::vector<std::string_view>& names) {
    places_ = PlacesIn(names);
    if (!AreResults(places_)) return Fail("the header has no columns of collective, ranks, bytes and times");
    runs_.clear();
    for (size_t i = 0; i < names.size(); ++i) {
      if (std::find(std::begin(kRunColumns), std::end(kRunColumns), names[i]) != std::end(kRunColumns))
        runs_.push_back(i);
    }
    width_ = names.size();
    return {};
  }

  // Returns the field under a column; empty if the table has no such column.
  std::string_view Field(const std::vector<std::string_view>& fields, Column column) const {
    return places_[column] < 0 ? std::string_view() : fields[static_cast<size_t>(places_[column])];
  }

  Result<uint64_t> Number(const std::vector<std::string_view>& fields, Column column, uint64_t most) const {
    const auto number = NumberIn<uint64_t>(Field(fields, column));
    if (number && *number <= most) return *number;
    return Fail(fmt::format("'{}' is not a number up to {}", Field(fields, column), most));
  }

  Status TakeRow(const std::vector<std::string_view>& fields) {
    const NamedTest* const test = NamedTestIn(Field(fields, kCollective));
    if (test == nullptr) return Fail(fmt::format("no collective '{}'", Field(fields, kCollective)));
    if (!test->collective) {
      ++left_out_.other;
      return {};
    }
    left_out_.wrong += NumberIn<double>(Field(fields, kWrong)).value_or(0) > 0;
    DYNAMICCL_TRY(const uint64_t bytes, Number(fields, kBytes, uint64_t{1} << 50));
    DYNAMICCL_CHECK_OK(TakeTopology(fields));
    if (bytes == 0) {
      ++left_out_.empty;
      return {};
    }
    const bool in_place = Field(fields, kInPlace) == "1" || Field(fields, kInPlace) == "true";
    const Column first = places_[kOutTime] >= 0 ? kOutTime : kTime;
    DYNAMICCL_CHECK_OK(TakeTime(*test->collective, bytes, Field(fields, first), in_place));
    if (places_[kInTime] < 0) return {};
    return TakeTime(*test->collective, bytes, Field(fields, kInTime), true);
  }

  // Sets the topology of a row. The columns that distinguish runs, the nodes and the ranks name it.
  Status TakeTopology(const std::vector<std::string_view>& fields) {
    DYNAMICCL_TRY(ranks_, Number(fields, kRanks, 1 << 20));
    nodes_ = 1;
    if (!Field(fields, kNodes).empty()) {
      DYNAMICCL_TRY(nodes_, Number(fields, kNodes, ranks_));
    }
    if (ranks_ == 0 || nodes_ == 0) return Fail("no ranks");
    topology_.clear();
    for (const size_t place : runs_) {
      if (!fields[place].empty()) topology_.append(fields[place]) += ' ';
    }
    if (runs_.empty()) topology_ = StemOf(path_) + " ";
    fmt::format_to(std::back_inserter(topology_), "{} x{}", nodes_, ranks_);
    return {};
  }

  Status TakeTime(Collective collective, uint64_t bytes, std::string_view text, bool in_place) {
    if (text.empty() || text == "N/A") {
      ++left_out_.untimed;
      return {};
    }
    const auto time = NumberIn<double>(text);
    if (!time || !IsTime(*time)) return Fail(fmt::format("'{}' is not a time in microseconds", text));
    const size_t length = topology_.size();
    if (in_place) topology_ += " in-place";
    results_.TimesOf(topology_, static_cast<int32_t>(ranks_), static_cast<int32_t>(nodes_), collective, bytes)
        .push_back(static_cast<float>(*time));
    topology_.resize(length);
    return {};
  }

  const std::string& path_;
  Results results_;
  size_t line_number_ = 0;
  size_t width_ = 0;
  Places places_{};
  std::vector<size_t> runs_;  // positions of the columns that distinguish runs
  // The topology of the current row.
  std::string topology_;
  uint64_t ranks_ = 0, nodes_ = 0;
  LeftOut left_out_;
};

}  // namespace

const NamedTest* NamedTestIn(std::string_view text) {
  std::string folded;
  for (const char c : text) {
    if (c != '_' && c != '-') folded += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const NamedTest& test : kTests) {
    if (folded.find(test.name) != std::string::npos) return &test;
  }
  return nullptr;
}

std::optional<Collective> TestIn(std::string_view text) {
  const NamedTest* const test = NamedTestIn(text);
  return test == nullptr ? std::nullopt : test->collective;
}

bool IsTestJson(std::string_view head) {
  return head.starts_with('{') && head.find("\"args\"") != std::string_view::npos &&
         head.find("\"nccl_version\"") != std::string_view::npos;
}

bool IsTestTable(std::string_view head) {
  return AreResults(PlacesIn(CommaFields(head.substr(0, head.find('\n')))));
}

Result<Imported> ImportTestJson(GzipStream& stream, const std::string& path, const ImportOptions& options) {
  return JsonResults(path, options).Read(stream);
}

Result<Imported> ImportTestTable(GzipStream& stream, const std::string& path) {
  TableResults table(path);
  DYNAMICCL_CHECK_OK(stream.EachLine([&](std::string_view line) { return table.Take(line); }));
  return table.Finish();
}

}  // namespace dynamiccl
