// SPDX-License-Identifier: Apache-2.0
// The exit codes of every program of the project. Scripts may rely on them.
#pragma once

#include "src/base/status.h"

namespace dynamiccl {

inline constexpr int kExitOk = 0;
// The check ran and its answer is no, for example a comparison that finds a difference.
inline constexpr int kExitResultSaysNo = 1;
// A wrong option, setting or file: the user can correct the command.
inline constexpr int kExitUsage = 2;
// The build or the machine lacks something that the command needs.
inline constexpr int kExitEnvironment = 3;
// The job that the command started failed; the message states the job's own exit code.
inline constexpr int kExitJobFailed = 4;
// Exit code of an interrupted command: this number plus the signal's number, as for shells.
inline constexpr int kExitSignalBase = 128;

// Exit code of a command that ended with an error of this kind.
constexpr int ExitCodeOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
    case ErrorKind::kNotFound:
    case ErrorKind::kCorrupt:
      return kExitUsage;
    case ErrorKind::kUnsupported:
    case ErrorKind::kUnavailable:
    case ErrorKind::kInternal:
      return kExitEnvironment;
    case ErrorKind::kTimeout:
    case ErrorKind::kPeerFailed:
      return kExitJobFailed;
  }
  return kExitEnvironment;
}

}  // namespace dynamiccl
