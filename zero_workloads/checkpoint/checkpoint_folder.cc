// SPDX-License-Identifier: Apache-2.0
// Atomicity rests on rename(2) and on fsync of the folder. Commit() works in this order: sync the content,
// set newer checkpoints aside, rename, sync the folder, remove old checkpoints. The fail points between these
// steps let tests interrupt each of them.
#include "zero_workloads/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "src/base/fail_point.h"
#include "zero_workloads/checkpoint/data_file.h"

namespace dynamiccl::zero {
namespace fs = std::filesystem;
namespace {

// Prefixes of folder names: a complete checkpoint, one that is being written, one that is being removed, and
// one that was set aside.
constexpr std::string_view kComplete = "step-", kPartial = "partial-step-", kRemoved = "removed-step-";
constexpr std::string_view kSetAside = "set-aside-step-";
// Number of digits of a step in a folder's name, so that names sort by step. Names with more digits are read
// as well.
constexpr int kDigits = 8;

std::string Name(std::string_view prefix, int64_t step) {
  return fmt::format("{}{:0{}}", prefix, step, kDigits);
}

// Returns the step in the name of a complete checkpoint; -1 for any other name.
int64_t StepOf(const std::string& name) {
  if (!name.starts_with(kComplete)) return -1;
  int64_t step = -1;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kComplete.size(), end, step);
  return parsed.ec == std::errc() && parsed.ptr == end ? step : -1;
}

Status Rename(const std::string& from, const std::string& to) {
  std::error_code failure;
  fs::rename(from, to, failure);
  if (failure) return MakeError(ErrorKind::kUnavailable, "{} to {}: {}", from, to, failure.message());
  return {};
}

// Names in a folder; none if it does not exist.
Result<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  // A range-based for loop would throw on an error, because it increments the iterator without an error code.
  for (fs::directory_iterator entry(folder, failure); !failure && entry != fs::directory_iterator();) {
    names.push_back(entry->path().filename().string());
    entry.increment(failure);
  }
  if (failure && failure != std::errc::no_such_file_or_directory) {
    return CannotReadCheckpoint(folder, failure.message());
  }
  return names;
}

}  // namespace

Result<std::vector<int64_t>> CheckpointFolder::Steps() const {
  DYNAMICCL_TRY(const std::vector<std::string> names, NamesIn(path_));
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    const int64_t step = StepOf(name);
    if (step >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string CheckpointFolder::PathOf(int64_t step) const {
  return path_ + "/" + Name(kComplete, step);
}

Status CheckpointFolder::CheckHas(int64_t step) const {
  DYNAMICCL_TRY(const std::vector<int64_t> steps, Steps());
  if (std::find(steps.begin(), steps.end(), step) != steps.end()) return {};
  const std::string have = steps.empty() ? "none at all" : fmt::format("{}", fmt::join(steps, ", "));
  return MakeError(ErrorKind::kNotFound, "{}: no complete checkpoint of step {}; there is {}", path_, step,
                   have);
}

std::string CheckpointFolder::PartialPathOf(int64_t step) const {
  return path_ + "/" + Name(kPartial, step);
}

Status CheckpointFolder::Claim() {
  std::error_code failure;
  fs::create_directories(path_, failure);
  lock_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A folder that can be read but not written would fail the first save, after many steps of training.
  if (!lock_.valid() || ::faccessat(AT_FDCWD, path_.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "--checkpoint-dir {}: {}", path_, ErrnoText(errno)),
        "name a folder that may be written to, or that can be made");
  }
  // On a file system without locks (ENOLCK, EOPNOTSUPP) other runs cannot be kept out; the run continues
  // without this protection.
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "--checkpoint-dir {}: another run writes there", path_),
        "end that run, or name another folder");
  }
  DYNAMICCL_TRY(const std::vector<std::string> names, NamesIn(path_));
  for (const std::string& name : names) {
    const bool left_behind = name.starts_with(kPartial) || name.starts_with(kRemoved);
    if (left_behind) fs::remove_all(path_ + "/" + name, failure);
  }
  return {};
}

Status CheckpointFolder::SetAside(int64_t step) const {
  const std::string first = path_ + "/" + Name(kSetAside, step);
  std::string aside = first;
  std::error_code failure;
  // An earlier run may have set aside a checkpoint of the same step. Only the user removes such a checkpoint,
  // so this one gets a number as well.
  for (int number = 2; fs::exists(aside, failure); ++number) aside = fmt::format("{}.{}", first, number);
  return Rename(PathOf(step), aside);
}

// The folder is renamed first, and the rename is synced to the disk, so that an interrupted removal leaves
// nothing that looks like a complete checkpoint.
Status CheckpointFolder::Remove(int64_t step) const {
  const std::string removed = path_ + "/" + Name(kRemoved, step);
  DYNAMICCL_CHECK_OK(Rename(PathOf(step), removed));
  DYNAMICCL_CHECK_OK(SyncFolder(path_));
  PassFailPoint(FailPoint::kCheckpointRemoving);
  std::error_code failure;
  fs::remove_all(removed, failure);
  if (failure) return MakeError(ErrorKind::kUnavailable, "{}: {}", removed, failure.message());
  return {};
}

void CheckpointFolder::RemoveBeyond(const std::vector<int64_t>& steps, int64_t keep) const {
  for (size_t i = 0; static_cast<int64_t>(steps.size() - i) > keep; ++i) {
    const Status removed = Remove(steps[i]);
    if (removed) continue;
    fmt::print(stderr, "the checkpoint of step {} stays: {}\n", steps[i], removed.error().message);
  }
}

Status CheckpointFolder::Commit(int64_t step, const Retention& retention) const {
  DYNAMICCL_CHECK_OK(SyncFolder(PartialPathOf(step)));
  DYNAMICCL_TRY(std::vector<int64_t> steps, Steps());
  const int64_t newest = std::min(retention.newest_own, step - 1);
  for (; !steps.empty() && steps.back() > newest; steps.pop_back())
    DYNAMICCL_CHECK_OK(SetAside(steps.back()));
  PassFailPoint(FailPoint::kCheckpointCommit);
  DYNAMICCL_CHECK_OK(Rename(PartialPathOf(step), PathOf(step)));
  DYNAMICCL_CHECK_OK(SyncFolder(path_));
  PassFailPoint(FailPoint::kCheckpointCommitted);
  steps.push_back(step);
  RemoveBeyond(steps, retention.keep);
  return {};
}

void CheckpointFolder::DropPartial(int64_t step) const {
  std::error_code failure;
  fs::remove_all(PartialPathOf(step), failure);
}

}  // namespace dynamiccl::zero
