// SPDX-License-Identifier: Apache-2.0
// Counts the calls of one process of a trace, in one pass for each kind of count.
#include "tools/report/run_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "src/collective/size_class.h"
#include "tools/report/choice_comparison.h"

namespace dynamiccl {
namespace {

// The key of a call. If the trace says nothing about the communicator, it is assumed to span one node.
RunKey KeyOf(const SectionCalls& section, const TraceCall& call) {
  const CollectiveCall& issued = call.issued.call;
  const auto info = section.communicators.find(call.communicator);
  const int nodes = info == section.communicators.end() ? 1 : info->second.n_nodes;
  return {issued.n_ranks, nodes, issued.collective, issued.bytes};
}

// True if the call got its config only for a measurement: with a tried config, or with NCCL's choice to
// compare.
bool OnlyTried(DecidedBy by) {
  return by == DecidedBy::kTrial || by == DecidedBy::kSample;
}

// The account of one key while it is built, with the samples of which its timings are made.
struct KeyTimes {
  RunKeyAccount account;
  std::vector<double> default_us;
  std::vector<double> ours_us;
};

void CountDecision(const DecisionView& decision, RunKeyAccount& account) {
  ++account.decided[decision.decided_by];
  const auto same = [&](const auto& each) { return each.first == decision.config; };
  auto config = std::find_if(account.configs.begin(), account.configs.end(), same);
  if (config == account.configs.end())
    config = account.configs.insert(config, std::pair{decision.config, int64_t{0}});
  ++config->second;
  if (!OnlyTried(decision.decided_by)) account.choice = decision.config;
}

// Adds the time of a call to the times with NCCL's own choice or to those with DynamICCL's choices. Without a
// tuner, every call has NCCL's own choice. The time of a trial (a call with a config that is only tried) is
// left out.
void CountTime(const TraceCall& call, KeyTimes& key) {
  if (call.issued.duration_ns < 0) return;
  const double microseconds = static_cast<double>(call.issued.duration_ns) * 1e-3;
  if (!call.decision || call.decision->config.leaves_nccl_alone())
    key.default_us.push_back(microseconds);
  else if (!OnlyTried(call.decision->decided_by))
    key.ours_us.push_back(microseconds);
}

// Collects where a run changed from one table version to another. VersionsOf creates one on its stack and
// passes it the calls in order.
class VersionList {
 public:
  explicit VersionList(const SectionCalls& section) : section_(section) {
    if (!section.calls.empty()) begin_ns_ = section.calls.front().issued.issued_ns;
  }

  // Records a change if the call was decided by another table version than the previous call of its
  // communicator. A call whose config the user pinned has no version.
  void Take(const TraceCall& call) {
    if (!call.decision || call.decision->decided_by == DecidedBy::kUserPin) return;
    const uint8_t version = call.decision->table_version;
    const auto [current, first] = current_.try_emplace(call.communicator, version);
    if (!first && current->second != version) {
      current->second = version;
      latest_[call.communicator] = versions_.size();
      versions_.push_back(
          {call.issued.issued_ns - begin_ns_, call.communicator, call.issued.call.call_number, version, {}});
    }
    if (!OnlyTried(call.decision->decided_by)) NoteChoice(call);
  }

  std::vector<TableVersion> versions() && { return std::move(versions_); }

 private:
  // If the call's config differs from the last choice for its key, adds this to the communicator's latest
  // version.
  void NoteChoice(const TraceCall& call) {
    const CollectiveConfig& config = call.decision->config;
    const std::pair key{call.communicator, KeyOf(section_, call)};
    const auto [choice, first] = choices_.try_emplace(key, config);
    const CollectiveConfig before = std::exchange(choice->second, config);
    const auto version = latest_.find(call.communicator);
    if (first || before == config || version == latest_.end()) return;
    versions_[version->second].changes.push_back(
        fmt::format("{} of {}: {} in place of {}", Name(call.issued.call.collective),
                    FormatBytes(call.issued.call.bytes), Name(config), Name(before)));
  }

  const SectionCalls& section_;
  int64_t begin_ns_ = 0;
  // The current table version of each communicator.
  std::map<uint32_t, uint8_t> current_;
  // For each communicator the index in versions_ of its latest change of version.
  std::map<uint32_t, size_t> latest_;
  // The last choice for each communicator and key.
  std::map<std::pair<uint32_t, RunKey>, CollectiveConfig> choices_;
  std::vector<TableVersion> versions_;
};

}  // namespace

std::vector<RunKeyAccount> KeysOf(const SectionCalls& section) {
  std::map<RunKey, KeyTimes> keys;
  for (const TraceCall& call : section.calls) {
    if (static_cast<int>(call.issued.call.collective) >= kTunableCollectives) continue;
    KeyTimes& key = keys[KeyOf(section, call)];
    ++key.account.calls;
    if (call.decision) CountDecision(*call.decision, key.account);
    CountTime(call, key);
  }
  std::vector<RunKeyAccount> accounts;
  for (auto& [key, times] : keys) {
    times.account.key = key;
    times.account.default_us = Summarize(std::move(times.default_us));
    times.account.ours_us = Summarize(std::move(times.ours_us));
    accounts.push_back(std::move(times.account));
  }
  return accounts;
}

StageAccount StagesOf(const SectionCalls& section) {
  std::map<std::tuple<ZeroStage, Collective, Role, Phase>, StageRow> rows;
  std::map<ZeroStage, std::set<int64_t>> steps;
  for (const TraceCall& call : section.calls) {
    const IssuedCall& issued = call.issued;
    StageRow& row =
        rows[{issued.labelled_stage, issued.call.collective, issued.labelled_role, issued.labelled_phase}];
    const uint64_t bytes = issued.call.bytes;
    row.stage = issued.labelled_stage;
    row.phase = issued.labelled_phase;
    row.collective = issued.call.collective;
    row.role = issued.labelled_role;
    row.least_bytes = row.calls == 0 ? bytes : std::min(row.least_bytes, bytes);
    row.most_bytes = std::max(row.most_bytes, bytes);
    row.bytes += bytes;
    ++row.calls;
    if (call.step >= 0) steps[issued.labelled_stage].insert(call.step);
  }
  StageAccount account;
  for (auto& [key, row] : rows) account.rows.push_back(row);
  for (const auto& [stage, of] : steps) account.steps[stage] = static_cast<int64_t>(of.size());
  return account;
}

std::vector<TableVersion> VersionsOf(const SectionCalls& section) {
  VersionList list(section);
  for (const TraceCall& call : section.calls) list.Take(call);
  return std::move(list).versions();
}

}  // namespace dynamiccl
