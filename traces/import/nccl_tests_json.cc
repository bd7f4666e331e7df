// SPDX-License-Identifier: Apache-2.0
// The JSON of nccl-tests' -J. In-place results get a topology of their own (" in-place"), so that they are
// not mixed with out-of-place ones.
#include <fmt/ranges.h>

#include <array>
#include <set>

#include "traces/import/json_document.h"
#include "traces/import/json_pieces.h"
#include "traces/import/nccl_tests_ranks.h"
#include "traces/import/nccl_tests_results.h"
#include "traces/import/nccl_tests_tables.h"
#include "traces/import/system_names.h"

namespace dynamiccl {
namespace {

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

// Reads a document of nccl-tests' -J: args, env, devices, results. The path must outlive the object. Results
// are read as a stream, and kept as numbers until the document's end, because the members that describe the
// run may follow the results. A result without a size ends the import; one without a time is counted.
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
    std::array<RowTime, 2> means;  // with bandwidths; no time if single iterations are given
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
    if (key == "devices" && json->is_set()) return TakeDevices(*json, true);
    if (key == "config") return TakeDevices((*json)["devices"], false);
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
  Status TakeDevices(JsonValue devices, bool at_top) {
    if (devices_at_top_) return {};
    devices_at_top_ = at_top;
    listed_ = {};
    patterns_.clear();
    machines_.clear();
    uint64_t index = 0;
    std::optional<uint64_t> wrong;  // a rank that is too large or is listed twice
    devices.EachElement([&](JsonValue device) {
      const uint64_t rank = device["rank"].Unsigned().value_or(index++);
      const uint64_t group = device["group"].Unsigned().value_or(0);
      const std::string host = device["hostname"].Text();
      const bool right = rank < kMostTestRanks && group < kMostTestRanks &&
                         listed_.Add(static_cast<int32_t>(group), static_cast<int32_t>(rank), host);
      if (!right && !wrong) wrong = rank;
      patterns_.insert(HostPattern(host));
      machines_.insert(device["device_info"].Text());
    });
    if (wrong)
      return Fail(fmt::format("device of rank {}: it is there twice, or its number is wrong", *wrong));
    return {};
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
      if (!TakeTimes(json, kHalves[half], rows_.back().microseconds[half], rows_.back().means[half]))
        return fail(fmt::format("{} has a time that is none", kHalves[half].mean));
    }
    ++seen_;
    return {};
  }

  // Takes the single iterations where they are given, else the mean. Returns false for a wrong time.
  bool TakeTimes(JsonValue json, const ResultHalf& half, std::vector<float>& times, RowTime& checked) {
    const JsonValue body = json[half.mean];
    if (!body.is_set()) return true;
    left_out_.wrong += body["nwrong"].Number(HUGE_VAL).value_or(0) > 0;
    bool right = true;
    const auto take = [&](JsonValue time) {
      const double us = time.Number(HUGE_VAL).value_or(-1);
      right &= IsTestTime(us);
      times.push_back(static_cast<float>(us));
    };
    json[half.each]["times_us"].EachElement(take);
    if (!times.empty()) return right;
    const bool of_host = !body["time"].is_set();
    const JsonValue mean = of_host ? body["cpu_time"] : body["time"];
    left_out_.untimed += !mean.is_number();
    if (!mean.is_number()) return right;
    take(mean);
    left_out_.of_host += of_host;
    if (!of_host) checked = {times.back(), false, body["alg_bw"].Number(1e12), body["bus_bw"].Number(1e12)};
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
    if (listed_.empty()) return Fail("no devices: the number of ranks is not known");
    file.machine = fmt::format("{}", fmt::join(machines_, " + "));
    file.hosts = fmt::format("{}", fmt::join(patterns_, ","));
    return {};
  }

  void AddRow(const Row& row, const ListedRanks::Communicator& communicator) {
    for (size_t half = 0; half < std::size(kHalves); ++half) {
      const std::vector<float>& times = row.microseconds[half];
      if (!left_out_.Keeps(row.means[half], *collective_, row.bytes, communicator.ranks) || times.empty())
        continue;
      std::vector<float>& all =
          results_.TimesOf(fmt::format("{}{}", StemOf(path_), kHalves[half].suffix), communicator.ranks,
                           communicator.nodes, *collective_, row.bytes);
      all.insert(all.end(), times.begin(), times.end());
    }
  }

  Result<Imported> Finish() {
    DYNAMICCL_CHECK_OK(Describe());
    if (seen_ == 0) return Fail("no results");
    const ListedRanks::Communicator communicator = listed_.Measured();
    for (const Row& row : rows_) {
      for (const RowTime& mean : row.means)
        left_out_.Keeps(mean, *collective_, row.bytes, communicator.ranks);
    }
    left_out_.keeps_contradictory = left_out_.check.MostContradict();
    left_out_.check = {};
    for (const Row& row : rows_) AddRow(row, communicator);
    if (results_.file().rows.empty()) return left_out_.NoTimes(Fail("no result with a time"));
    Imported imported = results_.Finish(left_out_);
    for (const std::string& note : communicator.notes) imported.notes.push_back("1 " + note);
    if (!forced_.empty())
      imported.notes.push_back(fmt::format("the environment took choices away from NCCL: {}", forced_));
    return imported;
  }

  const std::string& path_;
  JsonDocument document_;
  TestResults results_;
  std::optional<Collective> collective_;
  std::vector<std::string> command_, environment_;
  std::optional<uint64_t> version_;
  bool devices_at_top_ = false;
  ListedRanks listed_;
  std::set<std::string> patterns_, machines_;
  size_t seen_ = 0;
  std::vector<Row> rows_;
  std::string forced_;
  LeftOutResults left_out_;
};

}  // namespace

bool IsTestJson(std::string_view head) {
  return head.starts_with('{') && head.find("\"args\"") != std::string_view::npos &&
         head.find("\"nccl_version\"") != std::string_view::npos;
}

Result<Imported> ImportTestJson(GzipStream& stream, const std::string& path, const ImportOptions& options) {
  return JsonResults(path, options).Read(stream);
}

}  // namespace dynamiccl
