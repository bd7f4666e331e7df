// SPDX-License-Identifier: Apache-2.0
// A table plan prepared for lookup. Finding what a key's call uses takes two loads and a store, without
// allocation or lock.
#pragma once

#include <cstdint>

#include "src/base/zero_pages.h"
#include "src/decision/guard/table_plan.h"

namespace dynamiccl {

// The config of a call and its purpose.
struct PlannedCall {
  CollectiveConfig config;
  CallUse use = CallUse::kChoice;
};

// The plan of one table version on one rank. The version's decision engine owns it, and only the thread that
// issues the communicator's calls uses it, in the order of the calls. It counts the calls of each key; all
// ranks count alike because all issue the same calls. It cannot fail: keys that the plan does not list use
// the policy's choice or NCCL's.
class PlannedTable {
 public:
  // Has one slot for each possible key: 5 collectives x 8 roles x the size classes, 164 KB. Only the pages of
  // keys that are listed or asked about take memory.
  explicit PlannedTable(TablePlan plan);

  // Returns what the key's call uses. `policy_choice` is used for keys that the plan does not list. Call
  // numbers must not fall. A second question about a key within one call gets the same answer and does not
  // count as a call.
  PlannedCall At(const TableKey& key, const CollectiveConfig& policy_choice, uint64_t call_number);
  // Returns the key's choice, without samples and arms. Does not count a call.
  CollectiveConfig ChoiceOf(const TableKey& key, const CollectiveConfig& policy_choice) const;
  // True if the key's next call, with this number, is to be timed. The caller asks before the call, because
  // the profiler's window opens before NCCL asks about the call. Does not count a call.
  bool TimesNext(const TableKey& key, uint64_t call_number) const;
  const TablePlan& plan() const { return plan_; }

 private:
  // One key; all zero before the first question about it, unless the plan lists it.
  struct Slot {
    uint16_t listed;  // 1 + the index in plan_.keys; 0: the plan does not list the key
    bool asked;
    bool samples;        // the choice is not NCCL's own
    uint32_t ordinal;    // calls of the key before the present one
    uint64_t last_call;  // call number of the last question
  };
  static size_t IndexOf(const TableKey& key);
  const KeyPlan& Listed(const Slot& slot) const { return plan_.keys[slot.listed - size_t{1}]; }

  TablePlan plan_;
  ZeroPages<Slot> slots_;  // indexed by IndexOf
};

}  // namespace dynamiccl
