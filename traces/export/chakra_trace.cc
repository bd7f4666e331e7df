// SPDX-License-Identifier: Apache-2.0
// Format: mlcommons/chakra, schema/protobuf/et_def.proto, version 0.0.4. The field numbers of that file:
//   Node            id 1, name 2, type 3, dependencies on data 5, start 6, duration 7, attribute 10
//   AttributeProto  name 1, int32 7, int64 9, bool 27, string 29
// The length of each message precedes the message. Times are in microseconds.
#include <fmt/format.h>

#include <map>

#include "src/collective/size_class.h"
#include "traces/export/protobuf_message.h"
#include "traces/export/trace_export.h"
#include "traces/format/section_clock.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

enum NodeType : uint64_t { kComputation = 4, kSendNode = 5, kReceiveNode = 6, kCollectiveNode = 7 };

// Returns Chakra's CollectiveCommType of a collective.
uint64_t TypeOf(Collective collective) {
  switch (collective) {
    case Collective::kReduce:
      return 1;
    case Collective::kAllGather:
      return 2;
    case Collective::kBroadcast:
      return 5;
    case Collective::kGather:
      return 3;
    case Collective::kScatter:
      return 4;
    case Collective::kSendRecv:
    case Collective::kAllToAll:
      return 6;
    case Collective::kReduceScatter:
      return 7;
    default:
      return 0;
  }
}

// Attribute() begins an attribute. The functions after it return one with a value of their type.
ProtobufMessage Attribute(std::string_view name) {
  return ProtobufMessage().Text(1, name);
}
std::string Int32(std::string_view name, int32_t value) {
  return Attribute(name).Number(7, static_cast<uint64_t>(int64_t{value})).bytes();
}
std::string Int64(std::string_view name, int64_t value) {
  return Attribute(name).Number(9, static_cast<uint64_t>(value)).bytes();
}
std::string Bool(std::string_view name, bool value) {
  return Attribute(name).Number(27, value ? 1 : 0).bytes();
}
std::string String(std::string_view name, std::string_view value) {
  return Attribute(name).Text(29, value).bytes();
}

// Writes the nodes of one rank: its calls in order, each dependent on the call before it on the same
// communicator. Between two calls it writes a computation that lasts as long as the time between their
// issues. ExportChakra creates one for each rank and takes its text at the end.
class RankWriter {
 public:
  explicit RankWriter(const TraceSection& section)
      : clock_(section),
        start_(section.opened.realtime_ns),
        timed_(!section.order_only()),
        groups_unknown_(section.groups_unknown()) {
    Append(ProtobufMessage().Text(1, "0.0.4"));
  }

  // Adds the next call of this rank, in order of issue.
  void Add(const TraceCall& call) {
    const int64_t now = TimeBetween(clock_.RealTime(call.issued.issued_ns), start_);
    if (timed_ && last_ns_ >= 0 && now > last_ns_) AddComputation(now);
    last_ns_ = now;
    AddCall(call, now);
  }

  std::string& text() { return text_; }

 private:
  void Append(const ProtobufMessage& message) {
    text_ += ProtobufMessage().Delimited(message.bytes()).bytes();
  }

  ProtobufMessage Node(uint64_t id, const std::string& name, NodeType type) {
    return ProtobufMessage().Number(1, id).Text(2, name).Number(3, type);
  }

  static uint64_t Microseconds(int64_t nanoseconds) {
    return nanoseconds < 0 ? 0 : static_cast<uint64_t>(nanoseconds) / 1000;
  }

  // Adds a computation that lasts from the last call to `until_ns`.
  void AddComputation(int64_t until_ns) {
    const uint64_t id = next_id_++;
    ProtobufMessage node = Node(id, "computation", kComputation);
    if (computation_ != 0) node.Number(5, computation_);
    node.Number(6, Microseconds(last_ns_)).Number(7, Microseconds(until_ns - last_ns_));
    Append(node.Text(10, Bool("is_cpu_op", false)));
    computation_ = id;
  }

  // Adds a call. It depends on the last call of its communicator and on the last computation.
  void AddCall(const TraceCall& call, int64_t now) {
    const CollectiveCall& c = call.issued.call;
    const bool send = c.collective == Collective::kSend;
    const bool receive = c.collective == Collective::kRecv;
    const uint64_t id = next_id_++;
    ProtobufMessage node = Node(id, fmt::format("{} {}", Name(c.collective), FormatBytes(c.bytes)),
                                send      ? kSendNode
                                : receive ? kReceiveNode
                                          : kCollectiveNode);
    uint64_t& before = last_on_[c.communicator];
    if (before != 0) node.Number(5, before);
    if (computation_ != 0) node.Number(5, computation_);
    before = id;
    if (timed_) node.Number(6, Microseconds(now));
    node.Number(7, Microseconds(call.issued.duration_ns));
    node.Text(10, Bool("is_cpu_op", false)).Text(10, Int64("comm_size", CommSize(c)));
    if (send || receive)
      AddPeers(node, call, send);
    else
      node.Text(10, Int64("comm_type", static_cast<int64_t>(TypeOf(c.collective))));
    node.Text(10, String("pg_name", fmt::format("{:#x}", c.communicator)));
    if (c.n_ranks > 1 || !groups_unknown_) node.Text(10, Int32("pg_size", c.n_ranks));
    Append(node);
  }

  // Chakra's comm_size: for an AllGather the bytes that one rank contributes, for all other collectives the
  // total.
  static int64_t CommSize(const CollectiveCall& call) {
    const bool gathers = call.collective == Collective::kAllGather && call.n_ranks > 0;
    return static_cast<int64_t>(gathers ? call.bytes / static_cast<uint64_t>(call.n_ranks) : call.bytes);
  }

  // Writes source and destination, and the call number as the tag.
  static void AddPeers(ProtobufMessage& node, const TraceCall& call, bool send) {
    const int32_t own = call.issued.rank;
    const int32_t peer = call.issued.root_or_peer;
    node.Text(10, Int32("comm_src", send ? own : peer)).Text(10, Int32("comm_dst", send ? peer : own));
    node.Text(10, Int32("comm_tag", static_cast<int32_t>(call.issued.call.call_number & 0x7fffffff)));
  }

  SectionClock clock_;
  int64_t start_;
  bool timed_;  // whether the times of issue were measured
  bool groups_unknown_;
  std::string text_;
  int64_t last_ns_ = -1;
  uint64_t next_id_ = 1;
  uint64_t computation_ = 0;              // id of the last computation
  std::map<uint64_t, uint64_t> last_on_;  // communicator -> its last node
};

}  // namespace

Result<Exported> ExportChakra(const Trace& trace) {
  Exported exported;
  for (size_t i = 0; i < trace.sections.size(); ++i) {
    const TraceSection& section = trace.sections[i];
    RankWriter writer(section);
    for (const TraceCall& call : CallsOf(section).calls) writer.Add(call);
    const int64_t rank = section.rank >= 0 ? section.rank : static_cast<int64_t>(i);
    exported.files.push_back({fmt::format("trace.{}.et", rank), std::move(writer.text())});
  }
  if (trace.order_only()) exported.notes.emplace_back(kNoComputing);
  return exported;
}

}  // namespace dynamiccl
