// SPDX-License-Identifier: Apache-2.0
// Comparisons of settings by the steps of a job, as effects on steps: what `dynamiccl ab --json` wrote, or
// benchmarks/step_map.py, whose file has two such comparisons for each preset and workload. Both files say
// little about the job: the size of calls, and how slow they are, remain unknown. In a step map the workload
// says which role and phase the calls of a collective have.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "src/base/counted.h"
#include "src/collective/legal_configs.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

using Json = nlohmann::json;

// Half-width of a 95 % interval in standard errors, and the least standard error of an effect; both as in `ab
// --effects`.
constexpr double kErrorsOfInterval = 1.96;
constexpr double kLeastError = 0.001;
// Ranks of a job that the file does not state, and channels of its communicators (hostccl's default).
constexpr int kUsualRanks = 2;
constexpr int kUsualChannels = 8;

// Role and phase of the calls of one collective in a workload of a step map.
struct Purpose {
  Role role = Role::kUnknown;
  Phase phase = Phase::kUnknown;
};

// Gathers of stage 3 and FSDP2 belong to both the forward and the backward phase. Stages 1 and 2 gather after
// the optimizer's step. Everything that is reduced is gradients.
Purpose PurposeOf(const std::string& workload, Collective collective) {
  if (workload.empty()) return {};
  if (collective != Collective::kAllGather) return {Role::kGradientReduce, Phase::kBackward};
  if (workload == "1" || workload == "2") return {Role::kPostStepGather, Phase::kOptimizer};
  return {Role::kParameterGather, Phase::kUnknown};
}

// A job whose settings were compared.
struct Job {
  std::string topology;
  std::string workload;  // of a step map; empty: unknown
  int turn_steps = 3;
  int n_ranks = 0;  // 0: the file does not state it
};

constexpr uint8_t MaskOf(Collective collective) {
  return static_cast<uint8_t>(1u << static_cast<unsigned>(collective));
}

// The collectives that a workload of a step map calls; 0: unknown.
uint8_t CollectivesOf(const std::string& workload) {
  if (workload.empty()) return 0;
  if (workload == "0" || workload == "ddp") return MaskOf(Collective::kAllReduce);
  if (workload == "1") return MaskOf(Collective::kAllReduce) | MaskOf(Collective::kAllGather);
  return MaskOf(Collective::kReduceScatter) | MaskOf(Collective::kAllGather);
}

// Sets the calls that use the config of a setting, which is "allgather=ring/simple/1" or, for all
// collectives, "ring/simple/1". Returns the config's text, or nothing if the calls are not known.
std::optional<std::string> SetCalls(const std::string& setting, const Job& job, MeasuredEffect& effect) {
  const size_t sign = setting.find('=');
  effect.collectives = CollectivesOf(job.workload);
  if (sign == std::string::npos)
    return effect.collectives == 0 ? std::nullopt : std::optional<std::string>(setting);
  const auto collective = ParseCollective(setting.substr(0, sign));
  if (!collective || static_cast<int>(*collective) >= kTunableCollectives) return std::nullopt;
  effect.collectives = MaskOf(*collective);
  const Purpose purpose = PurposeOf(job.workload, *collective);
  effect.role = purpose.role;
  effect.phase = purpose.phase;
  return setting.substr(sign + 1);
}

// Returns the effect of a setting, with its subject but without its times. Returns nothing if the setting has
// several configs or is a file of rules.
std::optional<MeasuredEffect> SubjectOf(const std::string& setting, const Job& job) {
  if (setting.find(',') != std::string::npos) return std::nullopt;
  MeasuredEffect effect;
  effect.topology = job.topology;
  const auto text = SetCalls(setting, job, effect);
  const auto config = text ? ParseConfig(*text) : std::nullopt;
  if (!config || config->leaves_nccl_alone()) return std::nullopt;
  effect.config = *config;
  effect.channel_count =
      ChannelCountOf(config->channels == 0 ? kUsualChannels : config->channels, kUsualChannels);
  return effect;
}

// Builds the measurement file from one comparison after the other.
class EffectsOfComparisons {
 public:
  void Add(const Json& comparison, Job job) {
    job.turn_steps = comparison.at("turn_steps").get<int>();
    for (const Json& setting : comparison.at("settings")) {
      // The first setting is the one that the others are compared with.
      if (&setting == &comparison.at("settings").front()) continue;
      auto effect = SubjectOf(setting.at("name").get<std::string>(), job);
      if (!effect || !SetTimes(setting, job.turn_steps, *effect)) {
        ++left_out_;
        continue;
      }
      AddContext(job);
      without_ranks_ += job.n_ranks == 0;
      file_.effects.push_back(*std::move(effect));
    }
  }

  Imported Finish() {
    Imported imported;
    const uint64_t effects = file_.effects.size();
    imported.unfilled = {
        {"fabric", effects, "zeros"}, {"bytes", effects, "0"}, {"slowness and share", effects, "null"}};
    if (without_ranks_ > 0)
      imported.unfilled.push_back({"ranks", without_ranks_, fmt::format("{}", kUsualRanks)});
    if (left_out_ > 0)
      imported.notes.push_back(
          fmt::format("{} left out: not of one collective and config, or in too few rounds",
                      Counted(left_out_, "setting")));
    imported.measurements = std::move(file_);
    return imported;
  }

  bool empty() const { return file_.effects.empty(); }

 private:
  static bool SetTimes(const Json& setting, int turn_steps, MeasuredEffect& effect) {
    if (setting.at("low").is_null() || setting.at("high").is_null()) return false;
    const double low = setting.at("low").get<double>(), high = setting.at("high").get<double>();
    const double ratio = setting.at("ratio").get<double>();
    if (!(low > 0 && high >= low && ratio > 0)) return false;
    effect.log_ratio = std::log(ratio);
    effect.error = std::max(kLeastError, (std::log(high) - std::log(low)) / (2 * kErrorsOfInterval));
    effect.steps = setting.at("turns").get<uint32_t>() * static_cast<uint32_t>(std::max(1, turn_steps - 1));
    return effect.steps > 0;
  }

  void AddContext(const Job& job) {
    if (!topologies_.insert(job.topology).second) return;
    file_.contexts.push_back({job.topology, {}});
    file_.contexts.back().model.fabric.n_ranks = job.n_ranks > 0 ? job.n_ranks : kUsualRanks;
    file_.contexts.back().model.fabric.max_channels = kUsualChannels;
  }

  MeasurementFile file_;
  std::set<std::string> topologies_;
  uint64_t left_out_ = 0;
  uint64_t without_ranks_ = 0;
};

// Adds all comparisons of the file. Throws nlohmann's exceptions where it has another form.
void AddAll(const Json& json, EffectsOfComparisons& effects) {
  if (!json.contains("cells")) return effects.Add(json, {.topology = "unnamed"});
  for (const Json& cell : json.at("cells")) {
    const auto name = cell.at("cell").get<std::string>();
    const size_t slash = name.find('/');
    const Job job{.topology = name.substr(0, slash),
                  .workload = slash == name.npos ? "" : name.substr(slash + 1),
                  .n_ranks = cell.value("ranks", 0)};
    for (const char* part : {"single", "final"}) effects.Add(cell.at(part), job);
  }
}

// Recognises a file by keys that only these comparisons have.
class TurnComparisonFile final : public TraceImporter {
 public:
  std::string_view name() const override { return "ab"; }
  std::string_view sentence() const override {
    return "comparison of settings by steps (JSON of `dynamiccl ab`, or of benchmarks/step_map.py), as "
           "effects "
           "on steps without fabric";
  }
  bool Recognises(std::string_view head) const override {
    const auto has = [&](std::string_view key) { return head.find(key) != head.npos; };
    return head.starts_with('{') && has("\"calls_of_step\"") && has("\"steady_share\"");
  }
  Result<Imported> Import(const std::string& path, const ImportOptions& /*options*/) const override {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) return MakeError(ErrorKind::kNotFound, "{}: cannot be read", path);
    EffectsOfComparisons effects;
    try {
      AddAll(Json::parse(text.str()), effects);
    } catch (const Json::exception& error) {
      return MakeError(ErrorKind::kCorrupt, "{}: no comparison of settings: {}", path, error.what());
    }
    if (effects.empty())
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument, "{}: no setting of one config with six rounds", path),
          "let the job run longer, or compare settings such as allgather=ring/simple/1");
    return effects.Finish();
  }
};

}  // namespace

const TraceImporter& TurnComparisonImporter() {
  static const TurnComparisonFile importer;
  return importer;
}

}  // namespace dynamiccl
