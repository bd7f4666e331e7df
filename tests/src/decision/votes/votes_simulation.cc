// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/votes/votes_simulation.h"

#include "tests/src/decision/votes/wrong_voting_members.h"

namespace dynamiccl::testing {
namespace {

template <class Member, class Memory>
SimulationResult<VoteCounts> Run(const Simulation& simulation) {
  return LiveThrough<SimulatedVotes<Member, Memory>, VoteCounts>(simulation);
}

constexpr Protocol<VoteCounts> kProtocols[] = {
    {"vote", "the one that ships", "", Run<VotingMember, RemembersVerdicts>},
    {"silence", "a rank that has pledged takes silence for a no", kDivergent,
     Run<TakesSilenceForANo, RemembersVerdicts>},
    {"leaders-end", "a rank that has pledged takes the leader's end for a no", kDivergent,
     Run<TakesTheLeadersEndForANo, RemembersVerdicts>},
    {"alone", "a rank that went alone pledges later", kDivergent,
     Run<PledgesAfterItWentAlone, RemembersVerdicts>},
    {"forgets", "the leader forgets what it has told", kDivergent, Run<VotingMember, ForgetsVerdicts>},
    {"once", "no pledge is repeated", kEndlessWait, Run<SendsItsPledgeOnce, RemembersVerdicts>},
};

}  // namespace

std::span<const Protocol<VoteCounts>> VoteProtocols() {
  return kProtocols;
}

std::string Describe(const VoteCounts& counts) {
  return fmt::format(
      "{} decisions ({} by an agreed mask), {} communicators: {} converged after the faults, {} crashes; {} "
      "votes; "
      "verdicts told: {} yes, {} unequal, {} late; {} went alone, {} ranks not attested; {} waits for a "
      "verdict, {} asked "
      "again, {} messages lost",
      counts.decisions, counts.by_table, counts.lives, counts.converged, counts.crashes, counts.votes,
      counts.yes, counts.unequal, counts.late, counts.alone, counts.not_attested, counts.waits,
      counts.asked_again, counts.lost_messages);
}

}  // namespace dynamiccl::testing
