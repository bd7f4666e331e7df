// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/agreed_ctas.h"

#include <algorithm>

#include "plugin/interpose/real_nccl.h"
#include "plugin/runtime/communicator_attestation.h"
#include "plugin/runtime/control_client.h"
#include "src/base/log.h"

namespace dynamiccl {
namespace {

// One try to tell the others at once; a time-out tells them as well.
constexpr int kDeclineMs = 500;

std::string TextOf(const CtaBounds& ctas) {
  std::string text = ctas.least == 0 ? "" : fmt::format("minCTAs={}", ctas.least);
  if (ctas.most != 0) text += fmt::format("{}maxCTAs={}", text.empty() ? "" : " ", ctas.most);
  return text;
}

const CommunicatorRule* RuleFor(const ProcessRuntime& runtime, const Communicator& communicator) {
  const auto& rules = runtime.rules();
  if (!rules) return nullptr;
  return rules->MatchCommunicator(communicator.info.n_ranks, communicator.info.n_nodes);
}

// NCCL's MAXCHANNELS in the library of this process.
int MostChannels() {
  constexpr int kFirstWithMore = 22500;
  int version = 0;
  DYNAMICCL_FORWARD(GetVersion, &version);
  return version >= kFirstWithMore ? 64 : 32;
}

// What the user has pinned stays. NCCL fails the initialisation where the least is above the most, and up to
// 2.28 at least takes a most that is not set for one below any least.
CtaBounds Addable(const CommunicatorRule* rule, const CtaBounds& own) {
  if (rule == nullptr || ChannelsArePinned()) return {};
  const int limit = MostChannels();
  CtaBounds added{own.least != 0 ? 0 : std::min(rule->ctas.least, limit),
                  own.most != 0 ? 0 : std::min(rule->ctas.most, limit)};
  if (added.least != 0 && own.most + added.most == 0) added.most = limit;
  const int least = own.least + added.least;
  const int most = own.most + added.most;
  return most != 0 && least > most ? CtaBounds{} : added;
}

void Say(ProcessRuntime& runtime, const Communicator& communicator, const std::string& why) {
  if (!runtime.FirstTime("birth: " + why)) return;
  Log(LogLevel::kWarn, "rank {} initialises a communicator as the program asks: {}", communicator.member,
      why);
}

PledgeMessage PledgeOf(ProcessRuntime& runtime, const Communicator& communicator) {
  PledgeMessage pledge{communicator.meeting.root,
                       BirthToken(communicator.token),
                       communicator.member,
                       communicator.info.n_ranks,
                       {},
                       AttestedOf(runtime, communicator, {}),
                       MeetingAbout::kBirth};
  pledge.of_leader = runtime.Leads(communicator.meeting);
  return pledge;
}

void Decline(ProcessRuntime& runtime, const Communicator& communicator, const std::string& why) {
  PledgeMessage pledge = PledgeOf(runtime, communicator);
  pledge.declines = why;
  if (!PledgeAndLeave(communicator.meeting, pledge, kDeclineMs)) runtime.GiveUpBirths();
}

// A rank that may have pledged keeps to the verdict, however long it takes: it may be a yes.
Verdict Meet(ProcessRuntime& runtime, const Communicator& communicator) {
  if (communicator.info.n_ranks == 1) return {.agreed = true};
  const auto verdict = runtime.pledge_sender().Send(communicator.meeting, PledgeOf(runtime, communicator),
                                                    runtime.settings().attest_timeout_ms, nullptr);
  return verdict->Wait();
}

}  // namespace

void SayThatCtasStay(ProcessRuntime& runtime, const Communicator& communicator, const std::string& why) {
  if (runtime.rules() && runtime.rules()->any_about_communicators()) Say(runtime, communicator, why);
}

CtaBounds AgreeOnCtas(ProcessRuntime& runtime, Communicator& communicator, const CtaBounds& own,
                      const std::string& unable) {
  const CommunicatorRule* const rule = RuleFor(runtime, communicator);
  const CtaBounds wanted = Addable(rule, own);
  if (!communicator.meeting.before_init) {
    if (!wanted.empty())
      Say(runtime, communicator, "where its unique id was made no rules are for communicators");
    return {};
  }
  if (runtime.given_up() || runtime.given_up_births()) return {};
  const std::string off = runtime.WhyNotChoosing();
  const std::string& why = off.empty() ? unable : off;
  if (!why.empty()) {
    Decline(runtime, communicator, why);
    if (!wanted.empty()) Say(runtime, communicator, why);
    return {};
  }
  communicator.set_ctas = TextOf(wanted);
  const Verdict verdict = Meet(runtime, communicator);
  if (verdict.agreed) return wanted;
  communicator.set_ctas.clear();
  if (verdict.timed_out) runtime.GiveUpBirths();
  Say(runtime, communicator, verdict.reason);
  return {};
}

}  // namespace dynamiccl
