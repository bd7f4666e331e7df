// SPDX-License-Identifier: Apache-2.0
// The tables of one communicator in adaptive mode, by version, and the gate at which its calls go from one to
// the next.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "src/decision/decision_digest.h"
#include "src/decision/decision_engine.h"
#include "src/decision/switching/call_gate.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// The table that all ranks attested at the start; version 0 is NCCL's own choice.
inline constexpr uint32_t kFirstTableVersion = 1;

struct VersionedTable {
  DecisionEngine* engine = nullptr;  // null: NCCL's choice
  uint32_t version = kDefaultTableVersion;
};

class SwitchableTables {
 public:
  // Makes a table of this communicator from a policy and what the version says beside it: a pure function of
  // these and of attested values. Null: this rank cannot, so no rank uses it.
  using EngineOf = std::function<std::shared_ptr<DecisionEngine>(const std::shared_ptr<const Policy>& policy,
                                                                 std::span<const std::byte> plan)>;

  SwitchableTables(std::shared_ptr<DecisionEngine> first, EngineOf engine_of);

  // Issuing thread: call `number` begins; waits at the boundary of a switch for its verdict. One store and
  // one load otherwise. Then `current` holds for the call. True when it is another than before.
  bool Enter(uint64_t number);
  const VersionedTable& current() const { return current_; }
  // That the table in use is made from; null: NCCL's choice, or the first table.
  const std::shared_ptr<const Policy>& policy() const { return policy_; }
  // Of what was decided: the issuing thread adds, the control thread looks.
  DecisionDigest& digest() { return digest_; }

  // Control thread. True when there is a table of this version, which is made unless there is.
  bool Offer(uint32_t version, const std::shared_ptr<const Policy>& policy, std::span<const std::byte> plan);
  bool OfferNcclsChoice(uint32_t version);
  // `version` was committed: what is older than the one before it is needed by no call.
  void Committed(uint32_t version);
  CallGate& gate() { return gate_; }

 private:
  struct Table {
    std::shared_ptr<DecisionEngine> engine;  // null: NCCL's choice
    std::shared_ptr<const Policy> policy;
  };

  CallGate gate_{kFirstTableVersion};
  const EngineOf engine_of_;
  DecisionDigest digest_;
  VersionedTable current_;                   // issuing thread
  std::shared_ptr<const Policy> policy_;     // likewise
  uint32_t committed_ = kFirstTableVersion;  // control thread
  std::mutex mutex_;                         // guards tables_; taken by the issuing thread only at a switch
  std::map<uint32_t, Table> tables_;
};

}  // namespace dynamiccl
