// SPDX-License-Identifier: Apache-2.0
// Order of the lines: machines, releases, communicators, choices, costs. Lines of the last three kinds have a
// list "of" of the releases (and collectives) that share the line. Most releases make the same choices, so
// this keeps the file small. A reader refuses a line that refers to something not defined by an earlier line.
#include "traces/format/nccl_choices_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <unordered_map>

#include "src/collective/legal_configs.h"
#include "traces/format/json_lines.h"

namespace dynamiccl {
namespace {

constexpr const char* kMagic = "dynamiccl-nccl-choices";
constexpr int kVersion = 1;
// Maximum number of threads of a channel: a CUDA block has no more.
constexpr int kMaxThreads = 1024;

// ---- writing ----

// The value nearest to `value` that has six digits, so that equal costs have equal texts.
double SixDigits(double value) {
  return std::stod(fmt::format("{:.6g}", value));
}

// A graph is an array of eight fields, in the order of GraphFromJson.
Json GraphToJson(const NcclGraph& graph) {
  return Json::array({graph.pattern, graph.channels, graph.intra_gbps, graph.inter_gbps, graph.latency_us,
                      graph.intra_type, graph.inter_type, graph.same_channels});
}

// A world is [machine, nodes, ranks per node].
Json WorldToJson(const NcclWorld& world) {
  return Json::array({world.machine, world.nodes, world.ranks_per_node});
}

Json CommunicatorToJson(const NcclCommunicator& communicator) {
  Json graphs = Json::object();
  for (const auto& [algorithm, graph] : communicator.graphs)
    graphs[std::string(Name(algorithm))] = GraphToJson(graph);
  return {{"kind", "communicator"},
          {"channels", communicator.channels},
          {"nvls_channels", communicator.nvls_channels},
          {"graphs", graphs}};
}

// Names a pair: "Ring/LL128".
std::string PairName(NcclPair pair) {
  return fmt::format("{}/{}", Name(pair.first), Name(pair.second));
}

Json PairsToJson(const std::vector<NcclPair>& pairs) {
  Json names = Json::array();
  for (const NcclPair& pair : pairs) names.push_back(PairName(pair));
  return names;
}

// Writes rows of [bytes, index into "pairs", channels, threads].
Json ChoicesToJson(const NcclCalls& calls) {
  std::vector<NcclPair> pairs;
  Json rows = Json::array();
  for (const NcclCall& call : calls.calls) {
    const NcclPair pair{call.choice.algorithm, call.choice.protocol};
    const auto index = std::find(pairs.begin(), pairs.end(), pair) - pairs.begin();
    if (static_cast<size_t>(index) == pairs.size()) pairs.push_back(pair);
    rows.push_back(Json::array({call.bytes, index, call.choice.channels, call.threads}));
  }
  return {{"kind", "choices"}, {"pairs", PairsToJson(pairs)}, {"rows", rows}};
}

// Writes rows of microseconds in the order of "pairs"; null where a pair has no cost.
Json CostsToJson(const NcclCalls& calls) {
  Json rows = Json::array();
  for (const NcclCall& call : calls.calls) {
    Json row = Json::array();
    for (const float cost : call.microseconds)
      row.push_back(std::isnan(cost) ? Json() : Json(SixDigits(cost)));
    rows.push_back(row);
  }
  return {{"kind", "costs"}, {"pairs", PairsToJson(calls.pairs)}, {"rows", rows}};
}

// Collects lines and merges those that differ only in release and collective. A merged line stands where the
// first of them was added.
class SharedLines {
 public:
  // `whose` is a release, or a release and a collective.
  void Add(const NcclWorld& world, Json json, Json whose) {
    json["world"] = WorldToJson(world);
    const auto [place, fresh] = places_.insert({json.dump(), lines_.size()});
    if (fresh) lines_.emplace_back(std::move(json), Json::array());
    lines_[place->second].second.push_back(std::move(whose));
  }

  // Writes the lines, each with its owners as the list "of".
  Status AppendTo(std::string& text) {
    for (auto& [line, owners] : lines_) {
      line["of"] = owners;
      DYNAMICCL_CHECK_OK(AppendJsonLine(text, line));
    }
    return {};
  }

  size_t size() const { return lines_.size(); }

 private:
  std::vector<std::pair<Json, Json>> lines_;  // each line, and the list of the owners that share it
  std::unordered_map<std::string, size_t> places_;
};

// Writes the header line, the machines and the releases.
Status AppendHead(std::string& text, const NcclChoices& choices) {
  DYNAMICCL_CHECK_OK(AppendJsonLine(text, {{"magic", kMagic}, {"version", kVersion}}));
  for (const auto& [name, machine] : choices.machines) {
    DYNAMICCL_CHECK_OK(AppendJsonLine(text, {{"kind", "machine"},
                                             {"machine", name},
                                             {"description", machine.description},
                                             {"architecture", machine.architecture},
                                             {"cpu_vendor", machine.cpu_vendor}}));
  }
  for (const std::string& name : ReleasesInOrder(choices)) {
    DYNAMICCL_CHECK_OK(AppendJsonLine(
        text, {{"kind", "release"}, {"release", name}, {"constants", choices.releases.at(name).constants}}));
  }
  return {};
}

// The shared lines, in the order in which a reader needs them.
struct Body {
  SharedLines communicators;
  SharedLines choices;
  SharedLines costs;
};

// Adds the lines of one release's communicator.
void AddWorld(const std::string& release, const NcclWorld& world, const NcclCommunicator& communicator,
              Body* body) {
  body->communicators.Add(world, CommunicatorToJson(communicator), release);
  for (int c = 0; c < kTunableCollectives; ++c) {
    const NcclCalls& calls = communicator.collectives[static_cast<size_t>(c)];
    const Json whose = Json::array({release, Name(static_cast<Collective>(c))});
    if (!calls.calls.empty()) body->choices.Add(world, ChoicesToJson(calls), whose);
    if (!calls.pairs.empty()) body->costs.Add(world, CostsToJson(calls), whose);
  }
}

// ---- reading ----

// Reads an element of an array as an integer within bounds.
int IntegerAt(const Json& array, size_t index, int64_t minimum, int64_t maximum) {
  return static_cast<int>(IntegerField({{"value", array.at(index)}}, "value", minimum, maximum));
}

NcclGraph GraphFromJson(const Json& json) {
  if (json.size() != 8) throw LineError{fmt::format("a graph has {} fields, not 8", json.size())};
  return {.pattern = IntegerAt(json, 0, 0, 100),
          .channels = IntegerAt(json, 1, 0, kMaxNcclChannels),
          .intra_gbps = json[2].get<double>(),
          .inter_gbps = json[3].get<double>(),
          .latency_us = json[4].get<double>(),
          .intra_type = json[5].get<std::string>(),
          .inter_type = json[6].get<std::string>(),
          .same_channels = json[7].get<bool>()};
}

Algorithm AlgorithmNamed(const std::string& name) {
  const auto algorithm = ParseAlgorithm(name);
  if (!algorithm) throw LineError{fmt::format("'{}' is no algorithm", name)};
  return *algorithm;
}

NcclPair PairNamed(const std::string& name) {
  const auto config = ParseConfig(name);
  if (!config) throw LineError{fmt::format("'{}' is no pair of an algorithm and a protocol", name)};
  return {config->algorithm, config->protocol};
}

// Reads microseconds. null becomes NaN, which means that there is no cost.
float CostFromJson(const Json& json) {
  if (json.is_null()) return std::numeric_limits<float>::quiet_NaN();
  const auto cost = json.get<double>();
  if (!(cost >= 0)) throw LineError{"a cost is no duration"};
  return static_cast<float>(cost);
}

std::vector<NcclPair> PairsOf(const Json& json) {
  std::vector<NcclPair> pairs;
  for (const Json& name : json.at("pairs")) pairs.push_back(PairNamed(name.get<std::string>()));
  return pairs;
}

// Reads [bytes, index into "pairs", channels, threads].
NcclCall CallFromJson(const Json& row, const std::vector<NcclPair>& pairs) {
  if (row.size() != 4) throw LineError{fmt::format("a choice has {} fields, not 4", row.size())};
  NcclCall call;
  call.bytes = UnsignedField({{"bytes", row[0]}}, "bytes");
  const auto index = static_cast<size_t>(IntegerAt(row, 1, 0, static_cast<int64_t>(pairs.size()) - 1));
  call.choice = {pairs[index].first, pairs[index].second,
                 static_cast<uint8_t>(IntegerAt(row, 2, 0, kMaxNcclChannels))};
  call.threads = IntegerAt(row, 3, 0, kMaxThreads);
  return call;
}

// Reads the choices of one collective. Sizes must ascend strictly.
std::vector<NcclCall> ChoicesFromJson(const Json& json) {
  const std::vector<NcclPair> pairs = PairsOf(json);
  std::vector<NcclCall> calls;
  for (const Json& row : json.at("rows")) {
    const NcclCall call = CallFromJson(row, pairs);
    if (!calls.empty() && call.bytes <= calls.back().bytes)
      throw LineError{"choices are not in the order of their bytes"};
    calls.push_back(call);
  }
  return calls;
}

// Reads the costs of all sizes, in the order of their choices.
void TakeCosts(const Json& json, NcclCalls* calls) {
  calls->pairs = PairsOf(json);
  const Json& rows = json.at("rows");
  if (rows.size() != calls->calls.size())
    throw LineError{fmt::format("costs of {} sizes, of {} choices", rows.size(), calls->calls.size())};
  for (size_t index = 0; index < rows.size(); ++index) {
    if (rows[index].size() != calls->pairs.size())
      throw LineError{fmt::format("{} costs of {} pairs", rows[index].size(), calls->pairs.size())};
    for (const Json& cost : rows[index]) calls->calls[index].microseconds.push_back(CostFromJson(cost));
  }
}

// Reads a communicator. One with a graph for NVLS must also have channels for NVLS.
NcclCommunicator CommunicatorFromJson(const Json& json) {
  NcclCommunicator communicator;
  communicator.channels = static_cast<int>(IntegerField(json, "channels", 1, kMaxNcclChannels));
  communicator.nvls_channels = static_cast<int>(IntegerField(json, "nvls_channels", 0, kMaxNcclChannels));
  for (const auto& [name, graph] : json.at("graphs").items())
    communicator.graphs[AlgorithmNamed(name)] = GraphFromJson(graph);
  if (communicator.graphs.contains(Algorithm::kNvls) && communicator.nvls_channels == 0)
    throw LineError{"a graph for NVLS without channels"};
  return communicator;
}

// Reads line by line. Everything that a line refers to must have come before it. ReadJsonLines drives it and
// turns a LineError into an error with the line's number.
class Parser {
 public:
  void ReadHeader(const Json& json) { CheckMagic(json, kMagic, kVersion, "file of NCCL's choices"); }

  void ReadLine(const Json& json) {
    const auto kind = json.at("kind").get<std::string>();
    if (kind == "machine") return ReadMachine(json);
    if (kind == "release") return ReadRelease(json);
    ++shared_;
    if (kind == "communicator") return ReadCommunicator(json);
    if (kind == "choices") return ReadChoices(json);
    if (kind == "costs") return ReadCosts(json);
    throw LineError{fmt::format("unknown kind '{}'", kind)};
  }

  NcclChoices& choices() { return choices_; }
  size_t shared() const { return shared_; }

 private:
  void ReadMachine(const Json& json) {
    const auto name = json.at("machine").get<std::string>();
    const bool fresh =
        choices_.machines
            .insert({name,
                     {.description = json.at("description").get<std::string>(),
                      .architecture = static_cast<int>(IntegerField(json, "architecture", 0, 999)),
                      .cpu_vendor = json.at("cpu_vendor").get<std::string>()}})
            .second;
    if (!fresh) throw LineError{fmt::format("a second machine '{}'", name)};
  }

  void ReadRelease(const Json& json) {
    const auto name = json.at("release").get<std::string>();
    const auto [place, fresh] = choices_.releases.insert({name, {}});
    if (!fresh) throw LineError{fmt::format("a second release '{}'", name)};
    place->second.constants = json.at("constants").get<std::vector<double>>();
  }

  // The world of a line; an earlier line must define its machine.
  NcclWorld WorldOf(const Json& json) const {
    const Json& world = json.at("world");
    if (world.size() != 3) throw LineError{"'world' is not [machine, nodes, ranks per node]"};
    NcclWorld read{world[0].get<std::string>(), IntegerAt(world, 1, 1, 1 << 20),
                   IntegerAt(world, 2, 1, 1024)};
    if (!choices_.machines.contains(read.machine))
      throw LineError{fmt::format("a world of the machine '{}', which has no line", read.machine)};
    return read;
  }

  // Returns the release with this name, which an earlier line must define.
  NcclReleaseChoices& ReleaseNamed(const Json& name) {
    const auto found = choices_.releases.find(name.get<std::string>());
    if (found == choices_.releases.end())
      throw LineError{fmt::format("{} is no release with a line of its own", name.dump())};
    return found->second;
  }

  void ReadCommunicator(const Json& json) {
    const NcclCommunicator communicator = CommunicatorFromJson(json);
    const NcclWorld world = WorldOf(json);
    for (const Json& name : json.at("of")) {
      if (!ReleaseNamed(name).worlds.insert({world, communicator}).second)
        throw LineError{fmt::format("a second communicator of {}", world.text())};
    }
  }

  // The calls that a line's owner refers to; `owner` is [release, collective].
  NcclCalls& CallsOf(const NcclWorld& world, const Json& owner) {
    const auto collective = ParseCollective(owner.at(1).get<std::string>());
    if (!collective || static_cast<int>(*collective) >= kTunableCollectives)
      throw LineError{fmt::format("{} is no collective that has a choice", owner[1].dump())};
    auto& worlds = ReleaseNamed(owner.at(0)).worlds;
    const auto found = worlds.find(world);
    if (found == worlds.end()) throw LineError{"calls before their communicator"};
    return found->second.collectives[static_cast<size_t>(*collective)];
  }

  void ReadChoices(const Json& json) {
    const NcclWorld world = WorldOf(json);
    const std::vector<NcclCall> choices = ChoicesFromJson(json);
    for (const Json& owner : json.at("of")) {
      NcclCalls& calls = CallsOf(world, owner);
      if (!calls.calls.empty()) throw LineError{"the same choices a second time"};
      calls.calls = choices;
    }
  }

  void ReadCosts(const Json& json) {
    const NcclWorld world = WorldOf(json);
    for (const Json& owner : json.at("of")) {
      NcclCalls& calls = CallsOf(world, owner);
      if (!calls.pairs.empty()) throw LineError{"the same costs a second time"};
      TakeCosts(json, &calls);
    }
  }

  NcclChoices choices_;
  size_t shared_ = 0;
};

}  // namespace

Result<std::string> FormatNcclChoices(const NcclChoices& choices) {
  std::string text;
  DYNAMICCL_CHECK_OK(AppendHead(text, choices));
  Body body;
  for (const std::string& release : ReleasesInOrder(choices)) {
    for (const auto& [world, communicator] : choices.releases.at(release).worlds)
      AddWorld(release, world, communicator, &body);
  }
  size_t count = 0;
  for (SharedLines* lines : {&body.communicators, &body.choices, &body.costs}) {
    DYNAMICCL_CHECK_OK(lines->AppendTo(text));
    count += lines->size();
  }
  DYNAMICCL_CHECK_OK(AppendEndLine(text, "lines", count));
  return text;
}

Status WriteNcclChoices(const std::string& path, const NcclChoices& choices) {
  DYNAMICCL_TRY(const std::string text, FormatNcclChoices(choices));
  DYNAMICCL_CHECK_OK(WriteWholeFile(path + ".draft", text));
  if (std::rename((path + ".draft").c_str(), path.c_str()) != 0)
    return MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", path, ErrnoText(errno));
  return {};
}

Result<NcclChoices> ParseNcclChoices(std::string_view text, const std::string& name) {
  Parser parser;
  DYNAMICCL_CHECK_OK(ReadJsonLines(text, name,
                                   {.header = [&](const Json& json) { parser.ReadHeader(json); },
                                    .line = [&](const Json& json) { parser.ReadLine(json); },
                                    .counted = "lines",
                                    .count = [&] { return parser.shared(); }}));
  return std::move(parser.choices());
}

Result<NcclChoices> ReadNcclChoices(const std::string& path) {
  DYNAMICCL_TRY(const std::string text, ReadWholeFile(path));
  return ParseNcclChoices(text, path);
}

}  // namespace dynamiccl
