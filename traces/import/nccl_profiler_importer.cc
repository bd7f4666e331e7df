// SPDX-License-Identifier: Apache-2.0
// Output of profiler plugins that write NCCL's own events. There are two forms: the example plugin's array
// for Chrome's trace viewer, and a variant with one JSON object per line. The array has no closing "]" when
// the job was killed, and old releases write some words without quotes.
//     {"name": "AllReduce", "cat": "COLL", "ph": "b", "ts": 1040.0, "args": {"CommHash": ..., "Rank": 3,
//      "Count": 1048576, "Datatype": "ncclFloat32", "Algorithm": "RING", "Protocol": "SIMPLE",
//      "nChannels": 2}}
// The time of a collective event is what the host took to enqueue it. The transfer lasts from the first
// channel's start to the last channel's end.
#include <algorithm>
#include <istream>
#include <map>
#include <set>

#include "src/base/counted.h"
#include "src/collective/algorithm.h"
#include "src/collective/protocol.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/json_members.h"
#include "traces/import/json_pieces.h"
#include "traces/import/profiled_process.h"

namespace dynamiccl {
namespace {

// The times of a call's channels, on the GPU's clock where all channels have it, else on the host's.
struct ChannelTimes {
  uint32_t channels = 0;
  uint32_t on_gpu = 0;
  int64_t host_begin = INT64_MAX;
  int64_t host_end = INT64_MIN;
  int64_t gpu_begin = INT64_MAX;
  int64_t gpu_end = INT64_MIN;

  // Adds a channel. GPU times of 0 mean that the file does not contain them.
  void Add(int64_t host_from, int64_t host_to, int64_t gpu_from, int64_t gpu_to) {
    ++channels;
    host_begin = std::min(host_begin, host_from);
    host_end = std::max(host_end, host_to);
    if (gpu_from <= 0 || gpu_to <= gpu_from) return;
    ++on_gpu;
    gpu_begin = std::min(gpu_begin, gpu_from);
    gpu_end = std::max(gpu_end, gpu_to);
  }
  // Nanoseconds from the first start to the last end; -1 without channels.
  int64_t Duration() const {
    if (channels == 0) return -1;
    if (on_gpu == channels) return gpu_end - gpu_begin;
    return std::max<int64_t>(host_end - host_begin, 0);
  }
};

// A call whose communicator may not be fully known until the whole file was read.
struct SeenCall {
  ProfiledCall profiled;
  uint64_t count = 0;  // elements, as the API's argument
  ChannelTimes times;
  std::string address;  // address of the plugin's event; only in the form by lines
};

// The part that both forms share: it builds calls from the fields of events, and a trace from all calls. One
// object reads one file; the path must outlive the object. A call with a wrong field ends the import.
class ProfilerFile {
 public:
  ProfilerFile(const std::string& path, const ImportOptions& options)
      : path_(path), stated_size_(options.group_size) {
    process_.writer = "nccl-profiler";
  }
  virtual ~ProfilerFile() = default;
  virtual Result<Imported> Import() = 0;

 protected:
  // The fields of a call as text; the two forms have different names for them. Empty: absent.
  struct Fields {
    std::string_view communicator;
    std::string_view rank;
    std::string_view count;
    std::string_view type;
    std::string_view algorithm;
    std::string_view protocol;
    std::string_view channels;
    std::string_view root;
    std::string_view peer;
  };

  // Builds a call. If a field is wrong, returns nothing and names the field in `wrong`.
  std::optional<SeenCall> CallOf(std::string_view function, const Fields& fields, std::string& wrong) {
    const auto collective = ParseCollective(JsonText(function));
    const auto communicator = JsonUnsigned(fields.communicator);
    const auto rank = JsonInteger(fields.rank);
    const auto count = JsonUnsigned(fields.count);
    if (!collective) wrong = "an operation unknown to NCCL";
    if (!communicator) wrong = "a call without its communicator";
    if (!rank || *rank < 0 || *rank > INT16_MAX) wrong = "a call without its rank";
    if (!count || *count > uint64_t{1} << 50) wrong = "a call without its count";
    if (!wrong.empty()) return std::nullopt;
    SeenCall seen;
    seen.profiled.communicator = *communicator;
    seen.profiled.rank = static_cast<int32_t>(*rank);
    seen.count = *count;
    CollectiveCall& shape = seen.profiled.call.issued.call;
    shape.collective = *collective;
    const auto type = ParseDataType(JsonText(fields.type));
    if (!type) process_.Unfilled("data type", "float");
    shape.data_type = type.value_or(DataType::kFloat32);
    seen.profiled.call.issued.root_or_peer = PeerOf(*collective, fields);
    if (*collective < Collective::kSendRecv) FillConfig(fields, seen.profiled.call);
    int32_t& highest = highest_rank_[*communicator];
    highest = std::max({highest, seen.profiled.rank, seen.profiled.call.issued.root_or_peer});
    return seen;
  }

  // Computes durations and total bytes after everything has been read. `position` and `unit` say where the
  // file ends, for errors.
  Result<Imported> Finish(uint64_t position, const char* unit) {
    if (calls_.empty()) {
      return MakeError(ErrorKind::kInvalidArgument, "{}: {} {}: no collectives and no sends in this file",
                       path_, unit, position);
    }
    for (const auto& [id, highest] : highest_rank_) DYNAMICCL_CHECK_OK(FillSize(id, highest));
    for (SeenCall& seen : calls_) FinishCall(seen);
    process_.Unfilled("nodes", "1", process_.communicators.size());
    return TraceOfProfiledProcess(std::move(process_));
  }

  const std::string& path_;
  ProfiledProcess process_;
  std::vector<SeenCall> calls_;

 private:
  // Fills in the size of a communicator of which the file names ranks up to `highest`, if the file states
  // none.
  Status FillSize(uint64_t id, int32_t highest) {
    ProfiledCommunicator& communicator = process_.communicators[id];
    if (communicator.n_ranks > highest) return {};
    if (stated_size_ > 0 && stated_size_ <= highest)
      return WithHint(MakeError(ErrorKind::kInvalidArgument,
                                "{}: it names rank {} of a group, so no group size of {} is possible", path_,
                                highest, stated_size_),
                      fmt::format("--group-size is at least {}", highest + 1));
    communicator.n_ranks = std::max(stated_size_, highest + 1);
    process_.Unfilled("group size", stated_size_ > 0 ? fmt::format("{}, as stated", stated_size_)
                                                     : std::string(kHighestRank));
    if (stated_size_ == 0) unsized_.insert(id);
    return {};
  }

  // Root or peer; -1 for other collectives.
  int32_t PeerOf(Collective collective, const Fields& fields) {
    const bool rooted = collective == Collective::kBroadcast || collective == Collective::kReduce;
    if (!rooted && !IsOneSided(collective)) return -1;
    const auto place = JsonInteger(rooted ? fields.root : fields.peer);
    if (place && *place >= 0 && *place <= INT16_MAX) return static_cast<int32_t>(*place);
    process_.Unfilled("root or peer", rooted ? "0" : "unknown");
    return rooted ? 0 : -1;
  }

  // Fills in the config that NCCL used; missing values are counted.
  void FillConfig(const Fields& fields, ImportedCall& call) {
    const auto algorithm = ParseAlgorithm(JsonText(fields.algorithm));
    const auto protocol = ParseProtocol(JsonText(fields.protocol));
    const auto channels = JsonInteger(fields.channels);
    if (!algorithm) process_.Unfilled("algorithm", "unknown");
    if (!protocol) process_.Unfilled("protocol", "unknown");
    if (!channels) process_.Unfilled("channels", "unknown");
    call.chosen = {algorithm.value_or(Algorithm::kUndefined), protocol.value_or(Protocol::kUndefined),
                   static_cast<uint8_t>(std::clamp<int64_t>(channels.value_or(0), 0, 64))};
  }

  // Total bytes of some collectives need the number of ranks, which the file may not contain.
  void FinishCall(SeenCall& seen) {
    IssuedCall& issued = seen.profiled.call.issued;
    const uint64_t id = seen.profiled.communicator;
    const bool per_rank = TotalBytes(issued.call.collective, 1, 1, 2) == 2;
    const bool sized = !unsized_.contains(id);
    if (per_rank && !sized) process_.Unfilled("bytes", "one rank's share");
    issued.call.bytes = TotalBytes(issued.call.collective, seen.count, ElementBytes(issued.call.data_type),
                                   sized ? process_.communicators[id].n_ranks : 1);
    issued.duration_ns = seen.times.Duration();
    if (issued.duration_ns < 0) process_.Unfilled("duration", "none (no events of the kernel's channels)");
    process_.calls.push_back(seen.profiled);
  }

  int32_t stated_size_ = 0;                   // ImportOptions::group_size
  std::map<uint64_t, int32_t> highest_rank_;  // by communicator
  std::set<uint64_t> unsized_;                // communicators of unknown size
};

// The array for Chrome's viewer. An event is nested in the event that it belongs to: API call, then
// collective, then its channels.
class ChromeArray final : public ProfilerFile {
 public:
  using ProfilerFile::ProfilerFile;

  Result<Imported> Import() override {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path_));
    JsonPieces pieces(stream, path_);
    DYNAMICCL_CHECK_OK(pieces.ReadOpenArray([this](std::string_view, std::string_view text, uint64_t offset) {
      return TakeEvent(text, offset);
    }));
    if (copy_engine_ > 0)
      process_.notes.push_back(
          fmt::format("{} without a communicator: left out", Counted(copy_engine_, "copy-engine event")));
    return Finish(pieces.position(), "byte");
  }

 private:
  tl::unexpected<Error> Fail(uint64_t offset, const std::string& what) const {
    return MakeError(ErrorKind::kCorrupt, "{}: byte {}: {}", path_, offset, what);
  }

  // Follows the beginnings ("b") and ends ("e") of events.
  Status TakeEvent(std::string_view text, uint64_t offset) {
    const JsonObject event(text);
    if (event.broken()) return Fail(offset + event.position(), "an event was expected");
    const std::string phase = JsonText(event["ph"]);
    const std::string category = JsonText(event["cat"]);
    const bool begins = phase == "b";
    if (!begins && phase != "e") return {};
    const auto time = JsonMicroseconds(event["ts"]);
    if (!time) return Fail(offset, "an event without \"ts\"");
    process_.process_id = JsonInteger(event["pid"]).value_or(process_.process_id);
    if (category == "GROUP_API" || category == "GROUP") group_ = begins ? ++groups_ : 0;
    if (category == "COLL_API" || category == "P2P_API") {
      api_ns_ = begins ? *time : -1;
      api_ = begins ? JsonText(event["args"]) : std::string();
    }
    if (category == "GPU" && JsonText(event["name"]) == "KernelCh") TakeChannel(event, begins, *time);
    copy_engine_ += begins && category == "CE_COLL";
    if (category != "COLL" && category != "P2P") return {};
    if (begins) return Begin(event, offset, *time);
    if (!open_) return Fail(offset, "the end of a call that did not begin");
    calls_.push_back(std::move(*open_));
    open_.reset();
    return {};
  }

  // Begins a call. The API call around it provides the root.
  Status Begin(const JsonObject& event, uint64_t offset, int64_t time) {
    const JsonObject arguments(event["args"]);
    const JsonObject api(api_);
    const std::string_view channels = arguments["nChannels"];
    std::string wrong;
    open_ = CallOf(event["name"],
                   {arguments["CommHash"], arguments["Rank"], arguments["Count"], arguments["Datatype"],
                    arguments["Algorithm"], arguments["Protocol"],
                    channels.empty() ? arguments["nMaxChannels"] : channels, api["root"], arguments["Peer"]},
                   wrong);
    if (!open_) return Fail(offset, wrong);
    open_->profiled.call.issued.issued_ns = api_ns_ >= 0 ? std::min(api_ns_, time) : time;
    open_->profiled.group = group_;
    return {};
  }

  // Adds a channel event to the open call.
  void TakeChannel(const JsonObject& event, bool begins, int64_t time) {
    if (!open_) return;
    if (begins) {
      const JsonObject arguments(event["args"]);
      channel_begin_ = time;
      gpu_begin_ = JsonInteger(arguments["StartGpuClk"]).value_or(0);
      gpu_end_ = JsonInteger(arguments["StopGpuClk"]).value_or(0);
    } else {
      open_->times.Add(channel_begin_, time, gpu_begin_, gpu_end_);
    }
  }

  uint64_t groups_ = 0;
  uint64_t group_ = 0;
  int64_t api_ns_ = -1;
  std::string api_;  // arguments of the surrounding API call
  int64_t channel_begin_ = 0;
  int64_t gpu_begin_ = 0;
  int64_t gpu_end_ = 0;
  uint64_t copy_engine_ = 0;
  std::optional<SeenCall> open_;  // the call that has begun and not ended
};

// The form with one object per line. An event refers to its parent by address. The plugin reuses addresses,
// so an address means the latest event there that began earlier.
class EventLines final : public ProfilerFile {
 public:
  using ProfilerFile::ProfilerFile;

  Result<Imported> Import() override {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path_));
    std::optional<Error> cut;
    const auto take = [this](std::string_view line) -> Status {
      ++line_number_;
      while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
      return line.empty() ? Status() : TakeLine(line);
    };
    DYNAMICCL_CHECK_OK(stream.EachLineOfLog(take, cut));
    if (cut && calls_.empty()) return tl::unexpected<Error>(*cut);
    if (cut) process_.notes.push_back(fmt::format("line {}, the last one, is cut: left out", line_number_));
    AssignChannels();
    AssignGroups();
    return Finish(line_number_, "line");
  }

 private:
  // A channel's event whose call is not known yet.
  struct Channel {
    std::string parent;
    int64_t begin = 0;
    int64_t end = 0;
  };

  tl::unexpected<Error> Fail(const std::string& what) const {
    return MakeError(ErrorKind::kCorrupt, "{}: line {}: {}", path_, line_number_, what);
  }

  Status TakeLine(std::string_view line) {
    const JsonObject event(line);
    if (event.broken()) return Fail("an object of JSON was expected");
    const std::string type = JsonText(event["type"]);
    const JsonObject details(event["details"].empty() ? "{}" : event["details"]);
    if (details.broken()) return Fail("broken \"details\"");
    if (type == "ProfilerLifecycle") return TakeCommunicator(event, details);
    if (type == "ncclProfileKernelCh") return TakeChannel(event);
    if (type == "ncclProfileGroup") return TakeGroup(event);
    if (type == "ncclProfileColl" || type == "ncclProfileP2p") return TakeCall(event, details);
    return {};
  }

  // The time at an event's "start" or "stop".
  std::optional<int64_t> TimeOf(const JsonObject& event, const char* end) const {
    const JsonObject stamp(event[end].empty() ? "{}" : event[end]);
    return stamp.broken() ? std::nullopt : JsonMicroseconds(stamp["ts"]);
  }

  // Reads the size of a communicator.
  Status TakeCommunicator(const JsonObject& event, const JsonObject& details) {
    const auto id = JsonUnsigned(event["commId"]);
    const auto n_ranks = JsonInteger(details["nranks"]);
    if (id && n_ranks && *n_ranks > 0 && *n_ranks <= UINT16_MAX)
      process_.communicators[*id].n_ranks = static_cast<int32_t>(*n_ranks);
    return {};
  }

  Status TakeChannel(const JsonObject& event) {
    const auto begin = TimeOf(event, "start");
    const auto end = TimeOf(event, "stop");
    if (!begin || !end) return Fail("a channel's event without its times");
    channels_.push_back({JsonText(event["parentObj"]), *begin, *end});
    return {};
  }

  // Numbers a group by its address and its time of beginning.
  Status TakeGroup(const JsonObject& event) {
    const auto begin = TimeOf(event, "start");
    if (!begin) return Fail("a group without its time");
    group_begins_[JsonText(event["eventAddr"])][*begin] = ++groups_;
    return {};
  }

  // Reads a collective, send or receive.
  Status TakeCall(const JsonObject& event, const JsonObject& details) {
    std::string wrong;
    auto seen = CallOf(details["func"],
                       {event["commId"], event["rank"], details["count"], details["dtype"], details["algo"],
                        details["proto"], details["channels"], details["root"], details["peer"]},
                       wrong);
    if (!seen) return Fail(wrong);
    const auto begin = TimeOf(event, "start");
    if (!begin) return Fail("a call without its time");
    const JsonObject start(event["start"]);
    process_.process_id = JsonInteger(start["pid"]).value_or(process_.process_id);
    seen->profiled.call.issued.issued_ns = *begin;
    seen->address = JsonText(event["eventAddr"]);
    in_groups_.push_back(JsonText(details["parentGroup"]));
    calls_.push_back(std::move(*seen));
    return {};
  }

  // Assigns each channel to the last call at its parent's address that began before the channel.
  void AssignChannels() {
    std::map<std::string, std::map<int64_t, SeenCall*>> at;
    for (SeenCall& call : calls_) at[call.address][call.profiled.call.issued.issued_ns] = &call;
    uint64_t stray = 0;
    for (const Channel& channel : channels_) {
      const auto& calls = at[channel.parent];
      const auto after = calls.upper_bound(channel.begin);
      if (after == calls.begin())
        ++stray;
      else
        std::prev(after)->second->times.Add(channel.begin, channel.end, 0, 0);
    }
    if (stray > 0) process_.notes.push_back(fmt::format("{} without a call", Counted(stray, "channel")));
  }

  // Assigns each call to the last group at its parent's address that began before the call.
  void AssignGroups() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      const auto& begins = group_begins_[in_groups_[i]];
      const auto after = begins.upper_bound(calls_[i].profiled.call.issued.issued_ns);
      if (after != begins.begin()) calls_[i].profiled.group = std::prev(after)->second;
    }
  }

  uint64_t line_number_ = 0;
  std::vector<Channel> channels_;
  uint64_t groups_ = 0;
  std::map<std::string, std::map<int64_t, uint64_t>> group_begins_;  // address -> time -> number
  std::vector<std::string> in_groups_;  // for each of calls_: the address of its group
};

// Recognises both forms. The first character shows which form a file has.
class NcclProfiler final : public TraceImporter {
 public:
  std::string_view name() const override { return "nccl-profiler"; }
  std::string_view sentence() const override {
    return "NCCL profiler plugin's events (example plugin's Chrome array, or JSON lines)";
  }
  bool Recognises(std::string_view head) const override {
    return (head.find("\"CommHash\"") != head.npos && head.find("\"cat\"") != head.npos) ||
           head.find("\"GROUP_API\"") != head.npos || head.find("\"ProfilerLifecycle\"") != head.npos ||
           head.find("\"ncclProfile") != head.npos;
  }
  Result<Imported> Import(const std::string& path, const ImportOptions& options) const override {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
    const std::string head = stream.Head(4096);
    const size_t first = head.find_first_not_of(" \t\r\n");
    const bool lines = first != std::string::npos && head[first] == '{';
    return lines ? EventLines(path, options).Import() : ChromeArray(path, options).Import();
  }
};

}  // namespace

const TraceImporter& NcclProfilerImporter() {
  static const NcclProfiler importer;
  return importer;
}

}  // namespace dynamiccl
