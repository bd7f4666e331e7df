// SPDX-License-Identifier: Apache-2.0
// One end of the line protocol between a comparison and a rank (docs/benchmarking.md): text lines over a Unix
// socket.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// Used by one thread.
class ControlLine {
 public:
  explicit ControlLine(UniqueFd fd) : fd_(std::move(fd)) {}
  static Result<ControlLine> Connect(const std::string& path);

  Status Send(std::string_view line);
  // The next line without its end. kPeerFailed when the other side is gone, kTimeout after `limit`; a
  // negative limit waits for ever, asleep.
  Result<std::string> Read(std::chrono::milliseconds limit);

 private:
  UniqueFd fd_;
  std::string pending_;
};

// Where ranks connect.
class ControlListener {
 public:
  static Result<ControlListener> Open(const std::string& path);
  Result<ControlLine> Accept(std::chrono::milliseconds limit);
  const std::string& path() const { return path_; }

 private:
  ControlListener(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  UniqueFd fd_;
  std::string path_;
};

}  // namespace dynamiccl
