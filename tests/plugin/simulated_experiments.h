// SPDX-License-Identifier: Apache-2.0
// Simulates the life of a communicator in mode adaptive, with experiments, in virtual time. The leader's
// guard receives calls, times and stamps late or never, and proposes table versions. The plan of a version is
// sent as bytes, and each rank makes its own table of it. A rank decides by this table, by the role that it
// recognised and by the agreed level of memory. All of this is the shipped code. The program, the fabric and
// the faults are drawn from a seed.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "plugin/runtime/switchable_tables.h"
#include "src/decision/guard/guard.h"
#include "src/decision/guard/memory_level.h"
#include "src/decision/guard/timed_calls.h"
#include "tests/plugin/simulated_program.h"
#include "tests/src/decision/switching/simulated_communicator.h"
#include "tests/src/decision/switching/simulated_seeds.h"
#include "tests/src/decision/switching/wrong_members.h"

namespace dynamiccl::testing {

// The first rule is the shipped one. Each of the others makes ranks use something that they did not agree on.
enum class ExperimentRule {
  kAgreed,
  kLeaderUsesProposals,  // the leader's rank uses a proposed plan at once
  kArmsByOwnClock,       // a rank's own clock decides in which steps calls use the choice and no arm
  kOwnMemory,            // rules read the rank's own level of memory
};

class SimulatedExperiments : public SimulatedCommunicator<SwitchMember, StepsOnCallingThread> {
 public:
  // An experiment needs some hundred calls on each rank.
  static constexpr int64_t kLeastDecisions = 2'000;
  static constexpr int64_t kMostDecisions = 100'000;

  SimulatedExperiments(uint64_t seed, uint64_t decisions, ExperimentRule rule);

 private:
  struct Offered {
    bool brings_values = false;
    MemoryPressure memory = MemoryPressure::kUnknown;
    std::vector<std::byte> plan;
  };
  struct Report {
    int64_t due_ns = 0;
    int reporter = 0;
    CallTime time;
  };
  static bool DueLater(const Report& one, const Report& other) { return one.due_ns > other.due_ns; }

  uint64_t DecisionOf(Rank& rank) override;
  void Request() override;
  void LeaderWorks() override;
  void TakeOutcome(const SwitchOutcome& outcome) override;
  bool Offer(Rank& rank, uint32_t version) override;
  void Committed(Rank& rank) override;

  SwitchableTables& TablesOf(const Rank& rank) { return *tables_[static_cast<size_t>(rank.index)]; }
  std::shared_ptr<DecisionEngine> NewEngine(std::span<const std::byte> plan, bool has_plan) const;
  KeyKnowledge Knowledge(const TableKey& key) const;
  // Returns the rank's answer to NCCL's question about the call. Sets `timed` to whether the rank times the
  // call.
  Decision Answer(Rank& rank, const DecisionKey& key, bool& timed);
  void Note(const Rank& rank, const DecisionKey& key, const Decision& decision, bool timed);
  // Passes the call to the guard, on the leader's rank, and advances the clock of that rank's device.
  void Feed(const DecisionKey& key, const Decision& decision, bool timed);
  // Sends a time or a stamp of a rank to the leader, or loses it.
  void AddReport(int reporter, const CallTime& time);
  void TakeReports();
  void Propose();
  // Forgets a proposal that the leader dropped without an attempt.
  void ForgetDropped();
  void CountVersion(const Proposal& proposal);

  const ExperimentRule rule_;
  const SimulatedProgram program_;
  std::vector<std::unique_ptr<SwitchableTables>> tables_;  // by rank
  std::vector<MemoryLevel> memory_;                        // by rank
  Guard guard_;
  CallFeed feed_;
  TimedCalls timed_;
  std::vector<Report> reports_;  // a heap with the earliest report first
  std::map<uint32_t, Offered> offers_;
  std::optional<std::pair<uint32_t, Proposal>> pending_;
  std::shared_ptr<DecisionEngine> early_;  // newest proposed plan, under kLeaderUsesProposals
  int64_t device_ns_ = 0;                  // the clock of the leader's device
  std::optional<uint32_t> memory_version_;
  MemoryPressure leader_memory_ = MemoryPressure::kUnknown;
};

std::span<const Protocol<SimulationCounts>> ExperimentProtocols();

}  // namespace dynamiccl::testing
