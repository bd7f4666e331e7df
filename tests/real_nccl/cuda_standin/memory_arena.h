// SPDX-License-Identifier: Apache-2.0
// Holds the physical memory of all emulated devices of this process. Allocations are pieces of one sparse,
// unlinked file. Thousands of allocations therefore need only one file descriptor.
#pragma once

#include <cstddef>
#include <optional>

namespace cuda_standin {

// A share in a piece of the file. When all shares are returned, the piece is free and its pages are dropped.
// Another process that still maps the piece then sees the data of the next owner, which no GPU would show.
struct Piece {
  int file = -1;  // this process's file, or another process's
  size_t offset = 0;
  // The host reads and writes the piece through its mappings. True for memory of the host, and for pieces of
  // other processes, of which it is not known.
  bool host_uses = true;
};

// TakePiece takes a piece of this process's file. It returns nothing when the file cannot be made or is full.
// SharePiece adds a share, and ReturnPiece gives one back. All functions of this file are thread-safe.
std::optional<Piece> TakePiece(size_t bytes, bool host_uses);
Piece SharePiece(const Piece& piece);
void ReturnPiece(const Piece& piece);

// Returns a new file descriptor that identifies the piece: its position is the piece's offset. Returns a
// negative number on failure.
int DescribePiece(const Piece& piece);
// Returns a share in the piece of a descriptor that DescribePiece made, in this or another process.
std::optional<Piece> FindPiece(int descriptor);

// A piece as plain bytes. Another process of the same user can find the piece by them while this process
// holds it.
struct PieceName {
  int process = 0;
  Piece piece;
};
PieceName NameOf(const Piece& piece);
std::optional<Piece> FindPiece(const PieceName& name);

}  // namespace cuda_standin
