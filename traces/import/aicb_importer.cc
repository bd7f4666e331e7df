// SPDX-License-Identifier: Apache-2.0
// AICB's comma-separated workloads and logs of runs as single-rank traces: an optional line with the ranks, a
// header line, then one line for each communication. Example:
//     [rank0 ~ rank127]
//     comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count
//     CommType.broadcast,CommGroup.dp_group,4,1000,init,None,2,,None,None,None,1
// Sizes are NCCL's totals, from which AICB computes its own bandwidths. Elapsed times are milliseconds, or
// None in a workload that did not run. A workload with pipeline stages has such a table for each stage, under
// a line "[ pp_stage0: [rank0, rank1] ]"; the imported trace has the calls of the first stage. A row
// epoch_end ends the initialisation or a training step. Columns are found by name.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "src/base/counted.h"
#include "traces/import/bandwidth_check.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/rank_section.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

// The columns that the importer reads.
enum Column { kType, kGroup, kGroupSize, kBytes, kStage, kDestination, kSource, kElapsed, kAlgbw, kColumns };
// Names of the columns in a header line; the first ones are required.
constexpr std::array<std::string_view, kColumns> kNames = {"comm_type", "comm_group",    "comm_group_size",
                                                           "msg_size",  "stage",         "dst",
                                                           "src",       "_elapsed_time", "algbw"};
constexpr Column kRequired[] = {kType, kGroup, kBytes};
constexpr std::string_view kTypePrefix = "CommType.";
constexpr std::string_view kGroupPrefix = "CommGroup.";

// A collective by AICB's name.
struct NamedCollective {
  std::string_view name;
  Collective collective;
};
constexpr NamedCollective kCollectives[] = {
    {"all_reduce", Collective::kAllReduce},
    {"all_gather", Collective::kAllGather},
    {"broadcast", Collective::kBroadcast},
    {"reduce_scatter", Collective::kReduceScatter},
    {"reduce", Collective::kReduce},
    {"all_to_all", Collective::kAllToAll},
    {"isend", Collective::kSend},
    {"irecv", Collective::kRecv},
    {"all_gather_into_tensor", Collective::kAllGather},
    {"reduce_scatter_tensor", Collective::kReduceScatter},
};
// Rows that move no data are counted and left out.
constexpr std::string_view kWithoutData[] = {"barrier", "computation"};

std::optional<Collective> CollectiveOf(std::string_view type) {
  for (const NamedCollective& row : kCollectives) {
    if (row.name == type) return row.collective;
  }
  return std::nullopt;
}

// The phase of a stage such as "forward.allgather_fn".
Phase PhaseOf(std::string_view stage) {
  if (stage.starts_with("forward")) return Phase::kForward;
  if (stage.starts_with("backward")) return Phase::kBackward;
  return stage.starts_with("step") ? Phase::kOptimizer : Phase::kUnknown;
}

// Reads line by line into a section. Import() makes one such object for each file and uses it on one thread.
// The first wrong line ends the import.
class TableParser {
 public:
  // If `check` is true, durations that contradict their bandwidths are left out.
  TableParser(const ImportOptions& options, bool check)
      : section_("aicb", kTraceMirrored, options.group_size), check_bandwidths_(check) {
    section_.section().rank = 0;
  }

  bool MostContradict() const { return check_.MostContradict(); }

  // Processes one line; an error names it.
  Status Take(std::string_view line) {
    ++line_number_;
    if (Trimmed(line).empty()) return {};
    if (Trimmed(line).starts_with('[')) return TakeRanks(Trimmed(line));
    if (further_stages_ > 0) return {};
    const auto fields = CommaFields(line);
    if (width_ == 0) return TakeHeader(fields);
    if (fields.size() != width_)
      return Fail(fmt::format("{} fields under {} columns", fields.size(), width_));
    return TakeRow(fields);
  }

  // Builds the trace and lists the fields that the file does not contain.
  Result<Imported> Finish() {
    if (section_.calls() == 0) return Fail("no communication in this file");
    const uint64_t calls = section_.calls();
    for (const char* field : {"algorithm", "protocol", "channels", "role", "ZeRO stage"})
      section_.Unfilled(field, "unknown", calls);
    section_.Unfilled("reduction operator", "sum", calls);
    section_.Unfilled("data type", kUntoldTypeText, calls);
    section_.OrderOnly("the durations before it, or 1 ms a call");
    Imported imported;
    imported.unfilled = section_.TakeUnfilled();
    if (further_stages_ > 0)
      imported.notes.push_back(fmt::format("{}: left out, because a trace of one rank has one stage",
                                           Counted(further_stages_, "further pipeline stage")));
    if (!check_bandwidths_)
      imported.notes.push_back(
          fmt::format("{} times that do not fit their size and bandwidth: kept, because they "
                      "are the most, so that the bandwidths may have another unit",
                      check_.contradictory));
    for (const auto& [what, count] : left_out_)
      imported.notes.push_back(fmt::format("{} {}: left out", count, what));
    imported.trace = TraceOfOne(section_.Finish());
    return imported;
  }

 private:
  tl::unexpected<Error> Fail(const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "line {}: {}", line_number_, what);
  }

  // Reads "[rank0 ~ rank127]" or a stage's "[ pp_stage0: [rank0, rank1] ]". The world is one more than the
  // highest rank in the file.
  Status TakeRanks(std::string_view line) {
    const size_t last = line.rfind("rank");
    const size_t end = line.find_first_of(" ]", last);
    const auto number = last == std::string_view::npos || end == std::string_view::npos
                            ? std::nullopt
                            : NumberIn<int32_t>(line.substr(last + 4, end - last - 4));
    if (!number || *number < 0 || !line.ends_with(']'))
      return Fail(fmt::format("'{}' does not tell the ranks", line));
    section_.section().world = std::max(section_.section().world, *number + 1);
    further_stages_ += width_ > 0;
    return {};
  }

  // Finds the columns by name.
  Status TakeHeader(const std::vector<std::string_view>& fields) {
    place_.fill(-1);
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto* const name = std::find(kNames.begin(), kNames.end(), fields[i]);
      if (name != kNames.end()) place_[static_cast<size_t>(name - kNames.begin())] = static_cast<int>(i);
    }
    for (const Column column : kRequired) {
      if (place_[column] < 0) return Fail(fmt::format("the header has no column '{}'", kNames[column]));
    }
    width_ = fields.size();
    return {};
  }

  // The field under a column; empty for "None" and for a column that is not there.
  std::string_view Field(const std::vector<std::string_view>& fields, Column column) const {
    if (place_[column] < 0) return "";
    const std::string_view field = fields[static_cast<size_t>(place_[column])];
    return field == "None" ? "" : field;
  }

  // Reads a row: its type decides whether it is a call, a mark or left out.
  Status TakeRow(const std::vector<std::string_view>& fields) {
    std::string_view type = Field(fields, kType);
    if (!type.starts_with(kTypePrefix)) return Fail(fmt::format("'{}' is no CommType", type));
    type.remove_prefix(kTypePrefix.size());
    if (type == "epoch_end") {
      step_is_due_ = true;
      return {};
    }
    if (std::find(std::begin(kWithoutData), std::end(kWithoutData), type) != std::end(kWithoutData)) {
      ++left_out_[fmt::format("rows '{}', which move no data", type)];
      return {};
    }
    const auto collective = CollectiveOf(type);
    if (!collective) return Fail(fmt::format("no collective '{}'", type));
    return TakeCall(*collective, fields);
  }

  // Reads the other fields of a row that moves data.
  Status TakeCall(Collective collective, const std::vector<std::string_view>& fields) {
    ImportedCall call;
    CollectiveCall& shape = call.issued.call;
    shape.collective = collective;
    const auto bytes = NumberIn<uint64_t>(Field(fields, kBytes));
    if (!bytes) return Fail(fmt::format("'msg_size' is '{}', not a number of bytes", Field(fields, kBytes)));
    if (*bytes == 0) {
      ++left_out_["rows of 0 bytes"];
      return {};
    }
    shape.bytes = *bytes;
    shape.data_type = UntoldType(*bytes);
    call.issued.labelled_phase = PhaseOf(Field(fields, kStage));
    DYNAMICCL_CHECK_OK(FillPeer(fields, call.issued));
    DYNAMICCL_CHECK_OK(FillTimes(Field(fields, kElapsed), call.issued));
    CheckTime(Field(fields, kAlgbw), call.issued);
    now_ns_ += call.issued.duration_ns < 0 ? kUntimedStepNs : std::max<int64_t>(call.issued.duration_ns, 2);
    if (step_is_due_) section_.AppendStep({.marked_ns = call.issued.issued_ns - 1, .step = next_step_++});
    step_is_due_ = false;
    DYNAMICCL_TRY(const uint32_t group, GroupOf(fields, call.issued.issued_ns));
    section_.Append(group, call);
    return {};
  }

  // Fills in root or peer. A missing root becomes 0.
  Status FillPeer(const std::vector<std::string_view>& fields, IssuedCall& issued) {
    const Collective collective = issued.call.collective;
    const bool rooted = collective == Collective::kBroadcast || collective == Collective::kReduce;
    const bool peer = collective == Collective::kSend || collective == Collective::kRecv;
    if (!rooted && !peer) return {};
    const bool to = collective == Collective::kSend || collective == Collective::kReduce;
    const std::string_view text = Field(fields, to ? kDestination : kSource);
    const auto number = NumberIn<int16_t>(text);
    if (!text.empty() && !number) return Fail(fmt::format("'{}' is not a rank", text));
    issued.root_or_peer = number.value_or(rooted ? 0 : -1);
    if (!number) section_.Unfilled(rooted ? "root" : "peer", rooted ? "0" : "none");
    return {};
  }

  // Removes a time that contradicts the bandwidth. AICB prints the bandwidth with two decimals, in GB/s or,
  // in some releases, GiB/s or MiB per millisecond.
  void CheckTime(std::string_view bandwidth, IssuedCall& issued) {
    const auto stated = NumberIn<double>(bandwidth);
    if (!stated || *stated < 1 || issued.duration_ns <= 0) return;
    ++check_.checkable;
    const double gb_s = static_cast<double>(issued.call.bytes) / static_cast<double>(issued.duration_ns);
    const auto fits = [&](double value) { return std::fabs(value - *stated) <= 0.0051 + 0.001 * *stated; };
    if (fits(gb_s) || fits(gb_s * 1e9 / (1 << 30)) || fits(gb_s * 1e6 / (1 << 20))) return;
    ++check_.contradictory;
    if (!check_bandwidths_) return;
    issued.duration_ns = -1;
    ++left_out_["times that do not fit their size and bandwidth"];
  }

  // Sets the time of issue and the duration. A call is issued when the previous one ended. If the file has no
  // times, calls are issued 1 ms apart.
  Status FillTimes(std::string_view elapsed, IssuedCall& issued) {
    issued.issued_ns = now_ns_;
    if (elapsed.empty()) {
      section_.Unfilled("duration", "none");
      return {};
    }
    // Milliseconds; larger times (11 days) mean a damaged file.
    constexpr double kMaxMs = 1e9;
    const auto ms = NumberIn<double>(elapsed);
    if (!ms || !(*ms >= 0 && *ms <= kMaxMs))
      return Fail(fmt::format("'_elapsed_time' is '{}', not a time in milliseconds", elapsed));
    issued.duration_ns = std::llround(*ms * 1e6);
    return {};
  }

  // Returns the communicator of a row; it has RankSection::UntoldSize where the row states no size.
  Result<uint32_t> GroupOf(const std::vector<std::string_view>& fields, int64_t now_ns) {
    std::string_view group = Field(fields, kGroup);
    if (group.starts_with(kGroupPrefix)) group.remove_prefix(kGroupPrefix.size());
    const std::string_view size = Field(fields, kGroupSize);
    const auto ranks = NumberIn<uint16_t>(size);
    if (!size.empty() && (!ranks || *ranks == 0))
      return Fail(fmt::format("'comm_group_size' is '{}', not a number of ranks", size));
    // AICB forms groups inside groups under one name, so the size is part of the key.
    group_key_.assign(group).append(" ").append(size);
    if (const auto known = section_.Known(group_key_)) return *known;
    if (!ranks) section_.CountUntoldSize();
    section_.Unfilled("nodes", "1");
    const int32_t n_ranks = ranks ? *ranks : section_.UntoldSize();
    return section_.Communicator(group_key_, {IdOfName("aicb " + group_key_), 0, n_ranks, 1}, now_ns);
  }

  RankSection section_;
  bool check_bandwidths_;
  BandwidthCheck check_;
  std::string group_key_;
  size_t line_number_ = 0;
  size_t width_ = 0;
  uint64_t further_stages_ = 0;        // calls of pipeline stages after the first one
  std::array<int, kColumns> place_{};  // position of each Column in a line; -1: the file does not have it
  int64_t now_ns_ = kUntimedStepNs;
  bool step_is_due_ = false;
  uint64_t next_step_ = 0;
  std::map<std::string, uint64_t> left_out_;
};

// Recognises a file by the header line of its table.
class Aicb final : public TraceImporter {
 public:
  std::string_view name() const override { return "aicb"; }
  std::string_view sentence() const override {
    return "workload or log of AICB (comma-separated), without data type, algorithm and protocol";
  }
  bool Recognises(std::string_view head) const override {
    if (head.starts_with('[')) head.remove_prefix(std::min(head.find('\n'), head.size() - 1) + 1);
    return head.starts_with("comm_type,comm_group,");
  }
  Result<Imported> Import(const std::string& path, const ImportOptions& options) const override {
    TableParser checked(options, true);
    DYNAMICCL_CHECK_OK(Read(path, checked));
    TableParser unchecked(options, false);
    if (checked.MostContradict()) DYNAMICCL_CHECK_OK(Read(path, unchecked));
    auto imported = (checked.MostContradict() ? unchecked : checked).Finish();
    if (!imported) return Wrap(imported.error(), path);
    return imported;
  }

 private:
  static Status Read(const std::string& path, TableParser& parser) {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
    return stream.EachLine([&](std::string_view line) -> Status {
      if (const Status taken = parser.Take(line); !taken) return Wrap(taken.error(), path);
      return {};
    });
  }
};

}  // namespace

const TraceImporter& AicbImporter() {
  static const Aicb importer;
  return importer;
}

}  // namespace dynamiccl
