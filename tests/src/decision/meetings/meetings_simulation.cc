// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/meetings/meetings_simulation.h"

#include "tests/src/decision/meetings/wrong_meeting_members.h"

namespace dynamiccl::testing {
namespace {

template <class Member, class Memory>
SimulationResult<MeetingCounts> Run(const Simulation& simulation) {
  return LiveThrough<SimulatedMeetings<Member, Memory>, MeetingCounts>(simulation);
}

constexpr Protocol<MeetingCounts> kProtocols[] = {
    {"meeting", "the one that ships", "", Run<MeetingMember, RemembersVerdicts>},
    {"silence", "a rank that has pledged takes silence for a no", kDivergent,
     Run<TakesSilenceForANo, RemembersVerdicts>},
    {"leaders-end", "a rank that has pledged takes the leader's end for a no", kDivergent,
     Run<TakesTheLeadersEndForANo, RemembersVerdicts>},
    {"alone", "a rank that went alone pledges later", kDivergent,
     Run<PledgesAfterItWentAlone, RemembersVerdicts>},
    {"forgets", "the leader forgets what it has told", kDivergent, Run<MeetingMember, ForgetsVerdicts>},
    {"once", "no pledge is repeated", kEndlessWait, Run<SaysItsPledgeOnce, RemembersVerdicts>},
};

}  // namespace

std::span<const Protocol<MeetingCounts>> MeetingProtocols() {
  return kProtocols;
}

std::string Describe(const MeetingCounts& counts) {
  return fmt::format(
      "{} decisions ({} by an agreed mask), {} communicators: {} converged after the faults, {} crashes; {} "
      "meetings; "
      "verdicts told: {} yes, {} unequal, {} late; {} went alone, {} ranks not attested; {} waits for a "
      "verdict, {} asked "
      "again, {} messages lost",
      counts.decisions, counts.by_table, counts.lives, counts.converged, counts.crashes, counts.meetings,
      counts.yes, counts.unequal, counts.late, counts.alone, counts.not_attested, counts.waits,
      counts.asked_again, counts.lost_messages);
}

}  // namespace dynamiccl::testing
