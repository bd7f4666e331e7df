// SPDX-License-Identifier: Apache-2.0
// The save's thread writes this rank's part. On rank 0 it then polls for the other parts, merges their
// indices and renames the folder. `mutex_` guards progress_, look_until_, given_up_ and status_.
#include "zero_workloads/checkpoint/background_save.h"

#include <exception>

namespace dynamiccl::zero {
namespace {

// Pause between two checks of rank 0 for the other ranks' parts. Training does not wait for it.
constexpr auto kPause = std::chrono::milliseconds(20);

}  // namespace

BackgroundSave::BackgroundSave(const CheckpointFolder& folder, const Retention& retention,
                               PartContent content, std::chrono::milliseconds patience)
    : folder_(folder),
      retention_(retention),
      patience_(patience),
      content_(std::move(content)),
      thread_([this] { Run(); }) {}

BackgroundSave::~BackgroundSave() {
  {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// Runs on the save's own thread and catches all exceptions. An exception that left the thread would end the
// process, and any allocation here may fail.
void BackgroundSave::Run() {
  Status outcome;
  try {
    outcome = Write();
  } catch (const std::exception& failure) {
    outcome = MakeError(ErrorKind::kUnavailable, "{}: {}", folder_.PartialPathOf(step()), failure.what());
  }
  Reach(Progress::kDone, outcome);
}

Status BackgroundSave::Write() {
  DYNAMICCL_CHECK_OK(WritePart(folder_.PartialPathOf(step()), content_));
  Reach(Progress::kPartWritten, {});
  return content_.header.rank == 0 ? Commit() : Status();
}

Status BackgroundSave::Commit() {
  const std::string partial = folder_.PartialPathOf(step());
  DYNAMICCL_TRY(const bool complete, AwaitParts(partial));
  if (!complete) return {};
  DYNAMICCL_CHECK_OK(WriteIndexOfParts(partial, content_.header.world));
  return folder_.Commit(step(), retention_);
}

Result<bool> BackgroundSave::AwaitParts(const std::string& partial) {
  while (!AllPartsWritten(partial, content_.header.world)) {
    std::unique_lock lock(mutex_);
    if (given_up_) return false;
    if (look_until_ && std::chrono::steady_clock::now() > *look_until_) {
      return WithHint(MakeError(ErrorKind::kUnavailable, "{}: the part of another rank is not here", partial),
                      "--checkpoint-dir must be one folder that all hosts share");
    }
    changed_.wait_for(lock, kPause);
  }
  return true;
}

void BackgroundSave::Reach(Progress progress, const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    progress_ = progress;
    status_ = status;
  }
  changed_.notify_all();
}

Status BackgroundSave::WaitFor(Progress progress) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return progress_ >= progress; });
  return status_;
}

bool BackgroundSave::Reaches(Progress progress, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return progress_ >= progress; });
}

Status BackgroundSave::WaitForPart() {
  return WaitFor(Progress::kPartWritten);
}

void BackgroundSave::LimitTheLook() {
  {
    const std::lock_guard lock(mutex_);
    if (!look_until_) look_until_ = std::chrono::steady_clock::now() + patience_;
  }
  changed_.notify_all();
}

Status BackgroundSave::WaitForCommit() {
  LimitTheLook();
  return WaitFor(Progress::kDone);
}

bool BackgroundSave::WaitForCommit(std::chrono::milliseconds patience) {
  LimitTheLook();
  return Reaches(Progress::kDone, patience);
}

Status BackgroundSave::Failure() {
  const std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace dynamiccl::zero
