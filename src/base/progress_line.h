// SPDX-License-Identifier: Apache-2.0
// Shows how far a long computation is. On a terminal one line is overwritten in place; elsewhere, as in a log
// file, a new line is written every few seconds.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "src/base/clock.h"

namespace dynamiccl {

// One program's line, which the program owns and uses from one thread. Call Clear() before anything else is
// written to the terminal.
//
//     progress.Show("structure agent: begins");
//     for (...) {
//       if (progress.IsDue()) progress.Show("structure agent: iteration 7 of 100");
//     }
class ProgressLine {
 public:
  // `stream` and `clock` outlive the line.
  ProgressLine(std::FILE* stream, bool is_terminal, const Clock& clock);
  // The line on standard error, with the clock of the running programs.
  static ProgressLine OnStandardError();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { Clear(); }

  // Returns whether enough time has passed since the last Show(): 0.2 s on a terminal, 5 s elsewhere.
  bool IsDue() const;
  // Writes "dynamiccl: " and `text` at once. `text` has no newline.
  void Show(const std::string& text);
  // Removes the line from a terminal; elsewhere the lines stay.
  void Clear();

 private:
  std::FILE* const stream_;
  const bool is_terminal_;
  const Clock& clock_;
  int64_t shown_ns_;
  bool visible_ = false;
};

// Returns for example "4 min" or "50 s", rounded because the number is an estimate.
std::string RoughTime(double seconds);
// Returns the time left, such as ", about 4 min left", if `done` of `all` equal pieces took `seconds`.
// Returns an empty text before the first piece is done.
std::string TimeLeftText(double seconds, double done, double all);

}  // namespace dynamiccl
