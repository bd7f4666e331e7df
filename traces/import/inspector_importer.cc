// SPDX-License-Identifier: Apache-2.0
// Logs of the NCCL Inspector plugin (NCCL 2.28 and later), one JSON object per line:
//   {"header": {"id": "0x7f..", "rank": 2, "n_ranks": 8, "nnodes": 1}, "metadata": {...},
//    "coll_perf": {"coll": "AllReduce", "coll_msg_size_bytes": ..., "coll_exec_time_us": ...}}
// Up to format v4.2 every line names its communicator. From v4.3 on a line with "dump_stats" names the
// communicator of the lines that follow. Sizes of AllGather and ReduceScatter are those of one rank in these
// files. They are converted to NCCL's totals. A last line without an end, as a killed job leaves it, is left
// out.
#include <algorithm>
#include <cmath>

#include "src/base/counted.h"
#include "src/collective/algorithm.h"
#include "src/collective/protocol.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/json_document.h"
#include "traces/import/profiled_process.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

// Largest time in microseconds. Four such times in nanoseconds, added up, fit into 64 bits.
constexpr int64_t kLatestUs = INT64_MAX / 4000;

// The communicator and time of a line, from the line itself or from the marker before it.
struct Context {
  uint64_t communicator = 0;
  int32_t rank = 0;
  int64_t dumped_us = 0;
};

// The names of a call's fields. Those of collectives and of sends and receives differ in their prefix.
struct CallKeys {
  std::string_view perf, kind, size, duration, bandwidth, start, source;
};
constexpr CallKeys kCollectiveKeys = {
    "coll_perf",       "coll",          "coll_msg_size_bytes", "coll_exec_time_us",
    "coll_algobw_gbs", "coll_start_ts", "coll_timing_source"};
constexpr CallKeys kPeerKeys = {"p2p_perf",       "p2p",          "p2p_msg_size_bytes", "p2p_exec_time_us",
                                "p2p_algobw_gbs", "p2p_start_ts", "p2p_timing_source"};

// Reads one log into a ProfiledProcess. The path must outlive the object. Calls of an unknown kind are
// counted and left out. A line that is not JSON ends the import, unless it is an incomplete last line.
class InspectorLog {
 public:
  explicit InspectorLog(const std::string& path) : path_(path) {
    process_.writer = "nccl-inspector";
    process_.wall_clock = true;
  }

  // Reads the whole log.
  Result<Imported> Import() {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path_));
    std::optional<Error> cut;
    const auto take = [this](std::string_view line) -> Status {
      ++line_number_;
      return Trimmed(line).empty() ? Status() : TakeLine(line);
    };
    DYNAMICCL_CHECK_OK(stream.EachLineOfLog(take, cut));
    if (cut && process_.calls.empty()) return tl::unexpected<Error>(*cut);
    if (process_.calls.empty()) return Fail("no coll_perf and no p2p_perf in this file");
    const uint64_t calls = process_.calls.size();
    process_.Unfilled("data type", kUntoldTypeText, calls);
    process_.Unfilled("channels", "unknown", calls - with_channels_);
    if (cut) process_.notes.push_back(fmt::format("line {}, the last one, is cut: left out", line_number_));
    if (contradictions_ > 0)
      process_.notes.push_back(
          fmt::format("{} whose size, time and bandwidth contradict each other: without a time",
                      Counted(contradictions_, "call")));
    if (proxies_ > 0)
      process_.notes.push_back(fmt::format("{} of proxy steps: left out", Counted(proxies_, "line")));
    for (const auto& [name, count] : unknown_)
      process_.notes.push_back(
          fmt::format("{} '{}' of a kind unknown here: left out", Counted(count, "call"), name));
    return TraceOfProfiledProcess(std::move(process_));
  }

 private:
  tl::unexpected<Error> Fail(const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}: line {}: {}", path_, line_number_, what);
  }

  // Reads a line: its communicator if it names one, then its call if it has one.
  Status TakeLine(std::string_view line) {
    const JsonValue json = document_.Parse(line).value_or(JsonValue());
    if (!json.is_object()) return Fail("an object of JSON was expected");
    if (json["header"].exists()) DYNAMICCL_CHECK_OK(TakeContext(json));
    const JsonValue stats = json["dump_stats"];
    process_.lost += static_cast<uint64_t>(
        std::clamp<int64_t>(IntegerOf(stats, "coll_dropped_since_last_dump", 0), 0, INT32_MAX) +
        std::clamp<int64_t>(IntegerOf(stats, "p2p_dropped_since_last_dump", 0), 0, INT32_MAX));
    proxies_ += json["proxy_trace"].exists();
    for (const CallKeys* const keys : {&kCollectiveKeys, &kPeerKeys}) {
      if (const JsonValue perf = json[keys->perf]; perf.exists()) return TakeCall(perf, *keys);
    }
    return {};
  }

  // Reads "header" and "metadata".
  Status TakeContext(JsonValue json) {
    const JsonValue header = json["header"];
    const std::string id = header["id"].Text();
    char* end = nullptr;
    const uint64_t number = std::strtoull(id.c_str(), &end, 16);
    if (id.empty() || *end != '\0') return Fail("header.id is no hexadecimal number");
    const int64_t rank = IntegerOf(header, "rank", -1);
    const int64_t n_ranks = IntegerOf(header, "n_ranks", -1);
    const int64_t nodes = IntegerOf(header, "nnodes", 1);
    if (n_ranks < 1 || n_ranks > UINT16_MAX || rank < 0 || rank >= n_ranks || rank > INT16_MAX || nodes < 1 ||
        nodes > n_ranks)
      return Fail("header.rank, header.n_ranks and header.nnodes are no place in a communicator");
    const JsonValue metadata = json["metadata"];
    context_ = Context{number, static_cast<int32_t>(rank),
                       std::clamp<int64_t>(IntegerOf(metadata, "dump_timestamp_us", 0), 0, kLatestUs)};
    process_.communicators[number] = {static_cast<int32_t>(n_ranks), static_cast<int32_t>(nodes)};
    process_.host = metadata["hostname"].Text();
    process_.process_id = IntegerOf(metadata, "pid", 0);
    return {};
  }

  // Reads a call.
  Status TakeCall(JsonValue perf, const CallKeys& keys) {
    if (!context_) return Fail("a call before the header that names its communicator");
    const std::string name = perf[keys.kind].Text();
    if (name.empty()) return Fail(fmt::format("{}_perf without \"{}\"", keys.kind, keys.kind));
    const auto collective = ParseCollective(name);
    if (!collective) {
      ++unknown_[name];
      return {};
    }
    const int64_t size = IntegerOf(perf, keys.size, -1);
    const auto duration_us = perf[keys.duration].Number(1e12);
    if (size < 0 || size > int64_t{1} << 50) return Fail(fmt::format("{} is no size", keys.size));
    if (!duration_us || *duration_us < 0) return Fail(fmt::format("{} is no time", keys.duration));
    ProfiledCall profiled;
    profiled.communicator = context_->communicator;
    profiled.rank = context_->rank;
    IssuedCall& issued = profiled.call.issued;
    issued.call.collective = *collective;
    issued.call.bytes = TotalBytes(*collective, static_cast<uint64_t>(size), 1,
                                   process_.communicators[context_->communicator].n_ranks);
    issued.call.data_type = UntoldType(issued.call.bytes);
    issued.duration_ns = static_cast<int64_t>(*duration_us * 1000);
    if (!FitsBandwidth(perf, keys, issued)) {
      issued.duration_ns = -1;
      ++contradictions_;
    }
    issued.root_or_peer =
        static_cast<int32_t>(std::clamp<int64_t>(IntegerOf(perf, "p2p_peer", -1), -1, INT16_MAX));
    FillRoot(issued);
    FillTimes(perf, keys, issued);
    FillConfig(perf, profiled.call);
    process_.calls.push_back(std::move(profiled));
    return {};
  }

  // True if the bandwidth that the log states fits the call's bytes and time. The plugin computes the
  // bandwidth from both, so a different one shows that the line was damaged. Times may be cut to whole
  // microseconds.
  static bool FitsBandwidth(JsonValue perf, const CallKeys& keys, const IssuedCall& issued) {
    const auto stated = perf[keys.bandwidth].Number(1e12);
    const bool computed =
        &keys == &kPeerKeys || static_cast<int>(issued.call.collective) < kTunableCollectives;
    if (!stated || *stated <= 0 || !computed || issued.duration_ns <= 0) return true;
    const double gb_s = static_cast<double>(issued.call.bytes) / static_cast<double>(issued.duration_ns);
    const double tolerance = 0.01 + 1e3 / static_cast<double>(issued.duration_ns);
    return std::fabs(gb_s - *stated) <= tolerance * std::max(gb_s, *stated);
  }

  // Sets the root to 0, because the log names no root.
  void FillRoot(IssuedCall& issued) {
    if (issued.call.collective != Collective::kBroadcast && issued.call.collective != Collective::kReduce)
      return;
    issued.root_or_peer = 0;
    process_.Unfilled("root", "0");
  }

  // Fills in the time of issue, which the log has only with NCCL_INSPECTOR_DUMP_VERBOSE. A duration that was
  // measured on the host is dropped.
  void FillTimes(JsonValue perf, const CallKeys& keys, IssuedCall& issued) {
    const int64_t began = IntegerOf(perf["event_trace_ts"], keys.start, -1);
    if (began > 0 && began <= kLatestUs) {
      issued.issued_ns = began * 1000;
    } else {
      issued.issued_ns = context_->dumped_us * 1000;
      process_.order_only = true;
      process_.Unfilled("time of issue", "the time at which the log was written");
    }
    if (perf[keys.source].Text() == "collective_cpu") {
      // The host's time covers only the enqueueing, not the transfer.
      issued.duration_ns = -1;
      process_.Unfilled("duration", "none (timed on the host)");
    }
  }

  // Fills in the config that NCCL used. Each channel has an event of its own.
  void FillConfig(JsonValue perf, ImportedCall& call) {
    const JsonValue channels = perf["event_trace_ts"]["kernel_events"];
    if (call.issued.call.collective >= Collective::kSendRecv) return;
    if (channels.is_array() && channels.size() > 0) {
      call.chosen.channels = static_cast<uint8_t>(std::min<size_t>(channels.size(), 64));
      ++with_channels_;
    }
    const auto algorithm = ParseAlgorithm(perf["coll_algo"].Text());
    const auto protocol = ParseProtocol(perf["coll_proto"].Text());
    if (!algorithm) process_.Unfilled("algorithm", "unknown");
    if (!protocol) process_.Unfilled("protocol", "unknown");
    call.chosen.algorithm = algorithm.value_or(Algorithm::kUndefined);
    call.chosen.protocol = protocol.value_or(Protocol::kUndefined);
  }

  const std::string& path_;
  uint64_t line_number_ = 0;
  JsonDocument document_;
  std::optional<Context> context_;
  uint64_t with_channels_ = 0;
  uint64_t proxies_ = 0;
  uint64_t contradictions_ = 0;
  std::map<std::string, uint64_t> unknown_;
  ProfiledProcess process_;
};

// Recognises a log by the key of its format's version.
class Inspector final : public TraceImporter {
 public:
  std::string_view name() const override { return "inspector"; }
  std::string_view sentence() const override { return "NCCL Inspector log (JSON lines, formats up to v4)"; }
  bool Recognises(std::string_view head) const override {
    return head.find("\"inspector_output_format_version\"") != head.npos;
  }
  Result<Imported> Import(const std::string& path, const ImportOptions& /*options*/) const override {
    return InspectorLog(path).Import();
  }
};

}  // namespace

const TraceImporter& InspectorImporter() {
  static const Inspector importer;
  return importer;
}

}  // namespace dynamiccl
