// SPDX-License-Identifier: Apache-2.0
// Tables of results, and the names of tests. Times of the same topology, collective and size become the
// repeats of one row. In-place results get a topology of their own (" in-place").
#include "traces/import/nccl_tests_tables.h"

#include <algorithm>
#include <array>

#include "traces/import/nccl_tests_ranks.h"
#include "traces/import/nccl_tests_results.h"
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

// The columns that the importer knows.
enum Column {
  kCollective,
  kRanks,
  kNodes,
  kBytes,
  kTime,
  kInPlace,
  kWrong,
  kOutTime,
  kInTime,
  kOutAlgbw,
  kOutBusbw,
  kInAlgbw,
  kInBusbw,
  kColumns
};
// A column's name; several names may mean the same column.
struct ColumnName {
  std::string_view name;
  Column column;
};
constexpr ColumnName kColumnNames[] = {
    {"collective", kCollective}, {"coll", kCollective},    {"ranks", kRanks},      {"gpus", kRanks},
    {"nodes", kNodes},           {"bytes", kBytes},        {"size", kBytes},       {"time", kTime},
    {"inplace", kInPlace},       {"oop_us", kOutTime},     {"ip_us", kInTime},     {"oop_time_us", kOutTime},
    {"ip_time_us", kInTime},     {"#wrong", kWrong},       {"algbw", kOutAlgbw},   {"busbw", kOutBusbw},
    {"oop_algbw", kOutAlgbw},    {"oop_busbw", kOutBusbw}, {"ip_algbw", kInAlgbw}, {"ip_busbw", kInBusbw}};
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
  // Bandwidths cannot check times if several columns have the same bandwidth's name, or if one bandwidth
  // stands beside two times.
  for (const auto& [name, column] : kColumnNames) {
    const bool bandwidth = column >= kOutAlgbw;
    const bool of_two_times = !name.starts_with("oop_") && !name.starts_with("ip_") && places[kInTime] >= 0;
    const auto times = std::count(names.begin(), names.end(), name);
    if (bandwidth && (times > 1 || (times == 1 && of_two_times))) places[column] = -1;
  }
  return places;
}

// True if the columns of a header are enough for results.
bool AreResults(const Places& places) {
  return places[kCollective] >= 0 && places[kRanks] >= 0 && places[kBytes] >= 0 &&
         (places[kOutTime] >= 0 || (places[kTime] >= 0 && places[kInPlace] >= 0));
}

// Reads a table line by line. The path must outlive the object. The first wrong line ends the import; a
// missing time is counted.
class TableResults {
 public:
  // If `check` is true, durations that contradict their bandwidths are left out.
  TableResults(const std::string& path, bool check) : path_(path), results_("nccl-tests") {
    left_out_.keeps_contradictory = !check;
  }

  bool MostContradict() const { return left_out_.check.MostContradict(); }

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
    if (results_.file().rows.empty()) return left_out_.NoTimes(Fail("no row of times in this file"));
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
    DYNAMICCL_CHECK_OK(
        TakeTime(*test->collective, bytes, TimeIn(fields, first, kOutAlgbw, kOutBusbw), in_place));
    if (places_[kInTime] < 0) return {};
    return TakeTime(*test->collective, bytes, TimeIn(fields, kInTime, kInAlgbw, kInBusbw), true);
  }

  // A time as the table has it, with the bandwidths beside it.
  struct TextTime {
    std::string_view text;
    std::optional<double> algbw, busbw;
  };
  TextTime TimeIn(const std::vector<std::string_view>& fields, Column time, Column algbw,
                  Column busbw) const {
    return {Field(fields, time), NumberIn<double>(Field(fields, algbw)),
            NumberIn<double>(Field(fields, busbw))};
  }

  // Sets the topology of a row. The columns that distinguish runs, the nodes and the ranks name it.
  Status TakeTopology(const std::vector<std::string_view>& fields) {
    DYNAMICCL_TRY(ranks_, Number(fields, kRanks, kMostTestRanks));
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

  Status TakeTime(Collective collective, uint64_t bytes, const TextTime& told, bool in_place) {
    if (told.text.empty() || told.text == "N/A") {
      ++left_out_.untimed;
      return {};
    }
    const auto time = NumberIn<double>(told.text);
    if (!time || !IsTestTime(*time))
      return Fail(fmt::format("'{}' is not a time in microseconds", told.text));
    const RowTime checked{static_cast<float>(*time), false, told.algbw, told.busbw};
    if (!left_out_.Keeps(checked, collective, bytes, static_cast<int32_t>(ranks_))) return {};
    const size_t length = topology_.size();
    if (in_place) topology_ += " in-place";
    results_.TimesOf(topology_, static_cast<int32_t>(ranks_), static_cast<int32_t>(nodes_), collective, bytes)
        .push_back(static_cast<float>(*time));
    topology_.resize(length);
    return {};
  }

  const std::string& path_;
  TestResults results_;
  size_t line_number_ = 0;
  size_t width_ = 0;
  Places places_{};
  std::vector<size_t> runs_;  // positions of the columns that distinguish runs
  // The topology of the current row.
  std::string topology_;
  uint64_t ranks_ = 0, nodes_ = 0;
  LeftOutResults left_out_;
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

bool IsTestTable(std::string_view head) {
  return AreResults(PlacesIn(CommaFields(head.substr(0, head.find('\n')))));
}

Result<Imported> ImportTestTable(GzipStream& stream, const std::string& path) {
  TableResults checked(path, true);
  DYNAMICCL_CHECK_OK(stream.EachLine([&](std::string_view line) { return checked.Take(line); }));
  TableResults unchecked(path, false);
  if (checked.MostContradict()) {
    DYNAMICCL_TRY(GzipStream again, GzipStream::Open(path));
    DYNAMICCL_CHECK_OK(again.EachLine([&](std::string_view line) { return unchecked.Take(line); }));
  }
  auto imported = (checked.MostContradict() ? unchecked : checked).Finish();
  if (imported && stream.ended_in_line()) imported->notes.emplace_back(kLastLineOpen);
  return imported;
}

}  // namespace dynamiccl
