// SPDX-License-Identifier: Apache-2.0
// Reads each kind of file with the reader that a job or a command uses, so that doctor's verdict is the same
// as the job's.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "src/base/file_kind.h"
#include "src/decision/override_rules.h"
#include "src/decision/saved_decisions.h"
#include "src/decision/site_store/site_store_file.h"
#include "src/policy/policy_file.h"
#include "src/transport/topology.h"
#include "tools/doctor/check.h"
#include "tools/doctor/unreachable_rules.h"
#include "traces/format/measurement_file.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

// A finding for a file that cannot be read. Jobs ignore such a file and keep NCCL's choices.
Finding Failed(const std::string& path, const Error& error) {
  return {path, error.message, Verdict::kFail,
          error.hint.empty() ? "jobs that are given this file keep NCCL's choices" : error.hint};
}

Finding Good(const std::string& path, std::string holds) {
  return {path, std::move(holds), Verdict::kOk, ""};
}

Finding CheckPolicy(const std::string& path) {
  const auto policy = ReadPolicyFile(path);
  if (!policy) return Failed(path, policy.error());
  return Good(path, fmt::format("a policy, SHA-256 {}", ToHex((*policy)->sha256)));
}

// Rules that no call can reach are legal but surely not meant, so they are a warning.
Finding CheckRules(const std::string& path) {
  const auto rules = OverrideRules::ReadFile(path);
  if (!rules) return Failed(path, rules.error());
  const std::vector<UnreachableRule> unreachable = UnreachableRules(rules->rules());
  if (unreachable.empty()) return Good(path, fmt::format("{} rules", rules->rules().size()));
  const UnreachableRule& first = unreachable.front();
  return {path, fmt::format("{} of {} rules can never be used", unreachable.size(), rules->rules().size()),
          Verdict::kWarn,
          fmt::format("line {}: line {} takes all its calls first; put it before that line, or delete it",
                      first.line, first.taken_by_line)};
}

// Rules and topologies are both TOML; both readers are tried.
Finding CheckToml(const std::string& path) {
  const auto topology = LoadTopology(path);
  if (topology) return Good(path, fmt::format("a topology of {} nodes", topology->nodes));
  const Finding rules = CheckRules(path);
  if (rules.verdict != Verdict::kFail) return rules;
  return {path, fmt::format("neither rules ({}) nor a topology ({})", rules.value, topology.error().message),
          Verdict::kFail, "docs/formats/override_rules.md and docs/formats/topology.md have the grammars"};
}

Finding CheckSiteStore(const std::string& path) {
  // The reader of site stores takes a missing file for an empty store, so the check must look whether the
  // file exists.
  if (!std::filesystem::exists(path)) return Failed(path, {ErrorKind::kNotFound, "no such file", ""});
  const auto store = ReadSiteStore(path);
  if (!store) return Failed(path, store.error());
  return Good(path, fmt::format("a site store of {} entries", store->entries().size()));
}

Finding CheckDecisions(const std::string& path) {
  const auto decisions = SavedDecisions::ReadFile(path);
  if (!decisions) return Failed(path, decisions.error());
  return Good(path, fmt::format("{} saved decisions", decisions->configs().size()));
}

Finding CheckTrace(const std::string& path) {
  const auto trace = ReadTrace(path);
  if (!trace) return Failed(path, trace.error());
  const MissingRecords missing = trace->missing();
  return Good(path, fmt::format("a trace of {} sections{}", trace->sections.size(),
                                missing.any() ? ", " + Describe(missing) : ""));
}

Finding CheckMeasurements(const std::string& path) {
  const auto measurements = ReadMeasurementFile(path);
  if (!measurements) return Failed(path, measurements.error());
  return Good(path, fmt::format("{} measurements", measurements->rows.size()));
}

// End of a file's name, and the check for such files.
struct FileKind {
  const char* ending;
  Finding (*check)(const std::string& path);
};

constexpr std::array kKinds = {
    FileKind{".dcpolicy", CheckPolicy}, FileKind{".dcsite", CheckSiteStore},
    FileKind{".csv", CheckRules},       FileKind{".toml", CheckToml},
    FileKind{".ctrace", CheckTrace},    FileKind{".ctracez", CheckTrace},
    FileKind{".jsonl", CheckTrace},     FileKind{".measurements", CheckMeasurements},
};

// Returns whether the file holds saved decisions. Such a file may have any name; its first word identifies
// it.
bool HoldsDecisions(const std::string& path) {
  if (!CheckIsFile(path)) return false;
  std::ifstream file(path);
  std::string word;
  return file >> word && word == "dynamiccl-decisions";
}

}  // namespace

Finding CheckFile(const std::string& path) {
  std::string endings;
  for (const FileKind& kind : kKinds) {
    if (path.ends_with(kind.ending)) return kind.check(path);
    endings += fmt::format("{}{}", endings.empty() ? "" : ", ", kind.ending);
  }
  if (HoldsDecisions(path)) return CheckDecisions(path);
  return {path, "no kind of file of ours", Verdict::kFail, "names end in " + endings};
}

Finding CheckFileOf(Setting setting, const std::string& path) {
  switch (setting) {
    case Setting::kPolicy:
      return CheckPolicy(path);
    case Setting::kRules:
      return CheckRules(path);
    case Setting::kDecisions:
      return CheckDecisions(path);
    case Setting::kSiteStore:
      return CheckSiteStore(path);
    default:
      return CheckFile(path);
  }
}

}  // namespace dynamiccl
