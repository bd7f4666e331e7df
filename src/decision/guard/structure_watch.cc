// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/structure_watch.h"

#include <utility>

namespace dynamiccl {

bool StructureWatch::IsOther(uint64_t digest_of_steps) {
  const ZeroStage stage_before = std::exchange(stage_before_, stage_);
  const bool other_stage = stage_before != ZeroStage::kUnknown && stage_before != stage_;
  const bool changed = std::exchange(changes_before_, changes_) != changes_ || other_stage;
  const bool first = searched_.empty();
  const uint64_t digest = digest_of_steps * kZeroStages + static_cast<uint64_t>(stage_);
  const bool is_new = searched_.insert(digest).second;
  if (first || !changed || !is_new || others_ == kMaxChanges) return false;
  ++others_;
  return true;
}

}  // namespace dynamiccl
