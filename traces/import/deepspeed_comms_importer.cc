// SPDX-License-Identifier: Apache-2.0
// DeepSpeed's communication logger (deepspeed/utils/comms_logging.py). With lines of single calls ("verbose")
// a log becomes a trace of one rank:
//     comm op: all_reduce | time (ms): 1.50 | msg size: 2.0 MB | algbw (Gbps): 11.18 | busbw (Gbps): 9.79
// Without such lines it becomes measurements from the table of log_summary, which has a line for each
// operation, followed by a line for each of its sizes:
//     Comm. Op            Message Size        Count     Total Latency(ms)   Avg Latency(ms)   algbw   busbw
//     all_reduce
//                         2.0 MB              10        15.00               1.50              11.18   9.79
// Sizes are rounded to about three digits. The number of ranks, n, follows only from calls with
// busbw : algbw = (n-1) : n, and is taken to be that of the whole job.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "src/base/counted.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/log_line.h"
#include "traces/import/rank_section.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

// Largest plausible time in milliseconds (11 days); a larger one means a damaged file.
constexpr double kMaxMs = 1e9;

// A collective and its name in DeepSpeed's log.
struct NamedCollective {
  std::string_view name;
  Collective collective;
  // True if busbw : algbw of this operation is (n-1) : n for n ranks, so that it shows the number of ranks.
  bool tells_ranks;
};
constexpr NamedCollective kCollectives[] = {
    {"all_reduce", Collective::kAllReduce, true},
    {"all_reduce_coalesced", Collective::kAllReduce, true},
    {"inference_all_reduce", Collective::kAllReduce, true},
    {"all_gather", Collective::kAllGather, true},
    {"all_gather_into_tensor", Collective::kAllGather, true},
    {"all_gather_coalesced", Collective::kAllGather, true},
    {"allgather_fn", Collective::kAllGather, true},
    {"reduce_scatter", Collective::kReduceScatter, true},
    {"reduce_scatter_tensor", Collective::kReduceScatter, true},
    {"reduce_scatter_fn", Collective::kReduceScatter, true},
    {"all_to_all", Collective::kAllToAll, true},
    {"all_to_all_single", Collective::kAllToAll, true},
    {"broadcast", Collective::kBroadcast, false},
    {"broadcast_object_list", Collective::kBroadcast, false},
    {"reduce", Collective::kReduce, false},
    {"gather", Collective::kGather, false},
    {"scatter", Collective::kScatter, false},
    {"batch_isend_irecv", Collective::kSendRecv, false},
    {"send", Collective::kSend, false},
    {"isend", Collective::kSend, false},
    {"recv", Collective::kRecv, false},
    {"irecv", Collective::kRecv, false},
};
// Operations that move no data are counted and left out.
constexpr std::string_view kWithoutData[] = {"barrier", "monitored_barrier"};

// The operation at the beginning of `name`, which may be followed by " | [Caller Func: ...]"; null if it is
// unknown.
const NamedCollective* CollectiveOf(std::string_view name) {
  name = Trimmed(name.substr(0, name.find('|')));
  for (const NamedCollective& row : kCollectives) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// True for an operation that is left out.
bool MovesNoData(std::string_view name) {
  name = Trimmed(name.substr(0, name.find('|')));
  return std::find(std::begin(kWithoutData), std::end(kWithoutData), name) != std::end(kWithoutData);
}

// Bytes of "2.0 MB" or "0B"; the units are powers of 1024.
std::optional<uint64_t> SizeIn(std::string_view text) {
  constexpr std::string_view kUnits[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = NumberIn<double>(text.substr(0, digits));
  const std::string_view unit = Trimmed(text.substr(digits));
  const auto* const row = std::find(std::begin(kUnits), std::end(kUnits), unit);
  if (!number || row == std::end(kUnits) || !(*number >= 0 && *number < 1e4)) return std::nullopt;
  return static_cast<uint64_t>(std::llround(std::ldexp(*number, static_cast<int>(10 * (row - kUnits)))));
}

// Parses a time in milliseconds, from 0 to kMaxMs.
std::optional<double> MillisecondsIn(std::string_view text) {
  const auto number = NumberIn<double>(Trimmed(text));
  return number && *number >= 0 && *number <= kMaxMs ? number : std::nullopt;
}

// Narrows the number of ranks n down from bandwidths that are rounded to 0.01. With r = busbw / algbw, n is 1
// / (1 - r), and each line gives a smallest and a largest possible r.
class RankCount {
 public:
  // Adds the bandwidths of a line; bandwidths too small to narrow n down are skipped.
  void Take(double algbw, double busbw) {
    // Half of the last printed digit, plus a margin because most decimal fractions have no exact binary form.
    constexpr double kHalfDigit = 0.00501;
    if (!(algbw > 1 && busbw > 0) || busbw > algbw + kHalfDigit) return;
    const double low = (busbw - kHalfDigit) / (algbw + kHalfDigit);
    const double high = (busbw + kHalfDigit) / (algbw - kHalfDigit);
    least_ = std::max(least_, std::ceil(1 / (1 - low)));
    if (high < 1) most_ = std::min(most_, std::floor(1 / (1 - high)));
  }
  // The number of ranks once only one is possible; 0: not known.
  int32_t ranks() const { return least_ == most_ ? static_cast<int32_t>(least_) : 0; }

 private:
  double least_ = 1;
  double most_ = UINT16_MAX;
};

// A call, or a row of the summary with its average time.
struct LoggedCall {
  const NamedCollective* operation;
  uint64_t bytes;
  double milliseconds;
  // In Gbps; nothing in the summary, where means of bandwidths are not the bandwidths of mean times.
  std::optional<double> algbw = std::nullopt;

  // True for an all-gather or a reduce-scatter.
  bool Shares() const {
    return operation->collective == Collective::kAllGather ||
           operation->collective == Collective::kReduceScatter;
  }
  // True if the three numbers have enough digits for a check. The bytes of a gather or scatter count once for
  // each of the `ranks` (0: not known).
  bool CanCheck(int32_t ranks) const {
    const bool exact = algbw && *algbw >= 1 && milliseconds >= 0.1 && bytes >= 1000;
    return exact && !(Shares() && ranks == 0);
  }
  // True if `algbw` contradicts size and time, as far as its digits show. DeepSpeed counts the bytes of an
  // all-reduce twice.
  bool Contradicts(int32_t ranks) const {
    constexpr double kHalfDigit = 0.005;  // of each of the three numbers
    if (!CanCheck(ranks)) return false;
    const double once = static_cast<double>(bytes) * 8e-6 / milliseconds;
    const double tolerance = 0.01 + kHalfDigit / milliseconds + kHalfDigit / *algbw;
    const auto fits = [&](double times) { return std::fabs(once * times - *algbw) <= tolerance * *algbw; };
    return !fits(operation->collective == Collective::kAllReduce ? 2 : 1) && !(Shares() && fits(ranks));
  }
};

// Reads a log line by line. Import() makes one such object for each file and uses it on one thread. Lines of
// other programs are skipped; a line of the logger that does not parse ends the import.
class LogParser {
 public:
  LogParser(const std::string& path, const ImportOptions& options)
      : path_(path), stated_size_(options.group_size) {}

  Status Take(std::string_view line) {
    ++line_number_;
    if (const size_t at = line.find("comm op: "); at != std::string_view::npos)
      return TakeCall(line.substr(at + 9));
    if (Trimmed(line).starts_with("Comm. Op")) return StartTable(line);
    if (in_table_) return TakeTableLine(line);
    return {};
  }

  // Returns a trace if the log has single calls, else measurements.
  Result<Imported> Finish() {
    if (calls_.empty() && rows_.empty()) {
      return WithHint(Fail("no call and no summary of DeepSpeed's communication logger"),
                      R"("comms_logger": {"enabled": true, "verbose": true} in DeepSpeed's configuration)");
    }
    return calls_.empty() ? FinishTable() : FinishCalls();
  }

 private:
  tl::unexpected<Error> Fail(const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "line {}: {}", line_number_, what);
  }

  // ---- single calls ----

  // The text after `key` up to the next " | ".
  static std::string_view Value(std::string_view text, std::string_view key) {
    const size_t at = text.find(key);
    if (at == std::string_view::npos) return "";
    text.remove_prefix(at + key.size());
    return Trimmed(text.substr(0, text.find('|')));
  }

  // Reads the line of a single call.
  Status TakeCall(std::string_view text) {
    if (MovesNoData(text)) {
      ++without_data_;
      return {};
    }
    const NamedCollective* const operation = CollectiveOf(text);
    if (operation == nullptr) return Fail(fmt::format("no collective '{}'", text.substr(0, text.find(" |"))));
    const auto milliseconds = MillisecondsIn(Value(text, "| time (ms): "));
    const auto bytes = SizeIn(Value(text, "| msg size: "));
    if (!milliseconds) return Fail("a call without a time in milliseconds");
    if (!bytes) return Fail("a call without a size like '2.0 MB'");
    const std::string_view algbw = Value(text, "| algbw (Gbps): ");
    TakeBandwidths(*operation, algbw, Value(text, "| busbw (Gbps): "));
    if (*bytes == 0)
      ++without_data_;
    else
      calls_.push_back({operation, *bytes, *milliseconds, NumberIn<double>(algbw)});
    return {};
  }

  // Adds the bandwidths of a line, if they depend on the number of ranks.
  void TakeBandwidths(const NamedCollective& operation, std::string_view algbw, std::string_view busbw) {
    const auto algorithm = NumberIn<double>(algbw);
    const auto bus = NumberIn<double>(busbw);
    if (operation.tells_ranks && algorithm && bus) ranks_.Take(*algorithm, *bus);
  }

  // The number of ranks that follows from the bandwidths, else the stated number; 0: not known.
  int32_t Ranks() const { return ranks_.ranks() > 0 ? ranks_.ranks() : stated_size_; }

  // NCCL's total. DeepSpeed logs the bytes of one rank for an all-gather, and the total for the others.
  uint64_t TotalOf(const LoggedCall& call) const {
    const bool gathers = call.operation->collective == Collective::kAllGather;
    return call.bytes * static_cast<uint64_t>(gathers ? std::max(Ranks(), 1) : 1);
  }

  // Removes the bandwidths if they contradict most of the calls that can be checked, because the file's
  // release then computes bandwidths in another way. Returns how many calls contradict their bandwidths.
  uint64_t CheckBandwidths() {
    const auto contradictions = std::count_if(
        calls_.begin(), calls_.end(), [this](const LoggedCall& call) { return call.Contradicts(Ranks()); });
    const auto checkable = std::count_if(calls_.begin(), calls_.end(),
                                         [this](const LoggedCall& call) { return call.CanCheck(Ranks()); });
    if (2 * contradictions <= checkable) return static_cast<uint64_t>(contradictions);
    for (LoggedCall& call : calls_) call.algbw.reset();
    return 0;
  }

  // A trace of rank 0. Each call is issued when the one before it ended.
  Imported FinishCalls() {
    RankSection section("deepspeed-comms", kTraceMirrored, stated_size_);
    section.section().rank = 0;
    section.section().world = Ranks();
    int64_t now_ns = kUntimedStepNs;
    const uint64_t contradictions = CheckBandwidths();
    for (const LoggedCall& logged : calls_) {
      ImportedCall call;
      IssuedCall& issued = call.issued;
      issued.issued_ns = now_ns;
      if (!logged.Contradicts(Ranks())) issued.duration_ns = std::llround(logged.milliseconds * 1e6);
      issued.call.collective = logged.operation->collective;
      issued.call.bytes = TotalOf(logged);
      issued.call.data_type = UntoldType(issued.call.bytes);
      FillRoot(section, issued);
      const CommunicatorInfo job{IdOfName("deepspeed"), 0, std::max(Ranks(), 1), 1};
      section.Append(section.Communicator("", job, now_ns), call);
      now_ns += std::max<int64_t>(issued.duration_ns, 2);
    }
    const uint64_t calls = section.calls();
    for (const char* field : {"algorithm", "protocol", "channels", "role", "stage"})
      section.Unfilled(field, "unknown", calls);
    section.Unfilled("reduction operator", "sum", calls);
    section.Unfilled("data type", kUntoldTypeText, calls);
    section.Unfilled("group", "the whole job", calls);
    section.OrderOnly("the durations before it");
    section.Unfilled("nodes", "1");
    if (ranks_.ranks() == 0) section.CountUntoldSize();
    Imported imported;
    imported.unfilled = section.TakeUnfilled();
    AddNotes(imported);
    if (contradictions > 0)
      imported.notes.push_back(
          fmt::format("{} whose size, time and bandwidth contradict each other: without a time",
                      Counted(contradictions, "call")));
    if (!rows_.empty()) imported.notes.push_back("the table of the summary: left out, the calls are here");
    imported.frameworks = {{"DeepSpeed", "its log of communication"}};
    imported.trace = TraceOfOne(section.Finish());
    return imported;
  }

  // The log names neither roots nor peers. Sets a root to 0, and counts the missing roots and peers.
  static void FillRoot(RankSection& section, IssuedCall& issued) {
    const Collective collective = issued.call.collective;
    if (IsOneSided(collective)) section.Unfilled("peer", "none");
    if (collective != Collective::kBroadcast && collective != Collective::kReduce) return;
    issued.root_or_peer = 0;
    section.Unfilled("root", "0");
  }

  // ---- the summary ----

  // A second table, of stragglers, lists the same calls again; it is recognised by its different header and
  // skipped.
  Status StartTable(std::string_view line) {
    in_table_ = line.find("Avg Latency(ms)") != std::string_view::npos;
    operation_ = nullptr;
    skipping_ = false;
    return {};
  }

  // A line at the left margin names an operation or ends the table; an indented line is a size.
  Status TakeTableLine(std::string_view line) {
    const auto words = Words(line);
    if (words.empty()) return {};
    if (line.front() != ' ' && line.front() != '\t') {
      operation_ = CollectiveOf(line);
      skipping_ = MovesNoData(line);
      // Any other word means that other output begins.
      in_table_ = operation_ != nullptr || skipping_;
      return {};
    }
    if (skipping_) {
      ++without_data_;
      return {};
    }
    if (operation_ == nullptr) return Fail("sizes before an operation's name");
    return TakeTableRow(words);
  }

  // Reads a size's row: size, unit, count, total and average latency, bandwidths.
  Status TakeTableRow(std::vector<std::string_view> words) {
    if (words.front() == "0B") {
      ++without_data_;
      return {};
    }
    if (words.size() != 7) return Fail(fmt::format("a row of {} values instead of 7", words.size()));
    const auto bytes = SizeIn(fmt::format("{} {}", words[0], words[1]));
    const auto count = NumberIn<uint64_t>(words[2]);
    const auto average = MillisecondsIn(words[4]);
    if (!bytes || !count || !average) return Fail("a row without size, count and latencies");
    TakeBandwidths(*operation_, words[5], words[6]);
    counted_ += *count;
    rows_.push_back({operation_, *bytes, *average});
    return {};
  }

  // Returns measurements with one time for each row, the average. The configs are unknown, so each row counts
  // as NCCL's own choice.
  Result<Imported> FinishTable() {
    if (Ranks() == 0) {
      return WithHint(
          Fail("the bandwidths do not tell the number of ranks"),
          "state it with --group-size, or import a log with the lines of single calls (\"verbose\": true)");
    }
    MeasurementContext context;
    context.topology = fmt::format("{} x{}", std::filesystem::path(path_).stem().string(), Ranks());
    context.model.fabric.n_ranks = Ranks();
    MeasurementFile file;
    file.library = "DeepSpeed communication logger";
    file.contexts.push_back(context);
    for (const LoggedCall& row : rows_) {
      file.rows.push_back({.topology = context.topology,
                           .collective = row.operation->collective,
                           .bytes = TotalOf(row),
                           .config = kLeaveNcclAlone,
                           .is_default = true,
                           .microseconds = {static_cast<float>(row.milliseconds * 1000)}});
    }
    Imported imported;
    const uint64_t rows = rows_.size();
    imported.unfilled = {{"algorithm", rows, "unknown"}, {"protocol", rows, "unknown"},
                         {"channels", rows, "unknown"},  {"nodes", 1, "1"},
                         {"fabric", 1, "zeros"},         {"single times", counted_, "their trimmed mean"}};
    AddNotes(imported);
    imported.frameworks = {{"DeepSpeed", "its log of communication"}};
    imported.measurements = std::move(file);
    return imported;
  }

  // Adds the notes that both kinds of result have.
  void AddNotes(Imported& imported) const {
    imported.notes.push_back(
        "sizes are rounded to what the logger prints; times include waiting for other ranks");
    if (ranks_.ranks() > 0)
      imported.notes.push_back(
          fmt::format("{}, from the ratio of the bandwidths", Counted(ranks_.ranks(), "rank")));
    if (without_data_ > 0)
      imported.notes.push_back(
          fmt::format("{} of operations that move no data: left out", Counted(without_data_, "line")));
  }

  std::string path_;
  size_t line_number_ = 0;
  RankCount ranks_;
  int32_t stated_size_ = 0;  // ImportOptions::group_size
  std::vector<LoggedCall> calls_;
  std::vector<LoggedCall> rows_;  // rows of the summary, with average times
  bool in_table_ = false;
  bool skipping_ = false;
  const NamedCollective* operation_ = nullptr;
  uint64_t counted_ = 0;
  uint64_t without_data_ = 0;
};

// Recognises a log by the words of a call's line, or of the summary's header.
class DeepSpeedComms final : public TraceImporter {
 public:
  std::string_view name() const override { return "deepspeed-comms"; }
  std::string_view sentence() const override {
    return "DeepSpeed's communication logger: single calls as a trace, the summary as measurements; without "
           "group, data type, algorithm and protocol";
  }
  bool Recognises(std::string_view head) const override {
    const bool call = head.find("comm op: ") != std::string_view::npos &&
                      head.find("| msg size: ") != std::string_view::npos;
    return call || (head.find("Comm. Op") != std::string_view::npos &&
                    head.find("Avg Latency(ms)") != std::string_view::npos);
  }
  Result<Imported> Import(const std::string& path, const ImportOptions& options) const override {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
    LogParser parser(path, options);
    std::optional<Error> cut;
    std::string changed;
    const auto take = [&](std::string_view line) -> Status {
      if (const Status taken = parser.Take(PlainLogLine(line, changed)); !taken)
        return Wrap(taken.error(), path);
      return {};
    };
    DYNAMICCL_CHECK_OK(stream.EachLineOfLog(take, cut));
    auto imported = parser.Finish();
    if (!imported) return cut ? tl::unexpected<Error>(*cut) : Wrap(imported.error(), path);
    if (cut) imported->notes.push_back(cut->message + ": the last line is cut and left out");
    return imported;
  }
};

}  // namespace

const TraceImporter& DeepSpeedCommsImporter() {
  static const DeepSpeedComms importer;
  return importer;
}

}  // namespace dynamiccl
