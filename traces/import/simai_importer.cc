// SPDX-License-Identifier: Apache-2.0
// Workloads of ASTRA-sim 1 and SimAI as single-rank traces of one pass:
//     HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 2 pp: 1 all_gpus: 16 checkpoints: 0
//     <number of layers>
//     <name> <dependency> <ns> <collective> <bytes>  <ns> <collective> <bytes>  <ns> <collective> <bytes>
//     <ns>
// A layer has computation, collective and bytes for each of forward, input gradient and weight gradient, and
// last the time of the update. The calls of a pass are in the simulator's order: forward layer by layer, then
// backward from the last layer.
#include <algorithm>
#include <array>

#include "src/base/counted.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/rank_section.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

constexpr size_t kColumns = 12;
// Largest plausible value of a column, in nanoseconds (104 days) or bytes; larger numbers mean a damaged
// file.
constexpr uint64_t kMaxNs = uint64_t{1} << 53;

// Memory is reserved for at most this many layers before they are read, because a damaged file may state any
// number.
constexpr uint64_t kMaxReserved = uint64_t{1} << 21;

// Policies for which ASTRA-sim runs the weight gradient of a layer before its input gradient.
constexpr std::string_view kWeightGradientFirst[] = {"DATA"};
// The parallelisms that a file may begin with.
constexpr std::string_view kPolicies[] = {"DATA",
                                          "MODEL",
                                          "HYBRID_DATA_MODEL",
                                          "HYBRID_MODEL_DATA",
                                          "HYBRID_TRANSFORMER",
                                          "HYBRID_DLRM",
                                          "MICRO",
                                          "HYBRID_DLRM_ENHANCED",
                                          "HYBRID_CUSTOMIZED",
                                          "DISTRIBUTED_INFERENCE",
                                          "HYBRID_TRANSFORMER_FWD_IN_BCKWD"};

struct NamedCollective {
  std::string_view name;
  Collective collective;
};
constexpr NamedCollective kCollectives[] = {
    {"ALLREDUCE", Collective::kAllReduce},         {"ALLGATHER", Collective::kAllGather},
    {"REDUCESCATTER", Collective::kReduceScatter}, {"ALLTOALL", Collective::kAllToAll},
    {"BROADCAST", Collective::kBroadcast},
};

// One of the three parts of a layer.
struct Part {
  uint64_t compute_ns = 0;
  bool communicates = false;
  Collective collective = Collective::kAllReduce;
  std::string_view group;  // "tp", "dp", "ep", "dp_ep"
  uint64_t bytes = 0;
};

enum PartOfLayer { kForwardPart, kInputGradient, kWeightGradient, kParts };

// One layer, which is one line of the file.
struct Layer {
  std::array<Part, kParts> parts;
  uint64_t update_ns = 0;
};

// A parsed file.
struct Workload {
  std::string policy;
  std::map<std::string, uint64_t, std::less<>> sizes;  // the numbers of the header line, by their names
  std::vector<Layer> layers;
  uint64_t without_bytes = 0;  // collectives of 0 bytes, which are left out

  // A number of the header line; 0 where it is missing.
  uint64_t size(std::string_view key) const {
    const auto place = sizes.find(key);
    return place == sizes.end() ? 0 : place->second;
  }
};

// Reads the lines of a file. The first line that does not parse ends the import, and so does a number of
// layers that differs from the one stated.
class WorkloadParser {
 public:
  // Reads a whole file. It must have as many layers as its second line states.
  Result<Workload> Read(GzipStream& stream) {
    DYNAMICCL_CHECK_OK(stream.EachLine([this](std::string_view line) -> Status {
      ++line_number_;
      const auto words = Words(line);
      return words.empty() ? Status() : Take(words);
    }));
    if (lines_taken_ < 2) return Fail("the file ends before its number of layers");
    if (workload_.layers.size() != expected_layers_)
      return Fail(
          fmt::format("{} layers, and line 2 promises {}", workload_.layers.size(), expected_layers_));
    return std::move(workload_);
  }

 private:
  tl::unexpected<Error> Fail(const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "line {}: {}", line_number_, what);
  }

  Status Take(const std::vector<std::string_view>& words) {
    ++lines_taken_;
    if (lines_taken_ == 1) return TakeHeader(words);
    if (lines_taken_ > 2) return TakeLayer(words);
    const auto layers = NumberIn<uint64_t>(words[0]);
    if (!layers || words.size() != 1) return Fail(fmt::format("'{}' is not a number of layers", words[0]));
    expected_layers_ = *layers;
    workload_.layers.reserve(std::min(*layers, kMaxReserved));
    return {};
  }

  // Reads "POLICY key: number key: number ..."; pp_comm stands without a colon in some releases.
  Status TakeHeader(const std::vector<std::string_view>& words) {
    workload_.policy = words[0];
    if (std::find(std::begin(kPolicies), std::end(kPolicies), words[0]) == std::end(kPolicies))
      return Fail(fmt::format("'{}' is no parallelism of ASTRA-sim", words[0]));
    for (size_t i = 1; i + 1 < words.size(); ++i) {
      std::string_view key = words[i];
      const auto number = NumberIn<uint64_t>(words[i + 1]);
      if (!number) continue;
      if (key.ends_with(':')) key.remove_suffix(1);
      workload_.sizes.emplace(key, *number);
      ++i;
    }
    return {};
  }

  Status TakeLayer(const std::vector<std::string_view>& words) {
    if (words.size() < kColumns)
      return Fail(fmt::format("a layer of {} columns instead of {}", words.size(), kColumns));
    Layer layer;
    for (size_t part = 0; part < kParts; ++part) {
      DYNAMICCL_TRY(layer.parts[part], PartOf(words, 2 + 3 * part, part == kWeightGradient ? "dp" : "tp"));
    }
    DYNAMICCL_TRY(layer.update_ns, Number(words[kColumns - 1]));
    workload_.layers.push_back(std::move(layer));
    return {};
  }

  // Reads the three columns from `first` on. A suffix of the collective names a group other than `group`.
  Result<Part> PartOf(const std::vector<std::string_view>& words, size_t first, std::string_view group) {
    Part part;
    DYNAMICCL_TRY(part.compute_ns, Number(words[first]));
    DYNAMICCL_TRY(part.bytes, Number(words[first + 2]));
    std::string_view type = words[first + 1];
    part.group = group;
    if (type == "NONE") return part;
    if (type.ends_with("_DP_EP"))
      part.group = "dp_ep";
    else if (type.ends_with("_EP"))
      part.group = "ep";
    type = type.substr(0, type.find('_'));
    for (const NamedCollective& row : kCollectives) {
      if (row.name != type) continue;
      part.collective = row.collective;
      part.communicates = part.bytes > 0;
      workload_.without_bytes += part.communicates ? 0 : 1;
      return part;
    }
    return Fail(fmt::format("no collective '{}'", words[first + 1]));
  }

  Result<uint64_t> Number(std::string_view text) const {
    const auto number = NumberIn<uint64_t>(text);
    if (number && *number <= kMaxNs) return *number;
    return Fail(fmt::format("'{}' is not a number of nanoseconds or bytes", text));
  }

  Workload workload_;
  size_t line_number_ = 0;
  size_t lines_taken_ = 0;
  uint64_t expected_layers_ = 0;
};

// Builds the section. Only computation advances the time.
class Conversion {
 public:
  Conversion(const Workload& workload, const ImportOptions& options)
      : workload_(workload), section_("simai", kTraceMirrored, options.group_size) {}

  // Builds the section.
  Imported Run() {
    section_.section().rank = 0;
    section_.section().world =
        static_cast<int32_t>(std::min<uint64_t>(workload_.size("all_gpus"), INT32_MAX));
    section_.section().records.reserve(kParts * workload_.layers.size());
    section_.AppendStep({.marked_ns = now_ns_, .step = 0});
    for (const Layer& layer : workload_.layers) Append(layer.parts[kForwardPart], Phase::kForward);
    const bool weight_first = std::find(std::begin(kWeightGradientFirst), std::end(kWeightGradientFirst),
                                        workload_.policy) != std::end(kWeightGradientFirst);
    for (auto layer = workload_.layers.rbegin(); layer != workload_.layers.rend(); ++layer) {
      Append(layer->parts[weight_first ? kWeightGradient : kInputGradient], Phase::kBackward);
      Append(layer->parts[weight_first ? kInputGradient : kWeightGradient], Phase::kBackward);
      now_ns_ += static_cast<int64_t>(layer->update_ns);
    }
    return Finish();
  }

 private:
  // Number of ranks in a group, from the sizes of the header; 0: the header does not state it.
  uint64_t RanksOf(std::string_view group) const {
    const uint64_t tensor = workload_.size("model_parallel_NPU_group");
    const uint64_t expert = std::max<uint64_t>(workload_.size("ep"), 1);
    const uint64_t all = workload_.size("all_gpus");
    const uint64_t pipeline = std::max<uint64_t>(workload_.size("pp"), 1);
    if (group == "tp") return tensor;
    if (group == "ep") return workload_.size("ep");
    if (tensor == 0 || tensor > all || pipeline > all || all % tensor != 0 || all / tensor % pipeline != 0)
      return 0;
    const uint64_t data = all / tensor / pipeline;
    if (group == "dp") return data;
    return data % expert == 0 ? data / expert : 0;
  }

  // The communicator of a group; it has RankSection::UntoldSize where the header states no size.
  uint32_t GroupOf(std::string_view group) {
    if (const auto known = section_.Known(group)) return *known;
    const uint64_t ranks = RanksOf(group);
    const bool told = ranks > 0 && ranks <= UINT16_MAX;
    if (!told) section_.CountUntoldSize();
    section_.Unfilled("nodes", "1");
    const uint64_t id = IdOfName(fmt::format("simai {}", group));
    const int32_t n_ranks = told ? static_cast<int32_t>(ranks) : section_.UntoldSize();
    return section_.Communicator(group, {id, 0, n_ranks, 1}, now_ns_);
  }

  // Advances the time by the part's computation, then issues its collective.
  void Append(const Part& part, Phase phase) {
    now_ns_ += static_cast<int64_t>(part.compute_ns);
    if (!part.communicates) return;
    ImportedCall call;
    call.issued.issued_ns = now_ns_;
    call.issued.labelled_phase = phase;
    CollectiveCall& shape = call.issued.call;
    shape.collective = part.collective;
    shape.bytes = part.bytes;
    shape.data_type = UntoldType(part.bytes);
    if (part.collective == Collective::kBroadcast) {
      call.issued.root_or_peer = 0;
      section_.Unfilled("root", "0");
    }
    section_.Append(GroupOf(part.group), call);
  }

  Imported Finish() {
    const uint64_t calls = section_.calls();
    for (const char* field : {"algorithm", "protocol", "channels", "role", "stage"})
      section_.Unfilled(field, "unknown", calls);
    section_.Unfilled("duration", "none", calls);
    section_.Unfilled("reduction operator", "sum", calls);
    section_.Unfilled("data type", kUntoldTypeText, calls);
    section_.Unfilled("issue time", "the computation before it, as if transfers took no time", calls);
    Imported imported;
    imported.unfilled = section_.TakeUnfilled();
    if (workload_.size("checkpoints") > 0)
      imported.notes.push_back("the forward pass that is repeated between checkpoints: left out");
    if (workload_.without_bytes > 0)
      imported.notes.push_back(
          fmt::format("{} of 0 bytes: left out", Counted(workload_.without_bytes, "collective")));
    imported.trace = TraceOfOne(section_.Finish());
    return imported;
  }

  const Workload& workload_;
  RankSection section_;
  int64_t now_ns_ = 1;
};

// Recognises a workload by its first word.
class SimAi final : public TraceImporter {
 public:
  std::string_view name() const override { return "simai"; }
  std::string_view sentence() const override {
    return "workload of ASTRA-sim 1 or SimAI (text), without durations, data type, algorithm and protocol";
  }
  bool Recognises(std::string_view head) const override {
    const auto words = Words(head.substr(0, head.find('\n')));
    return !words.empty() &&
           std::find(std::begin(kPolicies), std::end(kPolicies), words[0]) != std::end(kPolicies);
  }
  Result<Imported> Import(const std::string& path, const ImportOptions& options) const override {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
    const auto workload = WorkloadParser().Read(stream);
    DYNAMICCL_CHECK_OK(stream.status());
    if (!workload) return Wrap(workload.error(), path);
    Imported imported = Conversion(*workload, options).Run();
    if (stream.ended_in_line()) imported.notes.emplace_back(kLastLineOpen);
    if (imported.trace->sections[0].records.size() > 1) return imported;
    return MakeError(ErrorKind::kInvalidArgument, "{}: no layer communicates", path);
  }
};

}  // namespace

const TraceImporter& SimAiImporter() {
  static const SimAi importer;
  return importer;
}

}  // namespace dynamiccl
