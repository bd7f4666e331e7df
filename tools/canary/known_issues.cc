// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/known_issues.h"

#include <algorithm>
#include <iterator>

#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

constexpr const char* kFile = "tools/canary/known_issues.json";
constexpr DifferenceKind kKinds[] = {DifferenceKind::kEnd,        DifferenceKind::kSearch,
                                     DifferenceKind::kRanks,      DifferenceKind::kAdapters,
                                     DifferenceKind::kTransports, DifferenceKind::kBandwidth,
                                     DifferenceKind::kChannels,   DifferenceKind::kChoice,
                                     DifferenceKind::kMemory,     DifferenceKind::kCpus};

Result<real_nccl::NcclRelease> ReleaseOf(const Json& json, const char* key) {
  const std::string text = json.at(key);
  const auto release = real_nccl::ParseRelease(text);
  if (!release) return MakeError(ErrorKind::kCorrupt, "'{}' is no release: '{}'", key, text);
  return *release;
}

Result<std::vector<DifferenceKind>> KindsOf(const Json& json) {
  std::vector<DifferenceKind> kinds;
  for (const std::string name : json.at("shows_as")) {
    const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                    [&](DifferenceKind one) { return name == Name(one); });
    if (kind == std::end(kKinds))
      return MakeError(ErrorKind::kCorrupt, "'shows_as' has an unknown kind '{}'", name);
    kinds.push_back(*kind);
  }
  return kinds;
}

Result<StandsIn> PlaceOf(const Json& json) {
  const std::string place = json.value("stands_in", "");
  if (place.empty()) return StandsIn::kNothing;
  if (place == "init") return StandsIn::kInit;
  if (place == "call") return StandsIn::kCall;
  return MakeError(ErrorKind::kCorrupt, "'stands_in' is neither init nor call: '{}'", place);
}

Result<KnownIssue> IssueOf(const Json& json) {
  KnownIssue issue{.id = json.at("id"), .title = json.at("title"), .url = json.at("url")};
  DYNAMICCL_TRY(issue.since, ReleaseOf(json, "since"));
  if (json.contains("until")) {
    DYNAMICCL_TRY(issue.until, ReleaseOf(json, "until"));
  }
  DYNAMICCL_TRY(issue.shows_as, KindsOf(json));
  issue.architectures = json.value("architectures", std::vector<int>{});
  issue.variable = json.value("variable", "");
  issue.topology = json.value("topology", "");
  issue.where = json.at("where");
  issue.remedy = json.value("remedy", "");
  issue.text = json.value("text", "");
  issue.logged = json.value("logged", false);
  issue.unlike_nodes = json.value("unlike_nodes", false);
  issue.unjudged = json.value("unjudged", "");
  DYNAMICCL_TRY(issue.stands_in, PlaceOf(json));
  if (issue.shows_as.empty() == issue.unjudged.empty())
    return MakeError(ErrorKind::kCorrupt, "either 'shows_as' or 'unjudged' says how it is judged");
  if (issue.logged && issue.text.empty()) return MakeError(ErrorKind::kCorrupt, "'logged' without a 'text'");
  return issue;
}

// Returns whether a notice (a difference that is not grave) of this kind may mean that the job loses speed. A
// notice of any other kind means an improvement.
bool IsLossAsNotice(DifferenceKind kind) {
  return kind == DifferenceKind::kBandwidth || kind == DifferenceKind::kChannels ||
         kind == DifferenceKind::kChoice;
}

bool ShowsAs(const KnownIssue& issue, const Difference& one) {
  const auto says = [&](const std::string& side) { return side.find(issue.text) != std::string::npos; };
  const bool is_new =
      issue.text.empty() || (says(one.after) && !says(one.before)) || std::ranges::any_of(one.warnings, says);
  // A notice is a difference that is not grave. It counts if it means a loss of speed, or if the issue has a
  // text of its own. Any other notice may also mean that the fault was fixed.
  const bool counts = one.gravity == Gravity::kGrave || IsLossAsNotice(one.kind) || !issue.text.empty();
  return is_new && counts && std::ranges::find(issue.shows_as, one.kind) != issue.shows_as.end();
}

}  // namespace

Result<std::vector<KnownIssue>> ParseKnownIssues(const std::string& text) {
  std::vector<KnownIssue> issues;
  try {
    const Json json = Json::parse(text);
    if (json.at("schema") != 1) return MakeError(ErrorKind::kCorrupt, "{}: another version than 1", kFile);
    for (const Json& one : json.at("issues")) {
      auto issue = IssueOf(one);
      if (!issue) return Wrap(issue.error(), fmt::format("{}: {}", kFile, one.value("id", "?")));
      issues.push_back(std::move(*issue));
    }
  } catch (const Json::exception& error) {
    return MakeError(ErrorKind::kCorrupt, "{}: {}", kFile, error.what());
  }
  return issues;
}

Result<std::vector<KnownIssue>> ReadKnownIssues(const Installation& installation) {
  const std::string path = FindDataFile(installation, kFile);
  if (path.empty())
    return MakeError(ErrorKind::kNotFound, "this installation has no share/dynamiccl/{}", kFile);
  DYNAMICCL_TRY(const std::string text, ReadTextFile(path));
  return ParseKnownIssues(text);
}

std::string Describe(const KnownIssue& issue, const std::string& evidence) {
  std::string sentence =
      fmt::format("{}: {}{}; reported for {}", issue.id, issue.title, evidence, issue.where);
  if (issue.until) sentence += fmt::format("; NCCL {} does not have it", issue.until->text());
  if (!issue.remedy.empty()) sentence += fmt::format("; reported to help: {}", issue.remedy);
  if (!issue.unjudged.empty()) sentence += fmt::format("; not judgeable here: {}", issue.unjudged);
  return fmt::format("{} ({}).", sentence, issue.url);
}

std::vector<KnownIssue> IssuesOfJob(const std::vector<KnownIssue>& known,
                                    const std::map<std::string, std::string>& environment,
                                    const std::vector<DescribedMachine>& machines) {
  std::vector<KnownIssue> found;
  std::ranges::copy_if(known, std::back_inserter(found), [&](const KnownIssue& issue) {
    const bool is_set = issue.variable.empty() || environment.contains(issue.variable);
    return is_set && std::ranges::any_of(machines, [&](const DescribedMachine& one) {
             return one.topology.find(issue.topology) != std::string::npos;
           });
  });
  return found;
}

std::vector<KnownIssue> IssuesFor(const std::vector<KnownIssue>& known, const real_nccl::NcclRelease& in_use,
                                  const real_nccl::NcclRelease& judged, int architecture,
                                  const std::vector<Difference>& differences) {
  std::vector<KnownIssue> found;
  for (const KnownIssue& issue : known) {
    const bool shows =
        !issue.unjudged.empty() ||
        std::ranges::any_of(differences, [&](const Difference& one) { return ShowsAs(issue, one); });
    const bool here = issue.architectures.empty() ||
                      std::ranges::find(issue.architectures, architecture) != issue.architectures.end();
    if (shows && here && issue.Has(judged) && !issue.Has(in_use)) found.push_back(issue);
  }
  return found;
}

std::vector<KnownIssue> IssuesInLog(const std::vector<KnownIssue>& known,
                                    const real_nccl::NcclRelease& release,
                                    const std::function<bool(const std::string& text)>& says) {
  std::vector<KnownIssue> found;
  std::copy_if(known.begin(), known.end(), std::back_inserter(found), [&](const KnownIssue& issue) {
    return issue.logged && issue.Has(release) && says(issue.text);
  });
  return found;
}

}  // namespace dynamiccl
