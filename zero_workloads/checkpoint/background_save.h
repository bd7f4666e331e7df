// SPDX-License-Identifier: Apache-2.0
// One save on a thread of its own: this rank's part, and on rank 0 the commit once all parts are there. Ranks
// meet in the folder: no communicator is used.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "src/base/status.h"
#include "zero_workloads/checkpoint/checkpoint_folder.h"
#include "zero_workloads/checkpoint/part_writer.h"

namespace dynamiccl::zero {

class BackgroundSave {
 public:
  // How long rank 0 looks for a part that its rank has written: a network file system may deny a new file for
  // some seconds.
  static constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(10);

  // The numbers that `content` points to stay as they are until WaitForPart returns. `folder` outlives this.
  BackgroundSave(const CheckpointFolder& folder, int64_t keep, PartContent content,
                 std::chrono::milliseconds patience = kPatience);
  // Rank 0 waits for missing parts no longer: without them there is no commit.
  ~BackgroundSave();

  int64_t step() const { return static_cast<int64_t>(content_.header.step); }
  // This rank's part is on the disk, or why not.
  Status WaitForPart();
  // Called when it is known that every rank's WaitForPart succeeded: rank 0's checkpoint is complete, or why
  // not; other ranks have nothing to wait for.
  Status WaitForCommit();
  // What has failed so far.
  Status Failure();

 private:
  enum class Progress { kWriting, kPartWritten, kDone };

  void Run();
  Status Write();
  Status Commit();
  // Rank 0: until every part is there. False: given up.
  Result<bool> AwaitParts(const std::string& partial);
  void Reach(Progress progress, const Status& status);
  Status WaitFor(Progress progress);

  const CheckpointFolder& folder_;
  int64_t keep_;
  std::chrono::milliseconds patience_;
  PartContent content_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Progress progress_ = Progress::kWriting;
  // Set once every rank has said that its part is written.
  std::optional<std::chrono::steady_clock::time_point> look_until_;
  bool given_up_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace dynamiccl::zero
