// SPDX-License-Identifier: Apache-2.0
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

#include "tests/real_nccl/cuda_standin/free_ranges.h"

namespace cuda_standin {
namespace {

constexpr size_t kArenaBytes = size_t{1} << 44;  // more than any machine has; untouched pages cost nothing
constexpr size_t kPieceGrain = 2 << 20;  // cuMemGetAllocationGranularity of all GPUs that NCCL supports

struct Held {
  size_t bytes = 0;
  int shares = 0;
  bool host_uses = true;
};

struct Arena {
  std::mutex mutex;
  int file = -1;
  ino_t inode = 0;
  FreeRanges free;
  std::map<size_t, Held> held;  // pieces in use, by offset
};

Arena* MakeArena() {
  auto* arena = new Arena;  // never destroyed: NCCL's threads may free memory while the process exits
  struct stat status = {};
  arena->file = memfd_create("cuda_standin", MFD_CLOEXEC);
  if (arena->file < 0 || ftruncate(arena->file, kArenaBytes) != 0 || fstat(arena->file, &status) != 0)
    return arena;
  arena->inode = status.st_ino;
  arena->free.Return(0, kArenaBytes);
  return arena;
}

Arena& ThisArena() {
  static Arena* arena = MakeArena();
  return *arena;
}

size_t Rounded(size_t bytes) {
  return (bytes + kPieceGrain - 1) / kPieceGrain * kPieceGrain;
}

}  // namespace

std::optional<Piece> TakePiece(size_t bytes, bool host_uses) {
  Arena& arena = ThisArena();
  const size_t rounded = Rounded(bytes);
  const std::lock_guard<std::mutex> lock(arena.mutex);
  const auto offset = arena.free.Take(rounded, kPieceGrain);
  if (!offset) return std::nullopt;
  arena.held[*offset] = {rounded, 1, host_uses};
  return Piece{arena.file, *offset, host_uses};
}

Piece SharePiece(const Piece& piece) {
  Arena& arena = ThisArena();
  if (piece.file != arena.file) return {dup(piece.file), piece.offset};
  const std::lock_guard<std::mutex> lock(arena.mutex);
  Held& held = arena.held[piece.offset];
  ++held.shares;
  return {piece.file, piece.offset, held.host_uses};
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
  arena.free.Return(piece.offset, bytes);
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
