// SPDX-License-Identifier: Apache-2.0
// The folder of a run's checkpoints. It knows which checkpoints are complete and where the next one is
// written. It completes a checkpoint in one atomic step.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl::zero {

// Name of the index inside a checkpoint's folder.
inline constexpr const char* kIndexFile = "index";

// Says which checkpoints stay when a new one is complete.
struct Retention {
  // Number of the newest checkpoints that stay, the new one included.
  int64_t keep = 1;
  // Step of the newest checkpoint that this run has saved or continued from. The run is not a continuation of
  // any newer checkpoint.
  int64_t newest_own = std::numeric_limits<int64_t>::max();
};

// A folder of checkpoints, each a subfolder. A checkpoint is written as partial-step-N. When all of it is on
// the disk, the subfolder is renamed to step-N. A subfolder with that name is complete, but it may be damaged
// later.
//
// Steps(), PathOf() and CheckHas() may be used by any process. Claim(), Commit() and DropPartial() belong to
// one process of a run, rank 0. Errors name the path.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Returns the steps of the complete checkpoints, ascending. If the folder does not exist, there are none.
  // The error is kUnavailable if the folder cannot be read.
  Result<std::vector<int64_t>> Steps() const;
  std::string PathOf(int64_t step) const;
  // Returns kNotFound if there is no complete checkpoint of this step. The message lists the existing steps.
  Status CheckHas(int64_t step) const;
  // Folder into which the ranks write their parts of this step.
  std::string PartialPathOf(int64_t step) const;

  // Creates the folder and keeps other runs out of it as long as this object lives (flock). Removes the
  // partial files of runs that ended during a save.
  Status Claim();
  // Turns the partial folder of this step into a checkpoint. Its writers must have synced its content.
  // Existing checkpoints of this and later steps, and all that are newer than `retention.newest_own`, belong
  // to a run from before the resume. They are set aside: renamed and no longer listed. Of the other
  // checkpoints, the newest `retention.keep` stay. If an old checkpoint cannot be removed, this is reported
  // on standard error.
  Status Commit(int64_t step, const Retention& retention) const;
  // Removes the parts of a save that failed. Files that cannot be removed are left to the next Claim.
  void DropPartial(int64_t step) const;

 private:
  // Renames the checkpoint so that it is no longer listed.
  Status SetAside(int64_t step) const;
  // Removes one checkpoint for good.
  Status Remove(int64_t step) const;
  void RemoveBeyond(const std::vector<int64_t>& steps, int64_t keep) const;

  std::string path_;
  // Descriptor of the locked folder. Closing it releases the lock.
  UniqueFd lock_;
};

}  // namespace dynamiccl::zero
