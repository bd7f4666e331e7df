// SPDX-License-Identifier: Apache-2.0
// Rules in TOML. They can express everything that the CSV can, and also name chunk sizes and bounds on a
// communicator's channels. Example:
//     version = 2
//     [[rule]]
//     collective = "allreduce"
//     max_bytes = "64K"
//     phase = "backward"
//     config = "tree/ll/2"
//     [[communicator]]
//     ranks = 8
//     max_ctas = 16
// Unknown keys are errors, which give line and column.
#include "src/base/toml_reader.h"
#include "src/collective/legal_configs.h"
#include "src/collective/size_class.h"
#include "src/decision/override_rules.h"

namespace dynamiccl {
namespace {

// A chunk size must be a multiple of kChunkStep bytes and at least kLeastChunk, or kLeastLl128Chunk with
// LL128. NCCL rounds a chunk down to whole grains of its protocol (calcCollChunking in enqueue.cc). A chunk
// smaller than a grain would become 0 bytes, and NCCL's kernels would then never end. Grains in bytes
// (ncclProtoGrainSize in device.h): Simple 512, LL 16, LL128 1920.
constexpr uint64_t kChunkStep = 512;
constexpr uint64_t kLeastChunk = 512;
constexpr uint64_t kLeastLl128Chunk = 2048;
// The most bytes of a chunk. NCCL limits a chunk to a part of its buffer, 4 MiB by default, and holds its
// size in an int.
constexpr uint64_t kMaxChunk = uint64_t{1} << 30;

// NCCL's MAXCHANNELS since 2.25 (32 before); NCCL limits larger bounds to it.
constexpr int kMaxCtas = 64;

// The version in which a condition was added, for conditions that are younger than the format.
struct YoungCondition {
  const char* key;
  int64_t version;
};
constexpr YoungCondition kYoungConditions[] = {{"phase", 2}, {"stage", 2}, {"memory", 3}};
constexpr int64_t kLatestVersion = 3;

// Reads the whole file; TomlReader makes errors with line and column.
class RulesReader : private TomlReader {
 public:
  using TomlReader::TomlReader;

  Result<ParsedRules> Read(const toml::table& root) {
    DYNAMICCL_CHECK_OK(OnlyKeys(root, {"version", "rule", "communicator"}));
    DYNAMICCL_TRY(version_, Integer(root, "version", 1, kLatestVersion));
    ParsedRules rules;
    DYNAMICCL_CHECK_OK(
        ForEachTable(root, "rule", [&](const toml::table& table) { return ReadRule(table, rules.calls); }));
    DYNAMICCL_CHECK_OK(ForEachTable(root, "communicator", [&](const toml::table& table) {
      return ReadCommunicator(table, rules.communicators);
    }));
    return rules;
  }

 private:
  Status ReadRule(const toml::table& table, std::vector<OverrideRule>& rules) const {
    DYNAMICCL_CHECK_OK(OnlyKeys(table, {"collective", "min_bytes", "max_bytes", "nodes", "ranks", "pipe_ops",
                                        "role", "phase", "stage", "memory", "config", "chunk_bytes"}));
    DYNAMICCL_CHECK_OK(CheckVersion(table));
    OverrideRule rule;
    rule.line = static_cast<int>(table.source().begin.line);
    DYNAMICCL_TRY(rule.collective, ReadCollective(table));
    DYNAMICCL_TRY(rule.min_bytes, ReadBytes(table, "min_bytes", 0));
    DYNAMICCL_TRY(rule.max_bytes, ReadBytes(table, "max_bytes", UINT64_MAX));
    if (rule.max_bytes < rule.min_bytes)
      return Complain(table.get("max_bytes")->source().begin, "'max_bytes' is smaller than 'min_bytes'");
    DYNAMICCL_TRY(rule.n_nodes, Condition(table, "nodes"));
    DYNAMICCL_TRY(rule.n_ranks, Condition(table, "ranks"));
    DYNAMICCL_TRY(rule.n_pipe_ops, Condition(table, "pipe_ops"));
    DYNAMICCL_TRY(rule.role, ReadRole(table));
    DYNAMICCL_TRY(rule.phase, ReadPhase(table));
    DYNAMICCL_TRY(rule.stage, ReadStage(table));
    DYNAMICCL_TRY(rule.memory, ReadMemory(table));
    DYNAMICCL_TRY(rule.config, ReadConfig(table));
    DYNAMICCL_TRY(rule.chunk_bytes, ReadChunkBytes(table, rule.config));
    rules.push_back(rule);
    return {};
  }

  Status ReadCommunicator(const toml::table& table, std::vector<CommunicatorRule>& rules) const {
    DYNAMICCL_CHECK_OK(OnlyKeys(table, {"nodes", "ranks", "min_ctas", "max_ctas"}));
    CommunicatorRule rule;
    rule.line = static_cast<int>(table.source().begin.line);
    DYNAMICCL_TRY(rule.n_nodes, Condition(table, "nodes"));
    DYNAMICCL_TRY(rule.n_ranks, Condition(table, "ranks"));
    DYNAMICCL_TRY(rule.ctas.least, OptionalInteger(table, "min_ctas", 1, kMaxCtas, 0));
    DYNAMICCL_TRY(rule.ctas.most, OptionalInteger(table, "max_ctas", 1, kMaxCtas, 0));
    if (rule.ctas.most != 0 && rule.ctas.most < rule.ctas.least)
      return Complain(table.get("max_ctas")->source().begin, "'max_ctas' is smaller than 'min_ctas'");
    rules.push_back(rule);
    return {};
  }

  Result<Collective> ReadCollective(const toml::table& table) const {
    DYNAMICCL_TRY(const std::string text, Text(table, "collective"));
    const auto collective = ParseCollective(text);
    if (collective && static_cast<int>(*collective) < kTunableCollectives) return *collective;
    return Complain(
        table.get("collective")->source().begin,
        fmt::format("'{}' is not one of broadcast, reduce, allgather, reducescatter, allreduce", text));
  }

  // Reads a number of bytes, or a text such as "64K".
  Result<uint64_t> ReadBytes(const toml::table& table, std::string_view key, uint64_t fallback) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return fallback;
    const auto number = node->value_exact<int64_t>();
    if (number && *number >= 0) return static_cast<uint64_t>(*number);
    const auto text = node->value_exact<std::string>();
    const auto bytes =
        text ? ParseBytes(*text) : Result<uint64_t>(MakeError(ErrorKind::kInvalidArgument, ""));
    if (bytes) return *bytes;
    return Complain(node->source().begin,
                    fmt::format("'{}' must be a number of bytes such as 65536 or \"64K\"", key));
  }

  // Reads the chunk size, which is only allowed with a config; 0 if there is none.
  Result<uint64_t> ReadChunkBytes(const toml::table& table, const CollectiveConfig& config) const {
    if (!table.contains("chunk_bytes")) return 0;
    const toml::source_position place = table.get("chunk_bytes")->source().begin;
    DYNAMICCL_TRY(const uint64_t bytes, ReadBytes(table, "chunk_bytes", 0));
    if (config.leaves_nccl_alone())
      return Complain(place, "'chunk_bytes' needs a 'config' with an algorithm and a protocol");
    const uint64_t least = config.protocol == Protocol::kLL128 ? kLeastLl128Chunk : kLeastChunk;
    if (bytes >= least && bytes <= kMaxChunk && bytes % kChunkStep == 0) return bytes;
    return Complain(
        place, fmt::format("'chunk_bytes' is {}: it must be a multiple of {} from {} to {} for {}", bytes,
                           kChunkStep, least, kMaxChunk, Name(config.protocol)));
  }

  // Reads a condition that is a number. Returns an empty optional if the key is missing.
  Result<std::optional<int>> Condition(const toml::table& table, std::string_view key) const {
    if (!table.contains(key)) return std::optional<int>{};
    DYNAMICCL_TRY(const int64_t value, Integer(table, key, 1, INT32_MAX));
    return std::optional(static_cast<int>(value));
  }

  Result<std::optional<Role>> ReadRole(const toml::table& table) const {
    if (!table.contains("role")) return std::optional<Role>{};
    DYNAMICCL_TRY(const std::string text, Text(table, "role"));
    if (const auto role = ParseRole(text)) return std::optional(*role);
    return Complain(table.get("role")->source().begin,
                    fmt::format("'{}' is not one of {}", text, NamesOfRoles()));
  }

  Result<std::optional<Phase>> ReadPhase(const toml::table& table) const {
    if (!table.contains("phase")) return std::optional<Phase>{};
    DYNAMICCL_TRY(const std::string text, Text(table, "phase"));
    if (const auto phase = ParsePhase(text)) return phase;
    return Complain(table.get("phase")->source().begin,
                    fmt::format("'{}' is not one of unknown, forward, backward, optimizer, other", text));
  }

  // Reads a stage as a number, or "unknown".
  Result<std::optional<ZeroStage>> ReadStage(const toml::table& table) const {
    const toml::node* const node = table.get("stage");
    if (node == nullptr) return std::optional<ZeroStage>{};
    const auto number = node->value_exact<int64_t>();
    const std::string text = number ? std::to_string(*number) : node->value_exact<std::string>().value_or("");
    if (const auto stage = ParseStage(text)) return stage;
    return Complain(node->source().begin, "'stage' is not one of 0, 1, 2, 3, \"unknown\"");
  }

  Result<std::optional<MemoryPressure>> ReadMemory(const toml::table& table) const {
    if (!table.contains("memory")) return std::optional<MemoryPressure>{};
    DYNAMICCL_TRY(const std::string text, Text(table, "memory"));
    if (const auto memory = ParseMemoryPressure(text)) return memory;
    return Complain(table.get("memory")->source().begin,
                    fmt::format("'{}' is not one of low, medium, high, unknown", text));
  }

  // A file cannot name conditions that are younger than its version.
  Status CheckVersion(const toml::table& table) const {
    for (const auto& [key, version] : kYoungConditions) {
      if (version_ < version && table.contains(key))
        return Complain(table.get(key)->source().begin,
                        fmt::format("'{}' needs \"version = {}\" at the top of the file", key, version));
    }
    return {};
  }

  // Reads "nccl", "ring/ll128" or "ring/ll128/4".
  Result<CollectiveConfig> ReadConfig(const toml::table& table) const {
    DYNAMICCL_TRY(const std::string text, Text(table, "config"));
    if (text == "nccl") return kLeaveNcclAlone;
    if (const auto config = ParseConfig(text)) return *config;
    return Complain(
        table.get("config")->source().begin,
        fmt::format("'{}' is no configuration such as \"ring/ll128/4\", \"tree/ll\" or \"nccl\"", text));
  }

  int64_t version_ = 1;
};

}  // namespace

Result<ParsedRules> ParseTomlRules(std::string_view text, const std::string& name) {
  DYNAMICCL_TRY(const toml::table root, ParseToml(text, name));
  return RulesReader(name).Read(root);
}

}  // namespace dynamiccl
