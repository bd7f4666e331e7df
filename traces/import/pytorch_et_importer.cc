// SPDX-License-Identifier: Apache-2.0
// PyTorch host execution traces (ExecutionTraceObserver, which et_replay reads) as single-rank traces. Calls
// are the record_param_comms nodes, in order of their ids; such a trace has no times. There are two layouts.
// From schema 1.0.3 on, nodes have attributes and there is a table of process groups:
//     {"id": 12, "name": "record_param_comms", "inputs": {"values": [...], "shapes": [...], "types": [...]},
//      "attrs": [{"name": "collective_name", "value": "allreduce"}, {"name": "pg_name", "value": "0"}, ...]}
// Earlier nodes have only the operator's arguments, in which the group is a bare number. The table of process
// groups of schema 1.0.2 says which group has that number ("pg_id", "backend_id").
#include <algorithm>
#include <map>
#include <set>

#include "src/base/counted.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/json_document.h"
#include "traces/import/json_members.h"
#include "traces/import/json_pieces.h"
#include "traces/import/pytorch_calls.h"
#include "traces/import/rank_section.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

// Names of the nodes that the importer reads.
constexpr std::string_view kCommNode = "record_param_comms";
constexpr std::string_view kGroupsNode = "## process_group:init ##";
constexpr std::string_view kStepNode = "ProfilerStep#";

// One call of the trace.
struct CommNode {
  int64_t id = 0;
  std::string group;
  Collective collective = Collective::kAllReduce;
  std::optional<DataType> type;
  std::optional<int64_t> in_elements;
  std::optional<int64_t> out_elements;
  // Root of a broadcast or reduce, peer of a send or receive, else this rank in the group.
  int64_t rank = -1;
  int64_t group_size = 0;
  int64_t rank_start = -1;
  int64_t rank_stride = -1;
};

// A process group.
struct ProcessGroup {
  int64_t size = 0;
  std::vector<int64_t> ranks;  // empty: all ranks of the job
};

struct StepNode {
  int64_t id = 0;
  uint64_t step = 0;
};

// A node's arguments in either layout.
struct Arguments {
  JsonValue values;
  JsonValue shapes;
  JsonValue types;
};

// `inputs_or_outputs` is "inputs" or "outputs".
Arguments ArgumentsOf(JsonValue node, std::string_view inputs_or_outputs) {
  const JsonValue field = node[inputs_or_outputs];
  if (field.is_object()) return {field["values"], field["shapes"], field["types"]};
  const std::string singular(inputs_or_outputs.substr(0, inputs_or_outputs.size() - 1));
  return {field, node[singular + "_shapes"], node[singular + "_types"]};
}

// A node's attributes, which are a list of names and values. Of equal names the last one counts.
class Attributes {
 public:
  explicit Attributes(JsonValue list) {
    list.EachElement(
        [this](JsonValue attribute) { values_.emplace_back(attribute["name"].Text(), attribute["value"]); });
  }
  // Returns nothing if there is no attribute of that name.
  std::optional<JsonValue> Find(std::string_view name) const {
    for (auto row = values_.rbegin(); row != values_.rend(); ++row) {
      if (row->first == name) return row->second;
    }
    return std::nullopt;
  }
  JsonValue operator[](std::string_view name) const { return Find(name).value_or(JsonValue()); }

 private:
  std::vector<std::pair<std::string, JsonValue>> values_;
};

// Returns the index of the argument with the collective's name, which is the last argument of type String; 0
// if there is none. The arguments before it are tensors, sequence number, group (which may be a String too)
// and rank. Those after it are split sizes and the group's first rank, stride and size.
size_t PlaceOfName(const Arguments& inputs) {
  if (!inputs.values.is_array() || !inputs.types.is_array()) return 0;
  const size_t count = std::min(inputs.values.size(), inputs.types.size());
  for (size_t i = count; i-- > 0;) {
    if (inputs.types[i].Text() == "String" && inputs.values[i].is_string()) return i;
  }
  return 0;
}

// Reads the element type inside a text such as "GenericList[Tensor(long int)]"; here it is "long int".
std::optional<DataType> TypeOfTensors(JsonValue types) {
  const std::string text = types[0].Text();
  const size_t open = text.find("Tensor(");
  if (open == text.npos) return std::nullopt;
  const size_t begin = open + std::string_view("Tensor(").size();
  return DataTypeOfPyTorch(std::string_view(text).substr(begin, text.find(')', begin) - begin));
}

// Reads one trace and builds its section. The path must outlive the object. Nodes that move no data are
// counted and left out; broken JSON ends the import.
class ExecutionTrace {
 public:
  ExecutionTrace(const std::string& path, const ImportOptions& options)
      : path_(path), section_("pytorch-et", kTraceMirrored, options.group_size) {}

  Result<Imported> Import() {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path_));
    JsonPieces pieces(stream, path_);
    DYNAMICCL_CHECK_OK(pieces.ReadObject(
        [](std::string_view key) {
          if (key == "nodes") return JsonMemberUse::kElements;
          return key == "pid" ? JsonMemberUse::kWhole : JsonMemberUse::kSkip;
        },
        [this](std::string_view key, std::string_view text, uint64_t offset) {
          if (key == "nodes") return TakeNode(text, offset);
          process_id_ = JsonInteger(text).value_or(0);
          return Status();
        }));
    if (comms_.empty()) {
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: byte {}: no collectives in this trace",
                                path_, pieces.position()),
                      "only traces of distributed programs have record_param_comms nodes");
    }
    return Convert();
  }

 private:
  // Checks a node's name first, because most nodes need not be parsed.
  Status TakeNode(std::string_view text, uint64_t offset) {
    std::string_view name;
    JsonMembers members(text);
    while (const auto member = members.Next()) {
      if (member->key != "name" || member->value.size() < 2) continue;
      name = member->value.substr(1, member->value.size() - 2);
      break;
    }
    const auto fail = [&](size_t at) {
      return MakeError(ErrorKind::kCorrupt, "{}: byte {}: a node was expected", path_, offset + at);
    };
    if (members.broken()) return fail(members.position());
    const bool step = name.starts_with(kStepNode);
    frameworks_.NoteName(name);
    if (name != kCommNode && name != kGroupsNode && !step) return {};
    const auto node = document_.Parse(text);
    if (!node) return fail(document_.position());
    if (step)
      steps_.push_back({IntegerOf(*node, "id", 0), StepNumber(name)});
    else if (name == kGroupsNode)
      TakeGroups(*node);
    else
      TakeComm(*node);
    return {};
  }

  static uint64_t StepNumber(std::string_view name) {
    return static_cast<uint64_t>(
        std::max<int64_t>(JsonInteger(name.substr(kStepNode.size())).value_or(0), 0));
  }

  // Reads the table of process groups, which is JSON inside a string.
  void TakeGroups(JsonValue node) {
    const std::string text = ArgumentsOf(node, "inputs").values[0].Text();
    JsonDocument inner;
    if (const auto table = inner.Parse(text)) table->EachElement([this](JsonValue row) { TakeGroup(row); });
  }

  // Reads a row of the table of process groups. "ranks" is a list, or an object with the ranks as keys.
  void TakeGroup(JsonValue row) {
    const int64_t id = IntegerOf(row, "pg_id", 0);
    const JsonValue told = row["pg_name"];
    const std::string name = told.exists() ? told.Text() : fmt::format("id {}", id);
    for (const char* const number : {"pg_id", "backend_id"}) {
      if (const int64_t address = IntegerOf(row, number, 0); address != 0) name_of_address_[address] = name;
    }
    ProcessGroup& group = groups_[name];
    const JsonValue ranks = row["ranks"];
    group.size = IntegerOf(row, "group_size", static_cast<int64_t>(ranks.size()));
    ranks.EachElement([&](JsonValue rank) { group.ranks.push_back(rank.Integer().value_or(-1)); });
    if (!ranks.is_object()) return;
    ranks.EachMember([&](const std::string& rank, JsonValue) {
      group.ranks.push_back(NumberIn<int64_t>(rank).value_or(-1));
    });
    std::sort(group.ranks.begin(), group.ranks.end());
  }

  // Returns the name of the process group. `argument` stands two places before the argument that names the
  // collective. It is the group's name, a pair of name and description, or an address for which the table of
  // groups may have a name. Empty if it is none of these.
  std::string GroupNameOf(JsonValue argument) const {
    if (argument.is_string()) return argument.Text();
    if (argument[0].is_string()) return argument[0].Text();
    const auto named = name_of_address_.find(argument.Integer().value_or(0));
    return named == name_of_address_.end() ? "" : named->second;
  }

  // Reads a call; attributes are preferred to arguments.
  void TakeComm(JsonValue node) {
    Attributes attributes(node["attrs"]);
    const Arguments inputs = ArgumentsOf(node, "inputs");
    const size_t place = PlaceOfName(inputs);
    std::string name = attributes["collective_name"].Text();
    if (name.empty() && place > 0) name = inputs.values[place].Text();
    const auto collective = CollectiveOfPyTorch(name);
    if (!collective) {
      ++skipped_[name];
      return;
    }
    CommNode comm;
    comm.id = IntegerOf(node, "id", 0);
    comm.collective = *collective;
    FillShape(attributes, inputs, ArgumentsOf(node, "outputs"), place, comm);
    FillGroup(attributes, inputs, place, comm);
    comms_.push_back(std::move(comm));
  }

  // Fills in the data type and the number of elements.
  static void FillShape(const Attributes& attributes, const Arguments& inputs, const Arguments& outputs,
                        size_t place, CommNode& comm) {
    comm.type = DataTypeOfPyTorch(attributes["dtype"].Text());
    if (!comm.type) comm.type = TypeOfTensors(inputs.types);
    comm.in_elements = attributes["in_msg_nelems"].Integer();
    comm.out_elements = attributes["out_msg_nelems"].Integer();
    if (!comm.in_elements) comm.in_elements = ElementsOfShapes(inputs.shapes, place < 3 ? 0 : place - 3);
    if (!comm.out_elements) comm.out_elements = ElementsOfShapes(outputs.shapes);
  }

  // Fills in rank and group. A group without a name is numbered by its first use: a group's address has a
  // meaning in its own process only, but all ranks agree on the order in which groups are first used.
  void FillGroup(const Attributes& attributes, const Arguments& inputs, size_t place, CommNode& comm) {
    if (place >= 1) comm.rank = inputs.values[place - 1].Integer().value_or(-1);
    comm.group_size =
        attributes["pg_size"].Integer().value_or(inputs.values[place + 5].Integer().value_or(0));
    comm.rank_start = attributes["global_rank_start"].Integer().value_or(-1);
    comm.rank_stride = attributes["global_rank_stride"].Integer().value_or(-1);
    if (const auto name = attributes.Find("pg_name")) {
      comm.group = name->Text();
      return;
    }
    const JsonValue argument = place >= 2 ? inputs.values[place - 2] : JsonValue();
    comm.group = GroupNameOf(argument);
    if (!comm.group.empty()) return;
    const int64_t address = argument.Integer().value_or(0);
    const auto number = addresses_.try_emplace(address, addresses_.size()).first->second;
    comm.group = fmt::format("unnamed {}", number);
    ProcessGroup& group = groups_[comm.group];
    const JsonValue splits = inputs.values[place + 1];
    if (splits.is_array()) group.size = std::max(group.size, static_cast<int64_t>(splits.size()));
  }

  // ---- conversion ----

  // True if CommNode::rank is the root or the peer of the call. Otherwise it is this rank.
  static bool RankIsRootOrPeer(Collective collective) {
    return collective == Collective::kBroadcast || collective == Collective::kReduce ||
           collective == Collective::kSend || collective == Collective::kRecv;
  }

  // Orders calls and steps by id, which is the order of issue.
  Imported Convert() {
    std::stable_sort(comms_.begin(), comms_.end(),
                     [](const CommNode& a, const CommNode& b) { return a.id < b.id; });
    std::stable_sort(steps_.begin(), steps_.end(),
                     [](const StepNode& a, const StepNode& b) { return a.id < b.id; });
    for (const CommNode& comm : comms_) {
      if (!RankIsRootOrPeer(comm.collective) && comm.rank >= 0) own_ranks_.try_emplace(comm.group, comm.rank);
    }
    size_t step = 0;
    for (const CommNode& comm : comms_) {
      for (; step < steps_.size() && steps_[step].id < comm.id; ++step) AppendStep(steps_[step]);
      AppendCall(comm);
    }
    for (; step < steps_.size(); ++step) AppendStep(steps_[step]);
    return Finish();
  }

  // Marks a training step, 1 ms after the call before it.
  void AppendStep(const StepNode& step) {
    section_.AppendStep({.marked_ns = now_ns_ += kUntimedStepNs, .step = step.step});
  }

  // Appends one call, 1 ms after the one before it.
  void AppendCall(const CommNode& comm) {
    now_ns_ += kUntimedStepNs;
    const CommunicatorInfo info = InfoOf(comm);
    const uint32_t communicator = section_.Communicator(comm.group, info, now_ns_);
    ImportedCall call;
    call.issued.issued_ns = now_ns_;
    CollectiveCall& shape = call.issued.call;
    shape.collective = comm.collective;
    shape.data_type = comm.type.value_or(DataType::kFloat32);
    if (!comm.type) section_.Unfilled("data type", "float");
    shape.bytes = BytesOf(comm, shape.data_type, info.n_ranks);
    if (RankIsRootOrPeer(comm.collective)) {
      call.issued.root_or_peer = static_cast<int32_t>(std::clamp<int64_t>(comm.rank, 0, INT16_MAX));
      if (comm.rank < 0) section_.Unfilled("root or peer", "0");
    }
    section_.Append(communicator, call);
  }

  // The communicator of a call. The largest group gives the section's rank and world.
  CommunicatorInfo InfoOf(const CommNode& comm) {
    const ProcessGroup& group = groups_[comm.group];
    int64_t size = comm.group_size > 0 ? comm.group_size : group.size;
    const auto own = own_ranks_.find(comm.group);
    const bool first = seen_.insert(comm.group).second;
    const bool stated = size <= 0 && section_.SizeIsStated();
    if (size <= 0 && first) section_.CountUntoldSize();
    if (size <= 0) size = section_.UntoldSize();
    if (own == own_ranks_.end() && first) section_.Unfilled("rank in the group", "0");
    size = std::clamp<int64_t>(size, 1, UINT16_MAX);
    // If the user stated a size, a rank beyond it is kept: ImportFile then refuses the size as too small.
    const int64_t last = stated ? INT16_MAX : size - 1;
    const int64_t rank = std::clamp<int64_t>(own == own_ranks_.end() ? 0 : own->second, 0, last);
    if (first && size > largest_) {
      largest_ = size;
      job_rank_ = own == own_ranks_.end() ? -1 : GlobalRank(comm, group, rank);
    }
    return {IdOfProcessGroup(comm.group, group.ranks), static_cast<int32_t>(rank), static_cast<int32_t>(size),
            1};
  }

  // The rank in the job of a rank in the group.
  static int64_t GlobalRank(const CommNode& comm, const ProcessGroup& group, int64_t rank) {
    if (static_cast<size_t>(rank) < group.ranks.size()) return group.ranks[static_cast<size_t>(rank)];
    const bool strided = comm.rank_start >= 0 && comm.rank_start <= INT16_MAX && comm.rank_stride > 0 &&
                         comm.rank_stride <= INT16_MAX;
    return strided ? comm.rank_start + rank * comm.rank_stride : rank;
  }

  // NCCL's total; 0 where the sizes are unknown.
  uint64_t BytesOf(const CommNode& comm, DataType type, int32_t n_ranks) {
    const bool gathers = comm.collective == Collective::kAllGather;
    const bool by_output = gathers || comm.collective == Collective::kRecv;
    int64_t elements = by_output && comm.out_elements ? *comm.out_elements : comm.in_elements.value_or(-1);
    if (gathers && !comm.out_elements && __builtin_mul_overflow(elements, n_ranks, &elements)) elements = -1;
    if (elements >= 0) return static_cast<uint64_t>(elements) * ElementBytes(type);
    section_.Unfilled("bytes", "0");
    return 0;
  }

  Imported Finish() {
    Imported imported;
    TraceSection section = section_.Finish();
    section.rank = static_cast<int32_t>(std::clamp<int64_t>(job_rank_, -1, INT32_MAX));
    section.world = static_cast<int32_t>(largest_);
    section.process_id = process_id_;
    section.flags |= kTraceOrderOnly;
    for (const char* field : {"algorithm", "protocol", "channels", "role", "stage"})
      imported.unfilled.push_back({field, section_.calls(), "unknown"});
    imported.unfilled.push_back({"reduction operator", section_.calls(), "sum"});
    imported.unfilled.push_back({"time of issue", section_.calls(), "the place in the file, 1 ms apart"});
    imported.unfilled.push_back({"duration", section_.calls(), "none"});
    imported.unfilled.push_back({"nodes", section_.communicators(), "1"});
    for (UnfilledField& row : section_.TakeUnfilled()) imported.unfilled.push_back(std::move(row));
    for (const auto& [name, count] : skipped_)
      imported.notes.push_back(fmt::format("{} '{}' without data: left out", Counted(count, "node"), name));
    imported.notes.push_back("rank and world are those of the largest process group");
    imported.notes.push_back("one rank only: replay issues its calls on every rank");
    imported.frameworks = frameworks_.marks();
    imported.trace = TraceOfOne(std::move(section));
    return imported;
  }

  const std::string& path_;
  JsonDocument document_;
  int64_t process_id_ = 0;
  std::vector<CommNode> comms_;
  std::vector<StepNode> steps_;
  std::map<std::string, ProcessGroup> groups_;
  std::map<int64_t, size_t> addresses_;
  std::map<int64_t, std::string> name_of_address_;  // from the table of groups
  std::map<std::string, int64_t> own_ranks_;
  std::set<std::string> seen_;
  std::map<std::string, uint64_t> skipped_;
  FrameworkMarks frameworks_;
  int64_t largest_ = 0;
  int64_t job_rank_ = -1;
  int64_t now_ns_ = 0;
  RankSection section_;
};

// Recognises a trace by its keys, and by the absence of the keys of a Chrome trace.
class PyTorchEt final : public TraceImporter {
 public:
  std::string_view name() const override { return "pytorch-et"; }
  std::string_view sentence() const override {
    return "PyTorch host execution trace (JSON, as et_replay reads)";
  }
  bool Recognises(std::string_view head) const override {
    return head.find("\"schema\"") != head.npos && head.find("\"nodes\"") != head.npos &&
           head.find("\"traceEvents\"") == head.npos;
  }
  Result<Imported> Import(const std::string& path, const ImportOptions& options) const override {
    return ExecutionTrace(path, options).Import();
  }
};

}  // namespace

const TraceImporter& PyTorchEtImporter() {
  static const PyTorchEt importer;
  return importer;
}

}  // namespace dynamiccl
