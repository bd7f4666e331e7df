// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/switching/simulation.h"

#include "tests/src/decision/switching/wrong_members.h"

namespace dynamiccl::testing {
namespace {

template <class Member, class Structure>
class WithBrokenConnections : public SimulatedCommunicator<Member, Structure> {
 public:
  WithBrokenConnections(uint64_t seed, uint64_t decisions)
      : SimulatedCommunicator<Member, Structure>(seed, decisions) {
    this->BreakConnections(~seed);
  }
};

template <class Member, class Structure>
SimulationResult<SimulationCounts> Run(const Simulation& simulation) {
  return LiveThrough<WithBrokenConnections<Member, Structure>, SimulationCounts>(simulation);
}

constexpr Protocol<SimulationCounts> kProtocols[] = {
    {"pledge", "the one that ships", "", Run<SwitchMember, StepsOnCallingThread>},
    {"on-arrival", "switch when the message arrives", kDivergent,
     Run<SwitchesOnArrival, StepsOnCallingThread>},
    {"announced", "announced call number without a pledge", kDivergent,
     Run<SwitchesAtAnnouncedCall, StepsOnCallingThread>},
    {"pledge-first", "pledge before arming", kDivergent, Run<PledgesBeforeArming, StepsOnCallingThread>},
    {"other-thread", "structure stepped on another thread", kDivergent,
     Run<SwitchMember, StepsOnAnotherThread>},
    {"time-out", "a time-out that decides alone", kDivergent,
     Run<DecidesAloneInTheEnd, StepsOnCallingThread>},
    {"once", "no message is repeated", kEndlessWait, Run<SaysItOnce, StepsOnCallingThread>},
};

}  // namespace

std::span<const Protocol<SimulationCounts>> Protocols() {
  return kProtocols;
}

namespace {

std::string DescribeExperiments(const SimulationCounts& counts) {
  if (counts.trials == 0) return "";
  return fmt::format(
      "; {} decisions used an arm, {} of them in plans with an arm that leads; versions in use: {} searches, "
      "{} "
      "challenges, {} beliefs, {} adoptions, {} revocations, {} levels of memory",
      counts.trials, counts.leading, counts.searches, counts.challenges, counts.beliefs, counts.adoptions,
      counts.revocations, counts.memory_levels);
}

}  // namespace

std::string Describe(const SimulationCounts& counts) {
  return fmt::format(
             "{} decisions, {} communicators: {} converged after the faults, {} crashes; {} requests, {} "
             "commits, "
             "{} "
             "aborts ({} for a rank that had passed); {} waits at a boundary, {} questions to peers, {} "
             "messages "
             "lost",
             counts.decisions, counts.lives, counts.converged, counts.crashes, counts.requests,
             counts.commits, counts.aborts, counts.refused_passed, counts.waits, counts.asks,
             counts.lost_messages) +
         DescribeExperiments(counts);
}

}  // namespace dynamiccl::testing
