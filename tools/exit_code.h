// SPDX-License-Identifier: Apache-2.0
// The exit codes of every program of the project.
#pragma once

#include "src/base/status.h"

namespace dynamiccl {

inline constexpr int kExitOk = 0;
inline constexpr int kExitResultSaysNo = 1;  // the check ran and the answer is no
inline constexpr int kExitUsage = 2;         // wrong option, setting or file
inline constexpr int kExitEnvironment = 3;   // the build or the machine lacks something
inline constexpr int kExitJobFailed = 4;     // the job's own failure; its code is in the message
inline constexpr int kExitSignalBase = 128;  // plus the signal's number

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
