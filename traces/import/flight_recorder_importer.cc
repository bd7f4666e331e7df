// SPDX-License-Identifier: Apache-2.0
// Dumps of PyTorch's flight recorder in their JSON form (_dump_nccl_trace_json), versions 2.5 to 2.10, as
// single-rank traces:
//   {"version": "2.5", "nccl_version": ..., "pg_config": {name: {"ranks": "[0, 1]"}}, "entries": [
//     {"profiling_name": "nccl:all_reduce", "process_group": ["0", "default_pg"], "collective_seq_id": 1,
//      "input_sizes": [[3, 4]], "input_dtypes": ["Float"], "time_created_ns": ..., "duration_ms": 0.5},
//     ...]}
// Only duration_ms, which comes from CUDA events, is used as a duration. The "discovered" time stamps are not
// used: they are the times at which a periodic watchdog first noticed an event. flight_recorder_to_json.py
// beside this file converts the pickled form.
#include <algorithm>
#include <filesystem>
#include <map>

#include "src/base/counted.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/json_document.h"
#include "traces/import/json_members.h"
#include "traces/import/json_pieces.h"
#include "traces/import/pytorch_calls.h"
#include "traces/import/rank_section.h"

namespace dynamiccl {
namespace {

// One entry of the dump.
struct Entry {
  std::string group;
  Collective collective = Collective::kAllReduce;
  std::optional<DataType> type;
  std::optional<int64_t> in_elements;
  std::optional<int64_t> out_elements;
  int64_t created_ns = 0;
  int64_t duration_ns = -1;
  // Number of the collective; equal for collectives that were issued in one coalesced call.
  int64_t sequence = 0;
  int64_t own_rank = -1;  // for sends and receives: this rank in the group
  int64_t peer = -1;
};

struct Group {
  std::vector<int64_t> ranks;
};

// The ranks in [0, 1], or in the text "[0, 1]".
std::vector<int64_t> RanksIn(JsonValue value) {
  JsonDocument inner;
  const std::string text = value.Text();
  const JsonValue list = value.is_string() ? inner.Parse(text).value_or(JsonValue()) : value;
  std::vector<int64_t> ranks;
  list.EachElement([&](JsonValue rank) { ranks.push_back(rank.Integer().value_or(-1)); });
  return ranks;
}

// The number after the last "rank" in the file's name, as PyTorch names dumps ("nccl_trace_rank_3"). At most
// one character may stand between the word and the number. -1 without such a number.
int64_t RankOfFile(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const size_t rank = name.rfind("rank");
  const size_t begin = rank == std::string::npos ? std::string::npos : name.find_first_of("0123456789", rank);
  if (begin == std::string::npos || begin > rank + 5) return -1;
  const size_t end = name.find_first_not_of("0123456789", begin);
  return JsonInteger(std::string_view(name).substr(begin, end - begin)).value_or(-1);
}

// Reads one dump and builds its section. The path must outlive the object. Entries of other backends and
// entries that move no data are counted and left out; broken JSON ends the import.
class Dump {
 public:
  Dump(const std::string& path, const ImportOptions& options)
      : path_(path),
        rank_(RankOfFile(path)),
        section_("flight-recorder", kTraceMirrored, options.group_size) {}

  // Entries are read as a stream; the other members, which are small, are read whole.
  Result<Imported> Import() {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path_));
    JsonPieces pieces(stream, path_);
    DYNAMICCL_CHECK_OK(pieces.ReadObject(
        [](std::string_view key) {
          if (key == "entries") return JsonMemberUse::kElements;
          const bool wanted =
              key == "version" || key == "pg_config" || key == "comm_lib_version" || key == "nccl_version";
          return wanted ? JsonMemberUse::kWhole : JsonMemberUse::kSkip;
        },
        [this](std::string_view key, std::string_view text, uint64_t offset) {
          return TakePiece(key, text, offset);
        }));
    DYNAMICCL_CHECK_OK(CheckVersion(pieces.position()));
    CheckRank();
    if (entries_.empty()) {
      return MakeError(ErrorKind::kInvalidArgument, "{}: byte {}: no calls of NCCL in this dump", path_,
                       pieces.position());
    }
    return Convert();
  }

 private:
  // Reads a member of the dump or one entry.
  Status TakePiece(std::string_view key, std::string_view text, uint64_t offset) {
    const auto parsed = document_.Parse(text);
    if (!parsed)
      return MakeError(ErrorKind::kCorrupt, "{}: byte {}: \"{}\" is not JSON", path_,
                       offset + document_.position(), key);
    const JsonValue json = *parsed;
    if (key == "entries") return TakeEntry(json, offset);
    if (key == "version" && json.is_string()) version_ = json.Text();
    if ((key == "comm_lib_version" || key == "nccl_version") && json.is_string()) library_ = json.Text();
    if (key == "pg_config") {
      json.EachMember([this](const std::string& name, JsonValue group) {
        groups_[name].ranks = RanksIn(group["ranks"]);
      });
    }
    return {};
  }

  // Versions before 2 have other entries.
  Status CheckVersion(uint64_t position) const {
    if (version_.starts_with("2.")) return {};
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: byte {}: version '{}' of the flight recorder",
                              path_, position, version_),
                    "versions 2.x are read, which PyTorch 2.5 and later write");
  }

  // Ignores the rank in the file's name if the dump lists the ranks of its groups and no group contains this
  // rank.
  void CheckRank() {
    const bool listed = std::any_of(groups_.begin(), groups_.end(), [this](const auto& named) {
      const std::vector<int64_t>& ranks = named.second.ranks;
      return ranks.empty() || std::find(ranks.begin(), ranks.end(), rank_) != ranks.end();
    });
    if (!groups_.empty() && !listed) rank_ = -1;
  }

  // Reads an entry; entries that move no data are counted by name.
  Status TakeEntry(JsonValue json, uint64_t offset) {
    const std::string name = json["profiling_name"].Text();
    const int64_t record = std::max<int64_t>(IntegerOf(json, "record_id", 0), 0);
    replaced_ = std::min(replaced_, record);
    newest_ = std::max(newest_, record);
    ++records_;
    if (name.empty())
      return MakeError(ErrorKind::kCorrupt, "{}: byte {}: an entry without \"profiling_name\"", path_,
                       offset);
    const auto collective = CollectiveOfPyTorch(name);
    if (!collective) {
      ++skipped_[name];
      return {};
    }
    frameworks_.NoteGroup(json["process_group"][1].Text());
    json["frames"].EachElement([this](JsonValue frame) { frameworks_.NoteFile(frame["filename"].Text()); });
    Entry entry;
    entry.collective = *collective;
    entry.group = json["process_group"][0].Text();
    entry.in_elements = ElementsOfShapes(json["input_sizes"]);
    entry.out_elements = ElementsOfShapes(json["output_sizes"]);
    entry.type = DataTypeOfPyTorch(json["input_dtypes"][0].Text());
    entry.created_ns = TimeOfIssue(json["time_created_ns"]);
    // The hook measures most durations with the host's clock, from before the call is issued until after it.
    // Such a duration is not that of NCCL's transfer.
    if (const auto duration = json["duration_ms"].Number(1e12); duration && !IsOfRecorderHook(name))
      entry.duration_ns = static_cast<int64_t>(*duration * 1e6);
    entry.sequence = IntegerOf(json, "collective_seq_id", 0);
    if (IsOneSided(*collective)) TakePeers(name, entry);
    unfinished_ += json["state"].Text() != "completed";
    entries_.push_back(std::move(entry));
    return {};
  }

  // The wall-clock time in nanoseconds. Some programs rewrite it as a number with an exponent.
  int64_t TimeOfIssue(JsonValue created) {
    constexpr int64_t kLatest = INT64_MAX / 2;
    const auto whole = created.Integer();
    const auto rounded = whole ? std::nullopt : created.Number(static_cast<double>(kLatest));
    if (!whole && !rounded) section_.Unfilled("time of issue", "0");
    return std::clamp<int64_t>(whole ? *whole : static_cast<int64_t>(rounded.value_or(0)), 0, kLatest);
  }

  // Reads "nccl:send 0->1" or "nccl:recv 0<-1". The first number is this rank, the second its peer. Both are
  // ranks inside the group.
  static void TakePeers(std::string_view name, Entry& entry) {
    const size_t blank = name.find(' ');
    const size_t arrow = name.find_first_of("-<", blank == name.npos ? name.size() : blank);
    if (arrow == name.npos) return;
    entry.own_rank = JsonInteger(name.substr(blank + 1, arrow - blank - 1)).value_or(-1);
    entry.peer = JsonInteger(name.substr(std::min(arrow + 2, name.size()))).value_or(-1);
  }

  // Orders entries by time and groups those that were issued in one coalesced call.
  Imported Convert() {
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& a, const Entry& b) { return a.created_ns < b.created_ns; });
    for (const Entry& entry : entries_) {
      if (entry.own_rank >= 0) own_ranks_.try_emplace(entry.group, entry.own_rank);
    }
    std::vector<ImportedCall> group;
    uint32_t communicator = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (group.empty()) communicator = CommunicatorOf(entries_[i]);
      group.push_back(CallOf(entries_[i]));
      if (i + 1 < entries_.size() && IssuedAsOne(entries_[i], entries_[i + 1])) continue;
      NumberAsPyTorch(communicator, entries_[i]);
      section_.AppendGroup(communicator, group);
      group.clear();
    }
    return Finish();
  }

  // Gives the entry's call the number that PyTorch gave it, if the dump has it. If calls were counted from
  // the first entry, one call could get different numbers on different ranks: dumps of ranks that replaced
  // unequal numbers of entries begin at different calls. PyTorch also numbers AllToAll, Gather, Scatter and
  // calls that the import leaves out, so numbers may be skipped.
  void NumberAsPyTorch(uint32_t communicator, const Entry& entry) {
    if (entry.sequence <= 0) return;
    const bool between_two = entry.collective == Collective::kSend || entry.collective == Collective::kRecv;
    // A send carries the number of the last collective, which begins at 1.
    section_.NumberNext(communicator, static_cast<uint64_t>(entry.sequence) - (between_two ? 0 : 1));
  }

  // True for collectives of one coalesced call.
  static bool IssuedAsOne(const Entry& a, const Entry& b) {
    return a.group == b.group && a.sequence == b.sequence && a.sequence > 0 &&
           a.collective < Collective::kSendRecv && b.collective < Collective::kSendRecv;
  }

  // The communicator of an entry's process group.
  uint32_t CommunicatorOf(const Entry& entry) {
    if (const auto known = numbers_.find(entry.group); known != numbers_.end()) return known->second;
    const std::vector<int64_t>& ranks = groups_[entry.group].ranks;
    const int64_t rank = RankIn(entry.group, ranks);
    if (ranks.empty()) section_.CountUntoldSize();
    if (rank < 0) section_.Unfilled("rank in the group", "0");
    const CommunicatorInfo info{IdOfProcessGroup(entry.group, ranks),
                                static_cast<int32_t>(std::max<int64_t>(rank, 0)), GroupSize(ranks), 1};
    return numbers_[entry.group] = section_.Communicator(entry.group, info, entry.created_ns);
  }

  int32_t GroupSize(const std::vector<int64_t>& ranks) const {
    if (ranks.empty()) return section_.UntoldSize();
    return static_cast<int32_t>(std::clamp<size_t>(ranks.size(), 1, UINT16_MAX));
  }

  // Returns this rank's number in a group. It is the rank's place among the members if the rank is known,
  // else the number in a send or receive; -1 if neither is available.
  int64_t RankIn(const std::string& group, const std::vector<int64_t>& ranks) const {
    const auto place = std::find(ranks.begin(), ranks.end(), rank_);
    if (rank_ >= 0 && place != ranks.end()) return std::min<int64_t>(place - ranks.begin(), INT16_MAX);
    const auto own = own_ranks_.find(group);
    return own == own_ranks_.end() ? -1 : std::min<int64_t>(own->second, INT16_MAX);
  }

  // Builds a call from an entry; missing fields are counted.
  ImportedCall CallOf(const Entry& entry) {
    ImportedCall call;
    call.issued.issued_ns = entry.created_ns;
    call.issued.duration_ns = entry.duration_ns;
    if (entry.duration_ns < 0) section_.Unfilled("duration", "none");
    call.issued.root_or_peer = static_cast<int32_t>(std::clamp<int64_t>(entry.peer, -1, INT16_MAX));
    CollectiveCall& shape = call.issued.call;
    shape.collective = entry.collective;
    shape.data_type = entry.type.value_or(DataType::kFloat32);
    if (!entry.type) section_.Unfilled("data type", "float");
    shape.bytes = static_cast<uint64_t>(ElementsOf(entry)) * ElementBytes(shape.data_type);
    if (entry.collective == Collective::kBroadcast || entry.collective == Collective::kReduce) {
      call.issued.root_or_peer = 0;
      section_.Unfilled("root", "0");
    }
    return call;
  }

  // The number of elements that NCCL counts: for a gather the elements that each rank has at the end, for a
  // receive those that arrive.
  int64_t ElementsOf(const Entry& entry) {
    const bool by_output =
        entry.collective == Collective::kAllGather || entry.collective == Collective::kRecv;
    const auto elements = by_output && entry.out_elements ? entry.out_elements : entry.in_elements;
    if (!elements) section_.Unfilled("bytes", "0");
    return elements.value_or(0);
  }

  // Builds the trace and lists the fields that the dump does not contain.
  Imported Finish() {
    Imported imported;
    TraceSection section = section_.Finish();
    section.rank = static_cast<int32_t>(std::clamp<int64_t>(rank_, -1, INT32_MAX));
    for (const auto& [name, group] : groups_)
      section.world = std::max(section.world, static_cast<int32_t>(group.ranks.size()));
    section.library = library_.empty() ? "" : "NCCL " + library_;
    // The time stamps of a dump are wall-clock times.
    section.opened.realtime_ns = section.opened.monotonic_ns;
    section.closed_at.realtime_ns = section.closed_at.monotonic_ns;
    // A dump is written while the process runs, usually because it hangs, so the process has not ended.
    section.closed = false;
    section.replaced = static_cast<uint64_t>(replaced_);
    // A dump of active calls only (TORCH_INCLUDE_ONLY_ACTIVE) lacks records between those that it has.
    section.lost =
        section.replaced + static_cast<uint64_t>(std::max<int64_t>(newest_ - replaced_ - (records_ - 1), 0));
    for (const char* field : {"algorithm", "protocol", "channels", "role", "stage"})
      imported.unfilled.push_back({field, section_.calls(), "unknown"});
    imported.unfilled.push_back({"reduction operator", section_.calls(), "sum"});
    imported.unfilled.push_back({"nodes", section_.communicators(), "1"});
    if (rank_ < 0) imported.unfilled.push_back({"rank", 1, "unknown (name the file *_rank_N)"});
    for (UnfilledField& row : section_.TakeUnfilled()) imported.unfilled.push_back(std::move(row));
    for (const auto& [name, count] : skipped_)
      imported.notes.push_back(
          fmt::format("{} '{}' without data moved by NCCL: left out", Counted(count, "record"), name));
    if (unfinished_ > 0)
      imported.notes.push_back(fmt::format("{} had not ended, as far as was seen, when the dump was written",
                                           Counted(unfinished_, "call")));
    if (replaced_ > 0)
      imported.notes.push_back(
          fmt::format("{} replaced by newer ones: TORCH_NCCL_TRACE_BUFFER_SIZE sets how many a dump keeps",
                      Counted(replaced_, "earlier record")));
    imported.notes.push_back("one rank only: replay issues its calls on every rank");
    imported.frameworks = frameworks_.marks();
    imported.trace = TraceOfOne(std::move(section));
    return imported;
  }

  const std::string& path_;
  JsonDocument document_;
  int64_t rank_;
  std::string version_;
  std::string library_;
  std::map<std::string, Group> groups_;
  std::vector<Entry> entries_;
  std::map<std::string, int64_t> own_ranks_;  // by group, as its first send or receive names it
  std::map<std::string, uint32_t> numbers_;   // group -> number of its communicator
  std::map<std::string, uint64_t> skipped_;
  FrameworkMarks frameworks_;
  uint64_t unfinished_ = 0;
  int64_t newest_ = 0;   // record_id of the newest record
  int64_t records_ = 0;  // number of records of all kinds
  // The lowest record_id of an entry, and so the number of entries that are gone: PyTorch numbers all entries
  // from 0 and replaces the oldest ones.
  int64_t replaced_ = INT64_MAX;
  RankSection section_;
};

// Recognises a dump by two keys that every entry has.
class FlightRecorder final : public TraceImporter {
 public:
  std::string_view name() const override { return "flight-recorder"; }
  std::string_view sentence() const override {
    return "PyTorch flight recorder dump (JSON form, versions 2.5 to 2.10)";
  }
  bool Recognises(std::string_view head) const override {
    return head.find("\"profiling_name\"") != head.npos && head.find("\"collective_seq_id\"") != head.npos;
  }
  Result<Imported> Import(const std::string& path, const ImportOptions& options) const override {
    return Dump(path, options).Import();
  }
};

}  // namespace

const TraceImporter& FlightRecorderImporter() {
  static const FlightRecorder importer;
  return importer;
}

}  // namespace dynamiccl
