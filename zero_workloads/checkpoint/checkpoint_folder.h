// SPDX-License-Identifier: Apache-2.0
// The folder of a run's checkpoints: which are complete, where the next one is written, and how it becomes
// complete in one step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl::zero {

inline constexpr const char* kIndexFile = "index";

// A checkpoint is a folder step-NNNNNNNN, written under another name and renamed when everything in it is on
// the disk. What has that name is complete; it may still be damaged later.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Complete checkpoints, by optimizer steps done, ascending; none where the folder does not exist.
  // kUnavailable where it cannot be read.
  Result<std::vector<int64_t>> Steps() const;
  std::string PathOf(int64_t step) const;
  // kNotFound, and what there is, where that step is not complete.
  Status CheckHas(int64_t step) const;
  // Where the ranks write their parts of this step.
  std::string PartialPathOf(int64_t step) const;

  // One process of a run: makes the folder, keeps other runs out of it as long as this object lives, and
  // removes what a run that ended in a save left behind.
  Status Claim();
  // The partial folder's content, synced by its writers, becomes the checkpoint of that step. Checkpoints of
  // later steps, of a course that the run has left, and an older one of the same step are set aside: renamed,
  // and no longer listed. Then only the newest `keep` stay; an older one that cannot be removed is a line on
  // standard error.
  Status Commit(int64_t step, int64_t keep) const;
  // After a save that failed. What cannot be removed stays: the next Claim tries again.
  void DropPartial(int64_t step) const;

 private:
  Status SetAside(int64_t step) const;
  Status Remove(int64_t step) const;
  void RemoveBeyond(const std::vector<int64_t>& steps, int64_t keep) const;

  std::string path_;
  UniqueFd lock_;
};

}  // namespace dynamiccl::zero
