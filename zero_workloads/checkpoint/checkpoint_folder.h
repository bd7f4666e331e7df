// SPDX-License-Identifier: Apache-2.0
// The folder of a run's checkpoints. It knows which checkpoints are complete and where the next one is
// written, and makes that one complete in one atomic step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl::zero {

// Name of the index inside a checkpoint's folder.
inline constexpr const char* kIndexFile = "index";

// A folder of checkpoints, each a subfolder. A checkpoint is written as partial-step-N and renamed to step-N
// when all of it is on the disk. A folder with that name is complete; it may still be damaged later.
//
// Steps(), PathOf() and CheckHas() may be used by any process. Claim(), Commit() and DropPartial() belong to
// one process of a run, rank 0. Errors name the path.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // The steps of complete checkpoints, ascending; none if the folder does not exist. kUnavailable: it cannot
  // be read.
  Result<std::vector<int64_t>> Steps() const;
  std::string PathOf(int64_t step) const;
  // Returns kNotFound, with a list of the existing steps, if the checkpoint of that step is not complete.
  Status CheckHas(int64_t step) const;
  // Folder into which the ranks write their parts of this step.
  std::string PartialPathOf(int64_t step) const;

  // Creates the folder and keeps other runs out of it as long as this object lives (flock). Removes the
  // partial files of runs that ended during a save.
  Status Claim();
  // Turns the partial folder of that step into a checkpoint; its writers have synced its content. Existing
  // checkpoints of this and later steps are set aside, that is renamed and no longer listed: they belong to a
  // run from before the resume. Only the newest `keep` checkpoints stay. One that cannot be removed is
  // reported on standard error.
  Status Commit(int64_t step, int64_t keep) const;
  // Removes the parts of a save that failed. What cannot be removed is left to the next Claim.
  void DropPartial(int64_t step) const;

 private:
  // Renames the checkpoint so that it is no longer listed.
  Status SetAside(int64_t step) const;
  // Removes one checkpoint for good.
  Status Remove(int64_t step) const;
  void RemoveBeyond(const std::vector<int64_t>& steps, int64_t keep) const;

  std::string path_;
  // The locked folder; the lock ends with the descriptor.
  UniqueFd lock_;
};

}  // namespace dynamiccl::zero
