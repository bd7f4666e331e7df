// SPDX-License-Identifier: Apache-2.0
// The physical memory of all emulated devices of this process: pieces of one sparse, unlinked file, so that a
// world of thousands of allocations needs one file descriptor.
#pragma once

#include <cstddef>
#include <optional>

namespace cuda_standin {

// A share in a piece. The piece is free again, and its pages gone, when all shares were returned; other
// processes that still map it then see what comes after, as no GPU would show it.
struct Piece {
  int file = -1;  // the arena, or another process's
  size_t offset = 0;
};

// Of this process. Nothing when no file can be made. Thread-safe, like all of these.
std::optional<Piece> TakePiece(size_t bytes);
Piece SharePiece(const Piece& piece);
void ReturnPiece(const Piece& piece);

// A new file descriptor that says which piece it is: it stands at the piece's offset. Negative on failure.
int DescribePiece(const Piece& piece);
// The piece that a descriptor from DescribePiece, of this or another process, stands for.
std::optional<Piece> FindPiece(int descriptor);

// A piece as bytes, which another process of the same user understands for as long as this one holds it.
struct PieceName {
  int process = 0;
  Piece piece;
};
PieceName NameOf(const Piece& piece);
std::optional<Piece> FindPiece(const PieceName& name);

}  // namespace cuda_standin
