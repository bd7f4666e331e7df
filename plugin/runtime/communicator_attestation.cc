// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/communicator_attestation.h"

#include "plugin/border/first_time.h"
#include "plugin/runtime/control_client.h"
#include "src/base/log.h"
#include "src/base/settings.h"

namespace dynamiccl {
namespace {

Verdict No(std::string reason, bool timed_out = false) {
  return {false, timed_out, std::move(reason)};
}

// A process without the interposer sees neither rank nor unique id. The user may then vouch for the job by
// setting the hashes of all files from which choices are computed.
Verdict VouchedFor(const LoadedChoices& choices) {
  const std::string policy = TextSetting(Setting::kPolicySha256), rules = TextSetting(Setting::kRulesSha256);
  if (policy.empty() && rules.empty())
    return No("NCCL does not tell which communicator this is; preload libdynamiccl.so");
  if (policy != choices.policy_hash())
    return No("DYNAMICCL_POLICY_SHA256 is not the hash of the loaded policy");
  if (choices.UsesOtherSources())
    return No(
        "DYNAMICCL_POLICY_SHA256 and DYNAMICCL_RULES_SHA256 vouch for a policy and rules, not for "
        "DYNAMICCL_RULES_IN_TURN or DYNAMICCL_DECISIONS; preload libdynamiccl.so");
  if (rules != choices.rules_hash())
    return No("DYNAMICCL_RULES_SHA256 is not the hash of DYNAMICCL_RULES; `sha256sum` prints it");
  return {.agreed = true};
}

// Returns the pins that environment variables set and the pins that the program set. A pledge cuts off the
// end of a text that is too long.
std::string PinsOf(const CommunicatorConfig& config, const std::string& by_variables) {
  const std::string& own = config.pinned_ctas;
  if (own.empty()) return by_variables;
  return by_variables == "none" ? own : fmt::format("{}; {}", by_variables, own);
}

// Decides alone where this rank's own knowledge is enough. Otherwise the rank pledges and waits for the
// leader's verdict.
Verdict Ask(const LoadedChoices& choices, RendezvousPoints& rendezvous, const Communicator* communicator,
            const std::string& constants) {
  const std::string why_not = choices.WhyNotChoosing();
  if (!why_not.empty()) return No(why_not);
  if (communicator == nullptr) return VouchedFor(choices);
  const CommunicatorIdentity& of = communicator->identity;
  if (of.within_process || of.info.n_ranks == 1) return {.agreed = true};
  if (rendezvous.given_up()) return No("an earlier communicator was not attested in time");
  if (!of.rendezvous.valid())
    return No("the unique id carries no address and DYNAMICCL_RENDEZVOUS is not set");
  PledgeMessage pledge{of.rendezvous.root, of.token, of.member,
                       of.info.n_ranks,    {},       AttestedOf(choices, *communicator, constants)};
  pledge.of_leader = rendezvous.IsLocal(of.rendezvous);
  auto verdict = PledgeAndWait(of.rendezvous, pledge, rendezvous.attest_timeout_ms());
  if (!verdict) return No(verdict.error().message, true);
  return *verdict;
}

}  // namespace

AttestedValues AttestedOf(const LoadedChoices& choices, const Communicator& communicator,
                          const std::string& constants) {
  AttestedValues values = choices.Attested();
  values.pins = PinsOf(communicator.config, values.pins);
  values.ctas = communicator.config.set_ctas;
  values.constants = constants;
  values.calls = communicator.config.blocking ? "interposed" : "interposed, non-blocking";
  return values;
}

AttestationState AttestCommunicator(const LoadedChoices& choices, RendezvousPoints& rendezvous,
                                    int launched_rank, const Communicator* communicator,
                                    const std::string& constants) {
  const Verdict verdict = Ask(choices, rendezvous, communicator, constants);
  if (verdict.timed_out) rendezvous.GiveUp();
  if (!verdict.agreed && FirstTime(verdict.reason)) {
    const int rank = communicator != nullptr ? communicator->identity.member : launched_rank;
    Log(LogLevel::kWarn, "rank {} keeps NCCL's choice: {}", rank, verdict.reason);
  }
  if (!verdict.agreed) return AttestationState::kNotAttested;
  if (communicator == nullptr) return AttestationState::kVouchedFor;
  return communicator->identity.info.n_ranks == 1 ? AttestationState::kSingleRank
                                                  : AttestationState::kAttested;
}

void DeclineToAttest(const LoadedChoices& choices, const RendezvousPoints& rendezvous,
                     const Communicator& communicator) {
  const CommunicatorIdentity& of = communicator.identity;
  // n_ranks is 0 for a child whose size is not known yet.
  const bool alone = of.within_process || of.info.n_ranks <= 1;
  if (alone || !of.rendezvous.valid() || rendezvous.given_up()) return;
  const PledgeMessage message{of.rendezvous.root,
                              of.token,
                              of.member,
                              of.info.n_ranks,
                              "NCCL initialises others of its size there at the same time",
                              choices.Attested()};
  // One attempt is enough: if this message does not arrive, the leader's time-out has the same effect.
  (void)PledgeAndLeave(of.rendezvous, message, kDeclineMs);
}

AttestationState DeferAttestation(const LoadedChoices& choices, const RendezvousPoints& rendezvous,
                                  const Communicator& communicator) {
  if (!choices.WhyNotChoosing().empty() || rendezvous.given_up()) return AttestationState::kNotAttested;
  if (communicator.identity.info.n_ranks == 1) return AttestationState::kSingleRank;
  return communicator.identity.rendezvous.valid() ? AttestationState::kDeferred
                                                  : AttestationState::kNotAttested;
}

}  // namespace dynamiccl
