// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/agreed_ctas.h"

#include <algorithm>

#include "plugin/border/first_time.h"
#include "plugin/border/real_nccl.h"
#include "plugin/runtime/communicator_attestation.h"
#include "plugin/runtime/control_client.h"
#include "src/base/log.h"

namespace dynamiccl {
namespace {

// Returns the text that ranks attest about the bounds, for example "minCTAs=8 maxCTAs=16".
std::string TextOf(const CtaBounds& ctas) {
  std::string text = ctas.least == 0 ? "" : fmt::format("minCTAs={}", ctas.least);
  if (ctas.most != 0) text += fmt::format("{}maxCTAs={}", text.empty() ? "" : " ", ctas.most);
  return text;
}

const CommunicatorRule* RuleFor(const LoadedChoices& choices, const Communicator& communicator) {
  const CommunicatorInfo& info = communicator.identity.info;
  return choices.rules() ? choices.rules()->MatchCommunicator(info.n_ranks, info.n_nodes) : nullptr;
}

// Returns MAXCHANNELS of this process's NCCL, the largest number of channels of a communicator.
int MaxChannels() {
  constexpr int kFirstWithMore = 22500;
  return NcclVersion() >= kFirstWithMore ? 64 : 32;
}

// Returns those bounds of the rule that can be added to the program's own; bounds that the user pinned stay.
// NCCL fails the initialisation if the minimum is above the maximum. Up to 2.28 at least, NCCL treats an
// unset maximum as lower than every minimum, so this function adds a maximum, too.
CtaBounds Addable(const CommunicatorRule* rule, const CtaBounds& own) {
  if (rule == nullptr || ChannelsArePinned()) return {};
  const int limit = MaxChannels();
  CtaBounds added{own.least != 0 ? 0 : std::min(rule->ctas.least, limit),
                  own.most != 0 ? 0 : std::min(rule->ctas.most, limit)};
  if (added.least != 0 && own.most + added.most == 0) added.most = limit;
  const int least = own.least + added.least;
  const int most = own.most + added.most;
  return most != 0 && least > most ? CtaBounds{} : added;
}

void WarnOnce(const Communicator& communicator, const std::string& why) {
  if (!FirstTime("init: " + why)) return;
  Log(LogLevel::kWarn, "rank {} initialises a communicator as the program asks: {}",
      communicator.identity.member, why);
}

PledgeMessage InitPledgeOf(const LoadedChoices& choices, RendezvousPoints& rendezvous,
                           const Communicator& communicator) {
  const CommunicatorIdentity& of = communicator.identity;
  PledgeMessage pledge{of.rendezvous.root,
                       InitToken(of.token),
                       of.member,
                       of.info.n_ranks,
                       {},
                       AttestedOf(choices, communicator, {}),
                       VoteKind::kInit};
  pledge.of_leader = rendezvous.IsLocal(of.rendezvous);
  return pledge;
}

void DeclineInit(const LoadedChoices& choices, RendezvousPoints& rendezvous, const Communicator& communicator,
                 const std::string& why) {
  PledgeMessage pledge = InitPledgeOf(choices, rendezvous, communicator);
  pledge.declines = why;
  if (!PledgeAndLeave(communicator.identity.rendezvous, pledge, kDeclineMs)) rendezvous.GiveUpInits();
}

// A rank that may have pledged waits for the verdict, however long it takes, because the verdict may be a
// yes.
Verdict VoteBeforeInit(const LoadedChoices& choices, RendezvousPoints& rendezvous,
                       const Communicator& communicator) {
  if (communicator.identity.info.n_ranks == 1) return {.agreed = true};
  const auto verdict = rendezvous.pledge_sender().Send(communicator.identity.rendezvous,
                                                       InitPledgeOf(choices, rendezvous, communicator),
                                                       rendezvous.attest_timeout_ms(), nullptr);
  return verdict->Wait();
}

}  // namespace

void WarnThatCtasStay(const LoadedChoices& choices, const Communicator& communicator,
                      const std::string& why) {
  if (choices.rules() && choices.rules()->any_about_communicators()) WarnOnce(communicator, why);
}

CtaBounds AgreeOnCtas(const LoadedChoices& choices, RendezvousPoints& rendezvous, Communicator& communicator,
                      const CtaBounds& own, const std::string& unable) {
  const CtaBounds wanted = Addable(RuleFor(choices, communicator), own);
  if (!communicator.identity.rendezvous.before_init) {
    if (!wanted.empty())
      WarnOnce(communicator, "where its unique id was made no rules are for communicators");
    return {};
  }
  if (rendezvous.given_up() || rendezvous.given_up_inits()) return {};
  const std::string off = choices.WhyNotChoosing();
  const std::string& why = off.empty() ? unable : off;
  if (!why.empty()) {
    DeclineInit(choices, rendezvous, communicator, why);
    if (!wanted.empty()) WarnOnce(communicator, why);
    return {};
  }
  // The bounds are attested with the other values: ranks that would add different bounds do not agree.
  communicator.config.set_ctas = TextOf(wanted);
  const Verdict verdict = VoteBeforeInit(choices, rendezvous, communicator);
  if (verdict.agreed) {
    if (!wanted.empty() && FirstTime("bounds: " + communicator.config.set_ctas))
      Log(LogLevel::kInfo, "rank {} initialises a communicator with {}, as rules say",
          communicator.identity.member, communicator.config.set_ctas);
    return wanted;
  }
  communicator.config.set_ctas.clear();
  if (verdict.timed_out) rendezvous.GiveUpInits();
  WarnOnce(communicator, verdict.reason);
  return {};
}

}  // namespace dynamiccl
