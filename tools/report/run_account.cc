// SPDX-License-Identifier: Apache-2.0
#include "tools/report/run_account.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/collective/size_class.h"
#include "tools/report/choice_comparison.h"

namespace dynamiccl {
namespace {

RunKey KeyOf(const TraceCall& call, int nodes) {
  const CollectiveCall& issued = call.issued.call;
  return {issued.n_ranks, nodes, issued.collective, issued.bytes};
}

// True if the call got its config only for a measurement: with a tried config, or with NCCL's choice to
// compare.
bool OnlyTried(DecidedBy by) {
  return by == DecidedBy::kTrial || by == DecidedBy::kSample;
}

void CountDecision(const DecisionView& decision, RunKeyAccount& account) {
  ++account.decided[decision.decided_by];
  const auto same = [&](const auto& each) { return each.first == decision.config; };
  auto config = std::find_if(account.configs.begin(), account.configs.end(), same);
  if (config == account.configs.end())
    config = account.configs.insert(config, std::pair{decision.config, int64_t{0}});
  ++config->second;
  if (!OnlyTried(decision.decided_by)) account.choice = decision.config;
}

bool IsCounted(const TraceCall& call) {
  return static_cast<int>(call.issued.call.collective) < kTunableCollectives;
}

// Returns the version with these low 8 bits that is the nearest to `before`, the version of the previous
// call. Calls are so frequent that fewer than 128 versions lie between two of them.
uint32_t VersionAfter(uint32_t before, uint8_t low) {
  const int change = static_cast<int8_t>(static_cast<uint8_t>(low - static_cast<uint8_t>(before)));
  return change < 0 && before < static_cast<uint32_t>(-change) ? low : before + static_cast<uint32_t>(change);
}

}  // namespace

// Without a tuner, every call has NCCL's own choice. The time of a trial (a call with a config that is only
// tried) is not counted.
DurationQuantiles* KeyCounts::DurationsFor(const TraceCall& call, Counted& counted) {
  if (call.issued.duration_ns < 0) return nullptr;
  if (!call.decision || call.decision->config.leaves_nccl_alone()) return &counted.by_default;
  return OnlyTried(call.decision->decided_by) ? nullptr : &counted.ours;
}

void KeyCounts::Take(const TraceCall& call, int nodes) {
  if (!IsCounted(call)) return;
  Counted& counted = keys_[KeyOf(call, nodes)];
  ++counted.account.calls;
  if (call.decision) CountDecision(*call.decision, counted.account);
  if (DurationQuantiles* const durations = DurationsFor(call, counted))
    durations->Add(call.issued.duration_ns);
}

bool KeyCounts::needs_second_pass() const {
  return std::ranges::any_of(keys_, [](const auto& key) {
    return key.second.by_default.needs_second_pass() || key.second.ours.needs_second_pass();
  });
}

void KeyCounts::BeginAgain() {
  for (auto& [key, counted] : keys_) {
    counted.by_default.BeginAgain();
    counted.ours.BeginAgain();
  }
}

void KeyCounts::TakeAgain(const TraceCall& call, int nodes) {
  if (!IsCounted(call)) return;
  const auto key = keys_.find(KeyOf(call, nodes));
  if (key == keys_.end()) return;
  if (DurationQuantiles* const durations = DurationsFor(call, key->second))
    durations->AddAgain(call.issued.duration_ns);
}

std::vector<RunKeyAccount> KeyCounts::Accounts() const {
  std::vector<RunKeyAccount> accounts;
  for (const auto& [key, counted] : keys_) {
    accounts.push_back(counted.account);
    accounts.back().key = key;
    accounts.back().default_us = counted.by_default.Microseconds();
    accounts.back().ours_us = counted.ours.Microseconds();
  }
  return accounts;
}

void StageCounts::Take(const TraceCall& call) {
  const IssuedCall& issued = call.issued;
  StageRow& row =
      rows_[{issued.labelled_stage, issued.call.collective, issued.labelled_role, issued.labelled_phase}];
  const uint64_t bytes = issued.call.bytes;
  row.stage = issued.labelled_stage;
  row.phase = issued.labelled_phase;
  row.collective = issued.call.collective;
  row.role = issued.labelled_role;
  row.least_bytes = row.calls == 0 ? bytes : std::min(row.least_bytes, bytes);
  row.most_bytes = std::max(row.most_bytes, bytes);
  row.bytes += bytes;
  ++row.calls;
  if (call.step < 0) return;
  std::vector<int64_t>& steps = steps_[issued.labelled_stage];
  if (steps.empty() || steps.back() != call.step) steps.push_back(call.step);
}

StageAccount StageCounts::Account() const {
  StageAccount account;
  for (const auto& [key, row] : rows_) account.rows.push_back(row);
  for (auto [stage, steps] : steps_) {
    std::ranges::sort(steps);
    account.steps[stage] = std::ranges::unique(steps).begin() - steps.begin();
  }
  return account;
}

const std::string* ReasonOf(const TableVersion& version, const std::map<uint32_t, std::string>& reasons) {
  if (version.counted) {
    const auto exact = reasons.find(version.version);
    return exact == reasons.end() ? nullptr : &exact->second;
  }
  const std::string* only = nullptr;
  for (const auto& [number, reason] : reasons) {
    if (number % 256 != version.version) continue;
    if (only != nullptr) return nullptr;
    only = &reason;
  }
  return only;
}

void VersionList::Take(const TraceCall& call, int nodes) {
  if (!begin_ns_) begin_ns_ = call.issued.issued_ns;
  if (!call.decision || call.decision->decided_by == DecidedBy::kUserPin) return;
  const uint8_t low = call.decision->table_version;
  const auto [current, first] = current_.try_emplace(call.communicator, low);
  if (!first && static_cast<uint8_t>(current->second) != low) {
    current->second = counted_ ? VersionAfter(current->second, low) : low;
    latest_[call.communicator] = versions_.size();
    versions_.push_back({call.issued.issued_ns - *begin_ns_,
                         call.communicator,
                         call.issued.call.call_number,
                         current->second,
                         counted_,
                         {}});
  }
  if (!OnlyTried(call.decision->decided_by)) NoteChoice(call, nodes);
}

// If the call's config differs from the last choice for its key, adds this to the communicator's latest
// version.
void VersionList::NoteChoice(const TraceCall& call, int nodes) {
  const CollectiveConfig& config = call.decision->config;
  const std::pair key{call.communicator, KeyOf(call, nodes)};
  const auto [choice, first] = choices_.try_emplace(key, config);
  const CollectiveConfig before = std::exchange(choice->second, config);
  const auto version = latest_.find(call.communicator);
  if (first || before == config || version == latest_.end()) return;
  versions_[version->second].changes.push_back(
      fmt::format("{} of {}: {} in place of {}", Name(call.issued.call.collective),
                  FormatBytes(call.issued.call.bytes), Name(config), Name(before)));
}

}  // namespace dynamiccl
