// SPDX-License-Identifier: Apache-2.0
// A plan made ready for calls: what a key's call uses is two loads and a store away, without allocation or
// lock. Asked by the thread that issues the communicator's calls, in their order.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/decision/guard/table_plan.h"

namespace dynamiccl {

struct PlannedCall {
  CollectiveConfig config;
  CallUse use = CallUse::kChoice;
};

class PlannedTable {
 public:
  explicit PlannedTable(TablePlan plan);

  // `policy_choice` counts for keys that the plan does not list. A key's calls are counted by their call
  // numbers: to be asked twice within a call changes nothing. Call numbers do not fall.
  PlannedCall At(const TableKey& key, const CollectiveConfig& policy_choice, uint64_t call_number);
  // What the key uses but for samples and trials; counts nothing.
  CollectiveConfig ChoiceOf(const TableKey& key, const CollectiveConfig& policy_choice) const;
  // Whether the key's next call is to be timed: the profiler's window opens before NCCL asks about the call.
  // Counts nothing.
  bool TimesNext(const TableKey& key) const;
  const TablePlan& plan() const { return plan_; }

 private:
  static constexpr uint16_t kNotListed = 0xffff;
  struct Slot {
    uint16_t listed = kNotListed;  // index in plan_.keys
    bool asked = false;
    bool samples = false;  // the choice is not NCCL's own
    uint32_t ordinal = 0;
    uint64_t last_call = 0;
  };
  static size_t IndexOf(const TableKey& key);

  TablePlan plan_;
  uint64_t first_call_ = 0;
  bool begun_ = false;
  std::vector<Slot> slots_;  // by IndexOf
};

}  // namespace dynamiccl
