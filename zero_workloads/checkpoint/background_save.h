// SPDX-License-Identifier: Apache-2.0
// Runs one save on a separate thread: it writes this rank's part and, on rank 0, commits the checkpoint once
// all parts exist. Ranks coordinate through files in the folder and use no communicator, so training may
// continue meanwhile.
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

// A save in progress. TrainingCheckpoints owns it and calls it on the training thread; Run() works on the
// save's own thread. A failure, exceptions included, becomes the status that the Wait functions and Failure()
// return.
class BackgroundSave {
 public:
  // How long rank 0 looks for a part after the part's rank has reported it as written. On a network file
  // system a new file may stay invisible for some seconds.
  static constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(10);

  // Starts the save. The numbers to which `content` points must not change until WaitForPart returns.
  // `folder` outlives the object. `retention` says which checkpoints stay after the commit.
  BackgroundSave(const CheckpointFolder& folder, const Retention& retention, PartContent content,
                 std::chrono::milliseconds patience = kPatience);
  // Joins the thread. Rank 0 stops waiting for missing parts; if some are missing, it does not commit.
  ~BackgroundSave();

  // The number of optimizer steps that were done when the checkpoint was taken.
  int64_t step() const { return static_cast<int64_t>(content_.header.step); }
  // Waits until this rank's part is on the disk, or returns why it is not.
  Status WaitForPart();
  // On rank 0, waits until the checkpoint is complete, or returns why it is not. On other ranks, returns
  // without waiting for the commit. Call it when every rank's WaitForPart is known to have succeeded.
  Status WaitForCommit();
  // Wait as the functions above do, but for at most `patience`. They return true if the save has reached that
  // point or has failed.
  bool WaitForPart(std::chrono::milliseconds patience) { return Reaches(Progress::kPartWritten, patience); }
  bool WaitForCommit(std::chrono::milliseconds patience);
  // Returns the failure that the save has had so far, without waiting.
  Status Failure();

 private:
  // Stages of the save in order; WaitFor waits for one of them.
  enum class Progress { kWriting, kPartWritten, kDone };

  void Run();
  Status Write();
  Status Commit();
  // Rank 0 waits until every part exists. Returns false if the destructor ended the wait.
  Result<bool> AwaitParts(const std::string& partial);
  // Publishes a stage together with the status so far.
  void Reach(Progress progress, const Status& status);
  Status WaitFor(Progress progress);
  // Waits for a stage for at most `patience`, and returns whether the save has reached it.
  bool Reaches(Progress progress, std::chrono::milliseconds patience);
  // The first call makes rank 0 stop looking for the other ranks' parts `patience_` later. Further calls do
  // nothing.
  void LimitTheLook();

  const CheckpointFolder& folder_;
  Retention retention_;
  std::chrono::milliseconds patience_;
  PartContent content_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Progress progress_ = Progress::kWriting;
  // Time at which rank 0 stops looking for the other ranks' parts. It is set once every rank has reported its
  // part as written.
  std::optional<std::chrono::steady_clock::time_point> look_until_;
  bool given_up_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace dynamiccl::zero
