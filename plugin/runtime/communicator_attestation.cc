// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/communicator_attestation.h"

#include "plugin/runtime/control_client.h"
#include "src/base/log.h"
#include "src/base/settings.h"

namespace dynamiccl {
namespace {

constexpr int kDeclineMs = 500;

Verdict No(std::string reason, bool timed_out = false) {
  return {false, timed_out, std::move(reason)};
}

// Processes without the interposer see neither rank nor unique id; a user may vouch for the job by setting
// the hash.
Verdict VouchedFor(const ProcessRuntime& runtime) {
  const std::string hash = TextSetting(Setting::kPolicySha256);
  if (hash.empty()) return No("NCCL does not tell which communicator this is; preload libdynamiccl.so");
  if (hash != runtime.policy_hash())
    return No("DYNAMICCL_POLICY_SHA256 is not the hash of the loaded policy");
  if (runtime.ChoosesBesidePolicy())
    return No(
        "DYNAMICCL_POLICY_SHA256 vouches for the policy, not for DYNAMICCL_RULES or "
        "DYNAMICCL_DECISIONS; preload libdynamiccl.so");
  return {.agreed = true};
}

// The variables' and the program's own. A text too long for a pledge is cut at its end.
std::string PinsOf(const Communicator& communicator, const std::string& by_variables) {
  const std::string& own = communicator.pinned_ctas;
  if (own.empty()) return by_variables;
  return by_variables == "none" ? own : fmt::format("{}; {}", by_variables, own);
}

Verdict Ask(ProcessRuntime& runtime, const Communicator* communicator, const std::string& constants) {
  const std::string why_not = runtime.WhyNotChoosing();
  if (!why_not.empty()) return No(why_not);
  if (communicator == nullptr) return VouchedFor(runtime);
  if (communicator->within_process || communicator->info.n_ranks == 1) return {.agreed = true};
  if (runtime.given_up()) return No("an earlier communicator was not attested in time");
  if (!communicator->meeting.valid())
    return No("the unique id carries no address and DYNAMICCL_RENDEZVOUS is not set");
  PledgeMessage pledge{communicator->meeting.root,
                       communicator->token,
                       communicator->member,
                       communicator->info.n_ranks,
                       {},
                       AttestedOf(runtime, *communicator, constants)};
  pledge.of_leader = runtime.Leads(communicator->meeting);
  auto verdict = PledgeAndWait(communicator->meeting, pledge, runtime.settings().attest_timeout_ms);
  if (!verdict) return No(verdict.error().message, true);
  return *verdict;
}

}  // namespace

AttestedValues AttestedOf(const ProcessRuntime& runtime, const Communicator& communicator,
                          const std::string& constants) {
  AttestedValues values = runtime.Attested();
  values.pins = PinsOf(communicator, values.pins);
  values.ctas = communicator.set_ctas;
  values.constants = constants;
  values.calls = communicator.blocking ? "interposed" : "interposed, non-blocking";
  return values;
}

Standing AttestCommunicator(ProcessRuntime& runtime, const Communicator* communicator,
                            const std::string& constants) {
  const Verdict verdict = Ask(runtime, communicator, constants);
  if (verdict.timed_out) runtime.GiveUp();
  if (!verdict.agreed && runtime.FirstTime(verdict.reason)) {
    const int rank = communicator != nullptr ? communicator->member : runtime.settings().rank;
    Log(LogLevel::kWarn, "rank {} keeps NCCL's choice: {}", rank, verdict.reason);
  }
  if (!verdict.agreed) return Standing::kNotAttested;
  if (communicator == nullptr) return Standing::kVouchedFor;
  return communicator->info.n_ranks == 1 ? Standing::kAlone : Standing::kAttested;
}

void DeclineToAttest(ProcessRuntime& runtime, const Communicator& communicator) {
  // A child's size may not be known yet.
  const bool alone = communicator.within_process || communicator.info.n_ranks <= 1;
  if (alone || !communicator.meeting.valid() || runtime.given_up()) return;
  const PledgeMessage message{communicator.meeting.root,
                              communicator.token,
                              communicator.member,
                              communicator.info.n_ranks,
                              "NCCL initialises others of its size there at the same time",
                              runtime.Attested()};
  // One try: they are told by a time-out as well.
  (void)PledgeAndLeave(communicator.meeting, message, kDeclineMs);
}

Standing StandingByCalls(const ProcessRuntime& runtime, const Communicator& communicator) {
  if (!runtime.WhyNotChoosing().empty() || runtime.given_up()) return Standing::kNotAttested;
  if (communicator.info.n_ranks == 1) return Standing::kAlone;
  return communicator.meeting.valid() ? Standing::kByCalls : Standing::kNotAttested;
}

}  // namespace dynamiccl
