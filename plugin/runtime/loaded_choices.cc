// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/loaded_choices.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "plugin/border/build_id.h"
#include "plugin/border/real_nccl.h"
#include "src/base/log.h"
#include "src/base/sha256.h"
#include "src/cost_model/tuner_constants.h"
#include "src/policy/config_inference.h"
#include "src/policy/policy_checks.h"
#include "src/policy/policy_file.h"

namespace dynamiccl {
namespace {

// The reader of the policy file has already compared these outputs with those in the file. The attested
// digest is computed from this machine's own results.
std::string DigestOfGoldenOutputs(const PolicyTensors& tensors) {
  const auto computed = std::make_unique<PolicyTensors>(tensors);
  ComputeGoldenOutputs(*computed);
  Sha256 digest;
  digest.Update(std::as_bytes(std::span(computed->golden_logits)));
  digest.Update(std::as_bytes(std::span(computed->golden_residuals)));
  digest.Update(std::as_bytes(std::span(computed->golden_tree_residuals)));
  return ToHex(digest.Finish()).substr(0, 32);
}

// Returns a function that gives each key the choice of the earlier run, if NCCL offers that choice to all
// ranks now. Keys without such a choice are left to NCCL.
EntryFunction EntriesOfSaved(std::shared_ptr<const SavedDecisions> saved, int n_ranks, int n_nodes) {
  return [saved = std::move(saved), n_ranks, n_nodes](const TableKey& key, const ConfigMask& allowed) {
    const CollectiveConfig config = saved->Find({n_ranks, n_nodes, key});
    const bool possible =
        !config.leaves_nccl_alone() && allowed.test(ConfigIndex(config.algorithm, config.protocol));
    return possible ? config : kLeaveNcclAlone;
  };
}

}  // namespace

CostModelInput InputOf(const ncclTunerConstants_v5_t* constants, int n_ranks, int n_nodes) {
  return constants == nullptr ? AssumedCostModel(n_ranks, n_nodes)
                              : FromTunerConstants(*constants, n_ranks, n_nodes);
}

LoadedChoices::LoadedChoices(const JobSettings& settings, ComputedEntries& computed)
    : settings_(settings), computed_(computed) {
  if (!Chooses(settings_.mode)) return;
  LoadRules();
  LoadRulesInTurn();
  LoadPolicy();
  LoadDecisions();
  if (!refused_.empty()) Log(LogLevel::kWarn, "{}; NCCL's choice stays", refused_);
  if (refused_.empty()) WarnOfUselessRules();
}

void LoadedChoices::WarnOfUselessRules() const {
  if (!policy_ && RulesNeedRecognition())
    Log(LogLevel::kWarn,
        "rules name a role, phase or stage, which only a policy recognises: without DYNAMICCL_POLICY these "
        "rules match no call");
  if (settings_.mode != Mode::kAdaptive && AnyOfRules(&OverrideRules::any_needs_memory))
    Log(LogLevel::kWarn,
        "rules name a level of memory pressure, on which ranks agree in mode adaptive alone: in mode {} they "
        "match no call",
        Name(settings_.mode));
}

bool LoadedChoices::AnyOfRules(bool (OverrideRules::*asks)() const) const {
  const auto yes = [asks](const auto& rules) { return rules && ((*rules).*asks)(); };
  return yes(rules_) || std::any_of(rules_in_turn_.begin(), rules_in_turn_.end(), yes);
}

bool LoadedChoices::RulesNeedRecognition() const {
  return AnyOfRules(&OverrideRules::any_needs_recognition);
}

bool LoadedChoices::RulesNeedMemory() const {
  return settings_.mode == Mode::kAdaptive && AnyOfRules(&OverrideRules::any_needs_memory);
}

void LoadedChoices::LoadRules() {
  if (settings_.rules_path.empty()) return;
  auto rules = OverrideRules::ReadFile(settings_.rules_path);
  if (rules) {
    rules_ = std::make_shared<OverrideRules>(std::move(*rules));
    rules_state_ = ToHex(rules_->digest()).substr(0, 32);
  } else {
    refused_ = rules.error().message;
  }
}

// Rules for communicators take effect when NCCL initialises a communicator, so they cannot take turns.
void LoadedChoices::LoadRulesInTurn() {
  if (settings_.rules_in_turn.empty() || !refused_.empty()) return;
  if (rules_) {
    refused_ = "DYNAMICCL_RULES and DYNAMICCL_RULES_IN_TURN are both set";
    return;
  }
  Sha256 digest;
  for (const std::string& path : settings_.rules_in_turn) {
    auto rules = path.empty() ? OverrideRules::Parse("", "") : OverrideRules::ReadFile(path);
    if (!rules) {
      refused_ = rules.error().message;
      return;
    }
    if (rules->any_about_communicators()) {
      refused_ =
          path + ": rules for communicators cannot take turns, since they hold from a communicator's init";
      return;
    }
    digest.Update(std::as_bytes(std::span(rules->digest())));
    rules_in_turn_.push_back(std::make_shared<OverrideRules>(std::move(*rules)));
  }
  rules_state_ = fmt::format("{} in turns of {}", ToHex(digest.Finish()).substr(0, 32), settings_.turn_steps);
}

bool LoadedChoices::SetsChunks() const {
  return AnyOfRules(&OverrideRules::any_chunk_bytes);
}

void LoadedChoices::LoadPolicy() {
  if (settings_.policy_path.empty()) return;
  auto policy = ReadPolicyFile(settings_.policy_path);
  if (!policy) {
    refused_ = policy.error().message;
    return;
  }
  policy_ = std::move(*policy);
  policy_hash_ = ToHex(policy_->sha256);
  std::copy_n(policy_->sha256.begin(), policy_digest_.size(), policy_digest_.begin());
  golden_ = DigestOfGoldenOutputs(policy_->tensors);
}

void LoadedChoices::LoadDecisions() {
  const std::string& path = settings_.decisions_path;
  // If this run is to write the file, the file need not exist yet.
  if (path.empty() || (settings_.reproducible && ::access(path.c_str(), F_OK) != 0)) return;
  auto saved = SavedDecisions::ReadFile(path);
  if (!saved) {
    refused_ = saved.error().message;
  } else if (saved->policy_hash() != policy_hash_) {
    refused_ = fmt::format("{}: was made with policy {}, and this is {}", path,
                           saved->policy_hash().empty() ? "none" : saved->policy_hash(),
                           policy_hash_.empty() ? "none" : policy_hash_);
  } else {
    decisions_ = std::make_shared<SavedDecisions>(std::move(*saved));
  }
}

std::string LoadedChoices::WhyNotChoosing() const {
  if (!Chooses(settings_.mode)) return fmt::format("it runs in mode {}", Name(settings_.mode));
  if (settings_.tuner_plugin == "none") return "NCCL_TUNER_PLUGIN=none is set there";
  return refused_;
}

EntryFunction LoadedChoices::EntriesFor(const ncclTunerConstants_v5_t* constants, int n_ranks,
                                        int n_nodes) const {
  if (decisions_) return EntriesOfSaved(decisions_, n_ranks, n_nodes);
  if (!policy_ && settings_.mode != Mode::kAdaptive) return {};
  return PolicyEntries(policy_, InputOf(constants, n_ranks, n_nodes));
}

EntryFunction LoadedChoices::PolicyEntries(std::shared_ptr<const Policy> policy,
                                           const CostModelInput& input) const {
  if (!policy) return [](const TableKey&, const ConfigMask&) { return kLeaveNcclAlone; };
  return [&computed = computed_, policy = std::move(policy), input](const TableKey& key,
                                                                    const ConfigMask& allowed) {
    const ConfigChoice choice =
        ChooseConfig(*policy, input, {key.collective, LowerBound(key.size_class), allowed});
    computed.Note({input.fabric.n_ranks, input.fabric.n_nodes, key}, choice);
    return choice.config;
  };
}

AttestedValues LoadedChoices::Attested() const {
  AttestedValues values;
  values.build = BuildId();
  values.mode = Name(settings_.mode);
  // A rank without a guard takes no samples, so it would decide differently from one with a guard.
  if (settings_.mode == Mode::kAdaptive && !GuardsTables(settings_)) values.mode += " without times";
  values.policy = policy_hash_.empty() ? "none" : policy_hash_;
  if (decisions_) values.policy = "decisions " + ToHex(decisions_->digest()).substr(0, 54);
  values.rules = rules_state_;
  values.golden = golden_;
  values.pins = PinnedByUser(settings_);
  values.library = NcclVersionName();
  return values;
}

}  // namespace dynamiccl
