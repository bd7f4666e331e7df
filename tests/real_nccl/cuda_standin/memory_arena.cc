// SPDX-License-Identifier: Apache-2.0
// Allocates pieces first-fit from a list of free ranges.
#include "tests/real_nccl/cuda_standin/memory_arena.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>

namespace cuda_standin {
namespace {

constexpr size_t kArenaBytes = size_t{1} << 44;  // more than any machine has; untouched pages cost nothing
constexpr size_t kPieceGrain = 2 << 20;  // cuMemGetAllocationGranularity of all GPUs that NCCL supports

struct Held {
  size_t bytes = 0;
  int shares = 0;
};

struct Arena {
  std::mutex mutex;
  int file = -1;
  ino_t inode = 0;
  std::map<size_t, size_t> free;  // bytes of each free range, by offset; ranges are never adjacent
  std::map<size_t, Held> held;    // pieces in use, by offset
};

Arena* MakeArena() {
  auto* arena = new Arena;  // never destroyed: NCCL's threads may free memory while the process exits
  struct stat status = {};
  arena->file = memfd_create("cuda_standin", MFD_CLOEXEC);
  if (arena->file < 0 || ftruncate(arena->file, kArenaBytes) != 0 || fstat(arena->file, &status) != 0)
    return arena;
  arena->inode = status.st_ino;
  arena->free[0] = kArenaBytes;
  return arena;
}

Arena& ThisArena() {
  static Arena* arena = MakeArena();
  return *arena;
}

size_t Rounded(size_t bytes) {
  return (bytes + kPieceGrain - 1) / kPieceGrain * kPieceGrain;
}

void AddFree(Arena& arena, size_t offset, size_t bytes) {
  auto after = arena.free.lower_bound(offset);
  if (after != arena.free.end() && offset + bytes == after->first) {
    bytes += after->second;
    after = arena.free.erase(after);
  }
  if (after != arena.free.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  arena.free[offset] = bytes;
}

}  // namespace

std::optional<Piece> TakePiece(size_t bytes) {
  Arena& arena = ThisArena();
  const size_t rounded = Rounded(bytes);
  const std::lock_guard<std::mutex> lock(arena.mutex);
  for (auto range = arena.free.begin(); range != arena.free.end(); ++range) {
    const auto [offset, room] = *range;
    if (room < rounded) continue;
    arena.free.erase(range);
    if (room > rounded) arena.free[offset + rounded] = room - rounded;
    arena.held[offset] = {rounded, 1};
    return Piece{arena.file, offset};
  }
  return std::nullopt;
}

Piece SharePiece(const Piece& piece) {
  Arena& arena = ThisArena();
  if (piece.file != arena.file) return {dup(piece.file), piece.offset};
  const std::lock_guard<std::mutex> lock(arena.mutex);
  ++arena.held[piece.offset].shares;
  return piece;
}

void ReturnPiece(const Piece& piece) {
  Arena& arena = ThisArena();
  if (piece.file != arena.file) {
    close(piece.file);
    return;
  }
  const std::lock_guard<std::mutex> lock(arena.mutex);
  const auto row = arena.held.find(piece.offset);
  if (row == arena.held.end() || --row->second.shares > 0) return;
  const size_t bytes = row->second.bytes;
  arena.held.erase(row);
  // The system call is made directly, because the stand-in replaces fallocate() (socket_wait.cc).
  syscall(SYS_fallocate, arena.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, piece.offset, bytes);
  AddFree(arena, piece.offset, bytes);
}

int DescribePiece(const Piece& piece) {
  // The file is opened again, because duplicated descriptors share one position.
  const int descriptor = open(("/proc/self/fd/" + std::to_string(piece.file)).c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return -1;
  if (lseek(descriptor, static_cast<off_t>(piece.offset), SEEK_SET) >= 0) return descriptor;
  close(descriptor);
  return -1;
}

std::optional<Piece> FindPiece(int descriptor) {
  Arena& arena = ThisArena();
  struct stat status = {};
  const off_t offset = lseek(descriptor, 0, SEEK_CUR);
  if (offset < 0 || fstat(descriptor, &status) != 0) return std::nullopt;
  if (status.st_ino == arena.inode) return SharePiece({arena.file, static_cast<size_t>(offset)});
  return Piece{dup(descriptor), static_cast<size_t>(offset)};
}

PieceName NameOf(const Piece& piece) {
  return {getpid(), piece};
}

std::optional<Piece> FindPiece(const PieceName& name) {
  if (name.process == getpid()) return SharePiece(name.piece);
  const std::string path = "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.piece.file);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  return Piece{descriptor, name.piece.offset};
}

}  // namespace cuda_standin
