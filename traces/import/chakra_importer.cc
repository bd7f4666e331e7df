// SPDX-License-Identifier: Apache-2.0
// Chakra execution traces (MLCommons, `<prefix>.<rank>.et`) as single-rank traces. A file is a sequence of
// protobuf messages, each preceded by its length as a varint. The first message is of type GlobalMetadata,
// the others of type Node (schema/protobuf/et_def.proto of mlcommons/chakra).
//
// A node of type COMM_COLL, COMM_SEND or COMM_RECV with a size is a call. If both host and accelerator nodes
// have sizes, they describe the same calls, and the accelerator's nodes are used. The size of an AllGather is
// that of one rank. It is converted to NCCL's total if the group's size is known.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <istream>
#include <optional>

#include "src/base/counted.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/protobuf_fields.h"
#include "traces/import/rank_section.h"

namespace dynamiccl {
namespace {

// Field numbers and node types of et_def.proto.
enum MetadataField : uint64_t { kMetadataVersion = 1, kMetadataAttribute = 2 };
enum NodeField : uint64_t { kType = 3, kStart = 6, kDuration = 7, kAttribute = 10 };
enum AttributeField : uint64_t { kAttributeName = 1, kSint32 = 15, kSint64 = 17, kString = 29 };
enum NodeType : uint64_t { kSendNode = 5, kRecvNode = 6, kCollectiveNode = 7 };

// CollectiveCommType by number. For NCCL a barrier is an AllReduce.
constexpr Collective kCommTypes[] = {
    Collective::kAllReduce,     Collective::kReduce,    Collective::kAllGather, Collective::kGather,
    Collective::kScatter,       Collective::kBroadcast, Collective::kAllToAll,  Collective::kReduceScatter,
    Collective::kReduceScatter, Collective::kAllReduce};

// A node with the attributes that matter here.
struct CommunicationNode {
  uint64_t type = 0;
  uint64_t start_us = 0;
  uint64_t duration_us = 0;
  std::optional<uint64_t> comm_type;
  std::optional<uint64_t> bytes;
  uint64_t group_size = 0;  // 0: missing
  std::string group;
  int32_t source = -1;
  int32_t destination = -1;
  bool on_host = false;
};

// The number in an attribute's value; sint fields are zigzag-coded.
uint64_t NumberOf(const ProtobufField& value) {
  if (value.number != kSint32 && value.number != kSint64) return value.value;
  return (value.value >> 1) ^ (~(value.value & 1) + 1);
}

// Reads an attribute, which is a name and a value field, into the node.
Status TakeAttribute(const ProtobufField& attribute, CommunicationNode& node) {
  std::string_view name;
  ProtobufField value;
  ProtobufFields fields(attribute.bytes, attribute.offset);
  for (ProtobufField field;;) {
    DYNAMICCL_TRY(const bool more, fields.Next(field));
    if (!more) break;
    if (field.number == kAttributeName)
      name = field.bytes;
    else
      value = field;
  }
  const uint64_t number = NumberOf(value);
  if (name == "comm_type") node.comm_type = number;
  if (name == "comm_size") node.bytes = number;
  if (name == "pg_size" || name == "group_size") node.group_size = number;
  if (name == "comm_group" || name == "pg_name")
    node.group = value.number == kString ? std::string(value.bytes) : std::to_string(number);
  if (name == "comm_src") node.source = static_cast<int32_t>(number);
  if (name == "comm_dst") node.destination = static_cast<int32_t>(number);
  if (name == "is_cpu_op") node.on_host = number != 0;
  return {};
}

// Reads a Node; fields that are not needed are skipped.
Result<CommunicationNode> ParseNode(std::string_view message, uint64_t offset) {
  CommunicationNode node;
  ProtobufFields fields(message, offset);
  for (ProtobufField field;;) {
    DYNAMICCL_TRY(const bool more, fields.Next(field));
    if (!more) return node;
    if (field.number == kType) node.type = field.value;
    if (field.number == kStart) node.start_us = field.value;
    if (field.number == kDuration) node.duration_us = field.value;
    if (field.number == kAttribute) DYNAMICCL_CHECK_OK(TakeAttribute(field, node));
  }
}

// Reads the messages of a file, each preceded by its length. `stream` must outlive this object. Errors name
// the byte. A file that ends between two messages is complete.
class MessageStream {
 public:
  explicit MessageStream(std::istream& stream) : stream_(stream) {}

  uint64_t offset() const { return offset_; }  // byte of the message

  // Reads the next message; false at the end of the file.
  Result<bool> Next(std::string& message) {
    offset_ = next_;
    uint64_t length = 0;
    for (int shift = 0;; shift += 7) {
      const int byte = stream_.get();
      if (byte < 0 && shift == 0) return false;
      if (byte < 0) return Fail("the file ends inside a message's length");
      if (shift > 56) return Fail("a message's length of more than 63 bits");
      ++next_;
      length |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    offset_ = next_;
    return ReadWhole(length, message);
  }

 private:
  // Reads in pieces, so that a damaged length does not allocate memory for data that the file does not have.
  Result<bool> ReadWhole(uint64_t length, std::string& message) {
    // Bytes that are read at a time.
    constexpr uint64_t kPiece = 1 << 20;
    message.clear();
    while (message.size() < length) {
      const size_t have = message.size();
      const auto piece = static_cast<size_t>(std::min(kPiece, length - have));
      message.resize(have + piece);
      stream_.read(message.data() + have, static_cast<std::streamsize>(piece));
      next_ += static_cast<uint64_t>(stream_.gcount());
      if (stream_.gcount() < static_cast<std::streamsize>(piece))
        return Fail("the file ends inside a message");
    }
    return true;
  }

  tl::unexpected<Error> Fail(const char* what) const {
    return MakeError(ErrorKind::kInvalidArgument, "byte {}: {}", next_, what);
  }

  std::istream& stream_;
  uint64_t offset_ = 0;
  uint64_t next_ = 0;
};

// A metadata message holds nothing but its version and attributes.
Status CheckMetadata(std::string_view message, uint64_t offset) {
  ProtobufFields fields(message, offset);
  for (ProtobufField field;;) {
    DYNAMICCL_TRY(const bool more, fields.Next(field));
    if (!more) return {};
    const bool known = field.number == kMetadataVersion || field.number == kMetadataAttribute;
    if (!known || field.wire != ProtobufWire::kBytes)
      return MakeError(ErrorKind::kInvalidArgument,
                       "byte {}: the first message is not Chakra's GlobalMetadata", field.offset);
  }
}

// Those nodes of a file that may be calls, and the number of other nodes.
struct ChakraFile {
  std::vector<CommunicationNode> nodes;
  uint64_t other_nodes = 0;
  uint64_t bytes = 0;
};

// Reads the metadata and all nodes.
Result<ChakraFile> ReadNodes(std::istream& stream) {
  MessageStream messages(stream);
  ChakraFile file;
  std::string message;
  DYNAMICCL_TRY(const bool any, messages.Next(message));
  if (!any) return MakeError(ErrorKind::kInvalidArgument, "byte 0: the file is empty");
  DYNAMICCL_CHECK_OK(CheckMetadata(message, messages.offset()));
  for (;;) {
    DYNAMICCL_TRY(const bool more, messages.Next(message));
    file.bytes = messages.offset();
    if (!more) return file;
    DYNAMICCL_TRY(CommunicationNode node, ParseNode(message, messages.offset()));
    if (node.type >= kSendNode && node.type <= kCollectiveNode)
      file.nodes.push_back(std::move(node));
    else
      ++file.other_nodes;
  }
}

// The rank in "<prefix>.<rank>.et", also gzipped; -1 without one.
int32_t RankInName(const std::string& path) {
  std::filesystem::path name = std::filesystem::path(path).filename();
  if (name.extension() == ".gz") name = name.stem();
  const std::string rank = name.stem().extension().string();
  int32_t number = -1;
  if (rank.size() > 1) std::from_chars(rank.data() + 1, rank.data() + rank.size(), number);
  return number;
}

// Builds the section from the nodes of one file, which it owns. A node with a missing field is imported with
// a substitute value, and counted.
class Conversion {
 public:
  Conversion(ChakraFile file, const std::string& path, const ImportOptions& options)
      : file_(std::move(file)),
        rank_(RankInName(path)),
        section_("chakra", kTraceMirrored, options.group_size) {}

  Result<Imported> Run() {
    KeepCalls();
    if (file_.nodes.empty()) {
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument,
                    "byte {}: no communication node that tells its size before the end", file_.bytes),
          "Chakra traces of computation alone hold nothing to import");
    }
    section_.section().rank = rank_;
    has_times_ = std::any_of(file_.nodes.begin(), file_.nodes.end(),
                             [](const CommunicationNode& node) { return node.start_us > 0; });
    for (const CommunicationNode& node : file_.nodes) Append(node);
    return Finish();
  }

 private:
  // True for a node from which a call can be built: it has a size and, if it is a collective, a known kind.
  static bool Tells(const CommunicationNode& node) {
    if (!node.bytes) return false;
    if (node.type != kCollectiveNode) return true;
    return node.comm_type && *node.comm_type < std::size(kCommTypes);
  }

  // Leaves out nodes without a size, and the host's nodes where the accelerator has its own.
  void KeepCalls() {
    std::vector<CommunicationNode>& nodes = file_.nodes;
    untold_ = std::erase_if(nodes, [](const CommunicationNode& node) { return !Tells(node); });
    const bool on_device =
        std::any_of(nodes.begin(), nodes.end(), [](const CommunicationNode& node) { return !node.on_host; });
    if (on_device)
      doubled_ = std::erase_if(nodes, [](const CommunicationNode& node) { return node.on_host; });
  }

  // Start times are in microseconds. In a file without them calls are 1 ms apart.
  int64_t TimeOf(const CommunicationNode& node) const {
    if (!has_times_) return static_cast<int64_t>(section_.calls() + 1) * kUntimedStepNs;
    return static_cast<int64_t>(std::min<uint64_t>(node.start_us, INT64_MAX / 2000)) * 1000;
  }

  static bool TellsSize(const CommunicationNode& node) {
    return node.group_size > 0 && node.group_size <= UINT16_MAX;
  }

  int32_t SizeOf(const CommunicationNode& node) const {
    return TellsSize(node) ? static_cast<int32_t>(node.group_size) : section_.UntoldSize();
  }

  // Returns the communicator of a node's group. Groups are taken to be blocks of neighbouring ranks.
  uint32_t GroupOf(const CommunicationNode& node, int64_t now_ns) {
    if (const auto known = section_.Known(node.group)) return *known;
    const int32_t n_ranks = SizeOf(node);
    if (!TellsSize(node)) section_.CountUntoldSize();
    if (node.group.empty()) section_.Unfilled("group", "one for all calls");
    section_.Unfilled("nodes", "1");
    return section_.Communicator(
        node.group, {IdOfName("chakra " + node.group), std::max(rank_, 0) % n_ranks, n_ranks, 1}, now_ns);
  }

  // Appends one call.
  void Append(const CommunicationNode& node) {
    ImportedCall call;
    IssuedCall& issued = call.issued;
    issued.issued_ns = TimeOf(node);
    CollectiveCall& shape = issued.call;
    shape.collective = node.type == kSendNode   ? Collective::kSend
                       : node.type == kRecvNode ? Collective::kRecv
                                                : kCommTypes[*node.comm_type];
    const bool gathers = shape.collective == Collective::kAllGather;
    shape.bytes = *node.bytes;
    if (gathers) shape.bytes *= static_cast<uint64_t>(SizeOf(node));
    if (gathers && SizeOf(node) == 1 && !TellsSize(node))
      section_.Unfilled("total bytes of an AllGather", "the bytes of one rank");
    shape.data_type = UntoldType(shape.bytes);
    if (node.type == kSendNode) issued.root_or_peer = node.destination;
    if (node.type == kRecvNode) issued.root_or_peer = node.source;
    if (shape.collective == Collective::kBroadcast || shape.collective == Collective::kReduce) {
      issued.root_or_peer = 0;
      section_.Unfilled("root", "0");
    }
    if (node.duration_us > 0 && !node.on_host)
      issued.duration_ns = static_cast<int64_t>(std::min<uint64_t>(node.duration_us, UINT32_MAX)) * 1000;
    else
      section_.Unfilled("duration", "none");
    section_.Append(GroupOf(node, issued.issued_ns), call);
  }

  Result<Imported> Finish() {
    const uint64_t calls = section_.calls();
    if (!has_times_) section_.OrderOnly("the order in the file, 1 ms apart");
    for (const char* field : {"algorithm", "protocol", "channels", "role", "stage"})
      section_.Unfilled(field, "unknown", calls);
    section_.Unfilled("reduction operator", "sum", calls);
    section_.Unfilled("data type", kUntoldTypeText, calls);
    Imported imported;
    imported.unfilled = section_.TakeUnfilled();
    if (file_.other_nodes > 0)
      imported.notes.push_back(
          fmt::format("{} of computation, memory or metadata: left out", Counted(file_.other_nodes, "node")));
    if (untold_ > 0)
      imported.notes.push_back(fmt::format("{} without a known comm_type and comm_size: left out",
                                           Counted(untold_, "communication node")));
    if (doubled_ > 0)
      imported.notes.push_back(
          fmt::format("{} of the host with the same content as the accelerator's: left out",
                      Counted(doubled_, "communication node")));
    imported.trace = TraceOfOne(section_.Finish());
    return imported;
  }

  ChakraFile file_;
  int32_t rank_;
  RankSection section_;
  bool has_times_ = false;
  uint64_t untold_ = 0;
  uint64_t doubled_ = 0;
};

// Recognises a file by its first message.
class Chakra final : public TraceImporter {
 public:
  std::string_view name() const override { return "chakra"; }
  std::string_view sentence() const override {
    return "Chakra execution trace of one rank (protobuf, <prefix>.<rank>.et), without algorithm, protocol, "
           "data type and, mostly, group size";
  }
  // The first message is short and holds metadata only.
  bool Recognises(std::string_view head) const override {
    size_t at = 0;
    uint64_t length = 0;
    for (int shift = 0; at < head.size() && shift <= 14; shift += 7) {
      const auto byte = static_cast<uint8_t>(head[at++]);
      length |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return length > 2 && at + length <= head.size() && CheckMetadata(head.substr(at, length), at).has_value();
  }
  Result<Imported> Import(const std::string& path, const ImportOptions& options) const override {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
    auto file = ReadNodes(stream.stream());
    DYNAMICCL_CHECK_OK(stream.status());
    if (!file) return Wrap(file.error(), path);
    auto imported = Conversion(std::move(*file), path, options).Run();
    if (!imported) return Wrap(imported.error(), path);
    return imported;
  }
};

}  // namespace

const TraceImporter& ChakraImporter() {
  static const Chakra importer;
  return importer;
}

}  // namespace dynamiccl
