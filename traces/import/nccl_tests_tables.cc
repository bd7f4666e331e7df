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
#include <nlohmann/json.hpp>
#include <set>

#include "traces/import/system_names.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

using Json = nlohmann::json;

// Longer names come first, because they contain shorter ones.
constexpr NamedTest kTests[] = {{"allreducegroup", std::nullopt},
                                {"allreducebias", std::nullopt},
                                {"allreducewithbias", std::nullopt},
                                {"reducescatter", Collective::kReduceScatter},
                                {"allreduce", Collective::kAllReduce},
                                {"allgather", Collective::kAllGather},
                                {"alltoallv", std::nullopt},
                                {"alltoall", Collective::kSendRecv},
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

  // Adds a time. Rows of the same topology, collective and bytes become repeats.
  void Append(const MeasurementContext& context, Collective collective, uint64_t bytes, float microseconds) {
    if (known_.insert(context.topology).second) file_.contexts.push_back(context);
    const auto key = std::tuple(context.topology, collective, bytes);
    const auto [place, is_new] = row_of_.emplace(key, file_.rows.size());
    if (is_new) {
      file_.rows.push_back({.topology = context.topology,
                            .collective = collective,
                            .bytes = bytes,
                            .config = kLeaveNcclAlone,
                            .is_default = is_default_,
                            .microseconds = {}});
    }
    file_.rows[place->second].microseconds.push_back(microseconds);
  }
  // After this call, rows are not marked as NCCL's own choice.
  void SetForced() { is_default_ = false; }

  // The result, with what the file does not contain.
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
  std::set<std::string> known_;
  std::map<std::tuple<std::string, Collective, uint64_t>, size_t> row_of_;
};

// Whether the number is a plausible time: from 0 to 11 days, in microseconds.
bool IsTime(double microseconds) {
  return std::isfinite(microseconds) && microseconds >= 0 && microseconds < 1e12;
}

// ---- JSON ----

// Environment variables with which a user forces NCCL's choice.
constexpr std::string_view kForcing[] = {
    "NCCL_ALGO=",     "NCCL_PROTO=",    "NCCL_MIN_NCHANNELS=", "NCCL_MAX_NCHANNELS=",
    "NCCL_MIN_CTAS=", "NCCL_MAX_CTAS=", "NCCL_TUNER_PLUGIN="};

// Reads a document of nccl-tests' -J: args, env, devices, results. The document and the path must outlive it.
// A result without a size ends the import; one without a time is counted.
class JsonResults {
 public:
  JsonResults(const Json& document, const std::string& path, const ImportOptions& options)
      : document_(document), path_(path), results_("nccl-tests"), collective_(options.collective) {}

  Result<Imported> Run() {
    DYNAMICCL_CHECK_OK(TakeRun());
    if (!collective_) return WithHint(Fail(kUnnamedTest), kNameTheTest);
    DYNAMICCL_CHECK_OK(TakeDevices());
    const auto rows = document_.find("results");
    if (rows == document_.end() || !rows->is_array() || rows->empty()) return Fail("no results");
    for (size_t i = 0; i < rows->size(); ++i) DYNAMICCL_CHECK_OK(TakeRow((*rows)[i], i));
    if (results_.file().rows.empty()) return Fail("no result with a time");
    Imported imported = results_.Finish(left_out_);
    if (!forced_.empty())
      imported.notes.push_back(fmt::format("the environment took choices away from NCCL: {}", forced_));
    return imported;
  }

 private:
  tl::unexpected<Error> Fail(const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}: in the whole document (from byte 0): {}", path_, what);
  }
  tl::unexpected<Error> FailRow(size_t row, const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}: in the whole document (from byte 0): result {}: {}",
                     path_, row, what);
  }

  // The strings of an array; other values in it are ignored.
  std::vector<std::string> Texts(const char* key) const {
    std::vector<std::string> texts;
    const auto list = document_.find(key);
    if (list == document_.end() || !list->is_array()) return texts;
    for (const Json& text : *list) {
      if (text.is_string()) texts.push_back(text.get<std::string>());
    }
    return texts;
  }

  // Reads the test's name from the program's, else from the file's.
  Status TakeTest(const std::vector<std::string>& command) {
    const NamedTest* test = command.empty() ? nullptr : NamedTestIn(StemOf(command[0]));
    if (test == nullptr && !collective_) test = NamedTestIn(StemOf(path_));
    if (test == nullptr) return {};
    collective_ = test->collective;
    if (!collective_) return Fail(fmt::format("{} is no collective of NCCL", test->name));
    return {};
  }

  // Reads the command, the test's name, NCCL's version, and whether the environment forces choices.
  Status TakeRun() {
    const std::vector<std::string> command = Texts("args");
    for (const std::string& word : command)
      results_.file().command += (results_.file().command.empty() ? "" : " ") + word;
    DYNAMICCL_CHECK_OK(TakeTest(command));
    const auto version = document_.find("nccl_version");
    if (version != document_.end() && version->is_number_unsigned()) {
      results_.file().library = LibraryOfCode(version->get<uint64_t>());
    }
    for (const std::string& variable : Texts("env")) {
      for (const std::string_view name : kForcing) {
        if (variable.starts_with(name)) forced_ += (forced_.empty() ? "" : ", ") + variable;
      }
    }
    if (!forced_.empty()) results_.SetForced();
    return {};
  }

  // Reads ranks, hosts and the GPU's name. They are in `config` in the releases that write it, at the top in
  // others.
  Status TakeDevices() {
    const Json* devices = Member(document_, "devices");
    const Json* const config = Member(document_, "config");
    if (devices == nullptr && config != nullptr) devices = Member(*config, "devices");
    std::set<std::string> hosts;
    std::set<std::string> patterns;
    std::set<std::string> machines;
    int32_t ranks = 0;
    if (devices != nullptr && devices->is_array()) {
      for (const Json& device : *devices) {
        ++ranks;
        const std::string host = TextOf(device, "hostname");
        hosts.insert(host);
        patterns.insert(HostPattern(host));
        machines.insert(TextOf(device, "device_info"));
      }
    }
    if (ranks == 0) return Fail("no devices: the number of ranks is not known");
    results_.file().machine = fmt::format("{}", fmt::join(machines, " + "));
    results_.file().hosts = fmt::format("{}", fmt::join(patterns, ","));
    context_.topology = StemOf(path_);
    context_.model.fabric.n_ranks = ranks;
    context_.model.fabric.n_nodes = std::max<int32_t>(1, static_cast<int32_t>(hosts.size()));
    return {};
  }

  // The text of a key; empty where it is missing or none.
  static std::string TextOf(const Json& object, const char* key) {
    const Json* const value = Member(object, key);
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }
  // The value of a key; null where it is missing or JSON's null.
  static const Json* Member(const Json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    const auto place = object.find(key);
    return place == object.end() || place->is_null() ? nullptr : &*place;
  }

  Status TakeRow(const Json& row, size_t number) {
    const Json* const size = Member(row, "size");
    if (size == nullptr || !size->is_number_unsigned()) return FailRow(number, "no size in bytes");
    const auto bytes = size->get<uint64_t>();
    if (bytes == 0) {
      ++left_out_.empty;
      return {};
    }
    DYNAMICCL_CHECK_OK(TakeTimes(row, "out_of_place", "", bytes, number));
    return TakeTimes(row, "in_place", " in-place", bytes, number);
  }

  // Whether the results of this half of a row were wrong.
  static bool IsWrong(const Json& body) {
    const Json* const wrong = Member(body, "nwrong");
    return wrong != nullptr && wrong->is_number() && wrong->get<double>() > 0;
  }

  // Takes the single iterations where they are given, else the mean.
  Status TakeTimes(const Json& row, const std::string& key, const char* suffix, uint64_t bytes,
                   size_t number) {
    const Json* const body = Member(row, key.c_str());
    if (body == nullptr) return {};
    left_out_.wrong += IsWrong(*body);
    std::vector<double> times;
    if (const Json* each = Member(row, (key + "_per_iter").c_str()); each != nullptr) {
      if (const Json* list = Member(*each, "times_us"); list != nullptr && list->is_array()) {
        for (const Json& time : *list) times.push_back(time.is_number() ? time.get<double>() : -1);
      }
    }
    if (times.empty()) {
      const Json* time = Member(*body, "time");
      if (time == nullptr) time = Member(*body, "cpu_time");
      if (time == nullptr || !time->is_number()) {
        ++left_out_.untimed;
        return {};
      }
      times.push_back(time->get<double>());
    }
    MeasurementContext context = context_;
    context.topology += suffix;
    for (const double time : times) {
      if (!IsTime(time)) return FailRow(number, key + " has a time that is none");
      results_.Append(context, *collective_, bytes, static_cast<float>(time));
    }
    return {};
  }

  const Json& document_;
  const std::string& path_;
  Results results_;
  std::optional<Collective> collective_;
  MeasurementContext context_;
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

  // Empty where the table has no such column.
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
    DYNAMICCL_TRY(MeasurementContext context, ContextOf(fields));
    if (bytes == 0) {
      ++left_out_.empty;
      return {};
    }
    const bool in_place = Field(fields, kInPlace) == "1" || Field(fields, kInPlace) == "true";
    const Column first = places_[kOutTime] >= 0 ? kOutTime : kTime;
    DYNAMICCL_CHECK_OK(TakeTime(context, *test->collective, bytes, fields, first, in_place));
    if (places_[kInTime] < 0) return {};
    return TakeTime(context, *test->collective, bytes, fields, kInTime, true);
  }

  // The topology of a row, named by the columns that distinguish runs, the nodes and the ranks.
  Result<MeasurementContext> ContextOf(const std::vector<std::string_view>& fields) {
    DYNAMICCL_TRY(const uint64_t ranks, Number(fields, kRanks, 1 << 20));
    uint64_t nodes = 1;
    if (!Field(fields, kNodes).empty()) {
      DYNAMICCL_TRY(nodes, Number(fields, kNodes, ranks));
    }
    if (ranks == 0 || nodes == 0) return Fail("no ranks");
    MeasurementContext context;
    for (const size_t place : runs_) {
      if (!fields[place].empty()) context.topology += std::string(fields[place]) + " ";
    }
    if (runs_.empty()) context.topology = StemOf(path_) + " ";
    context.topology += fmt::format("{} x{}", nodes, ranks);
    context.model.fabric.n_ranks = static_cast<int32_t>(ranks);
    context.model.fabric.n_nodes = static_cast<int32_t>(nodes);
    return context;
  }

  Status TakeTime(MeasurementContext context, Collective collective, uint64_t bytes,
                  const std::vector<std::string_view>& fields, Column column, bool in_place) {
    const std::string_view text = Field(fields, column);
    if (text.empty() || text == "N/A") {
      ++left_out_.untimed;
      return {};
    }
    const auto time = NumberIn<double>(text);
    if (!time || !IsTime(*time)) return Fail(fmt::format("'{}' is not a time in microseconds", text));
    if (in_place) context.topology += " in-place";
    results_.Append(context, collective, bytes, static_cast<float>(*time));
    return {};
  }

  const std::string& path_;
  Results results_;
  size_t line_number_ = 0;
  size_t width_ = 0;
  Places places_{};
  std::vector<size_t> runs_;  // positions of the columns that distinguish runs
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

Result<Imported> ImportTestJson(std::istream& stream, const std::string& path, const ImportOptions& options) {
  Json document;
  try {
    document = Json::parse(stream);
  } catch (const Json::parse_error& error) {
    return MakeError(ErrorKind::kInvalidArgument, "{}: byte {}: {}", path, error.byte, error.what());
  }
  return JsonResults(document, path, options).Run();
}

Result<Imported> ImportTestTable(std::istream& stream, const std::string& path) {
  TableResults table(path);
  for (std::string line; std::getline(stream, line);) DYNAMICCL_CHECK_OK(table.Take(line));
  return table.Finish();
}

}  // namespace dynamiccl
