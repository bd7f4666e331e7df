// SPDX-License-Identifier: Apache-2.0
// The tables and live values of one communicator in mode adaptive, by version, and the gate at which its
// calls change from one version to the next (docs/switching.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "src/decision/agreed_values.h"
#include "src/decision/decision_digest.h"
#include "src/decision/decision_engine.h"
#include "src/decision/switching/call_gate.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// The version of the table that all ranks attested at the start. Version 0 is NCCL's own choice.
inline constexpr uint32_t kFirstTableVersion = 1;

// The table that decides a call. The pointer is valid during the call: a table is freed only when the
// successor of its successor is committed.
struct VersionedTable {
  DecisionEngine* engine = nullptr;         // null: NCCL's choice
  uint32_t version = kDefaultTableVersion;  // the version that brought this table
  // The level of memory pressure on which the ranks had agreed when the call was made. A later version may
  // keep the table and change the level.
  MemoryPressure memory = MemoryPressure::kUnknown;
};

// Shared by the communicator and the switch thread. The issuing thread enters with each call and takes a lock
// only at a switch. The switch thread makes tables and commits versions.
class SwitchableTables {
 public:
  // Makes a table of this communicator from a policy (null: NCCL's choices) and the version's plan. The
  // result must depend only on these and on attested values. Null means that this rank cannot make the table;
  // then no rank uses it.
  using EngineOf = std::function<std::shared_ptr<DecisionEngine>(const std::shared_ptr<const Policy>& policy,
                                                                 std::span<const std::byte> plan)>;

  SwitchableTables(std::shared_ptr<DecisionEngine> first, EngineOf engine_of);

  // Issuing thread: call `number` begins. At the boundary of a switch this waits for the verdict; otherwise
  // it is one store and one load. Afterwards `current` is the table for this call. Returns true if this table
  // differs from the table before. A call that has not been issued yet may be entered several times, so that
  // the program can ask for the values that apply to its next call.
  bool Enter(uint64_t number);
  const VersionedTable& current() const { return current_; }
  // The live values of the version that was entered; null: none were agreed.
  const AgreedValues* values() const { return values_.get(); }
  // The policy of the table in use; null: NCCL's choices, or the first table.
  const std::shared_ptr<const Policy>& policy() const { return policy_; }
  // Digests of the decisions: the issuing thread adds decisions, and the switch thread sends digests to the
  // leader.
  DecisionDigest& digest() { return digest_; }

  // The switch thread calls Offer, OfferNcclsChoice or OfferValues right before SwitchMember::Prepare. A
  // version that brings no values, or no table, keeps those of the version that is committed at that time.
  // Offer makes the table of this version, unless it exists. It returns false if this rank cannot make it.
  bool Offer(uint32_t version, const std::shared_ptr<const Policy>& policy, std::span<const std::byte> plan);
  // Offers a version that leaves every call to NCCL. It always returns true.
  bool OfferNcclsChoice(uint32_t version);
  // Offers a version that keeps the table and brings live values. It always returns true.
  bool OfferValues(uint32_t version, const AgreedValues& values);
  // Switch thread: `version` was committed. Frees tables that no call needs any more, which are those before
  // the previous committed one.
  void Committed(uint32_t version);
  CallGate& gate() { return gate_; }
  // Any thread: the live values of the committed version.
  AgreedValues CommittedValues();

 private:
  struct Version {
    std::shared_ptr<DecisionEngine> engine;  // null: NCCL's choice
    std::shared_ptr<const Policy> policy;
    uint32_t table = kDefaultTableVersion;       // the version that brought the engine
    std::shared_ptr<const AgreedValues> values;  // null: none were agreed
  };

  // Lets a version that brings a table keep the live values of the committed version. A rank that pledges a
  // version has committed every earlier version that any rank has committed. So all ranks keep the same
  // values. The caller holds the lock.
  void KeepValues(uint32_t version);

  CallGate gate_{kFirstTableVersion};
  const EngineOf engine_of_;
  DecisionDigest digest_;
  // Only the issuing thread uses the next four members.
  uint32_t entered_ = kFirstTableVersion;
  VersionedTable current_;
  std::shared_ptr<const Policy> policy_;
  std::shared_ptr<const AgreedValues> values_;
  uint32_t committed_ = kFirstTableVersion;  // control thread
  std::mutex mutex_;                         // guards versions_; taken by the issuing thread only at a switch
  std::map<uint32_t, Version> versions_;
};

}  // namespace dynamiccl
