// SPDX-License-Identifier: Apache-2.0
// The connection between a comparison of libraries and one of their ranks: text lines over a Unix socket
// (docs/benchmarking.md).
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// One end of the connection. It owns the descriptor and is used by one thread.
class ControlLine {
 public:
  explicit ControlLine(UniqueFd fd) : fd_(std::move(fd)) {}
  // Connects to a listener. It is an error when nobody listens at `path`.
  static Result<ControlLine> Connect(const std::string& path);

  // Sends the line and a line break. It is an error (kPeerFailed) when the process at the other end is gone.
  Status Send(std::string_view line);
  // Returns the next line without its line break. The error is kPeerFailed when the process at the other end
  // is gone, and kTimeout after `limit`. With a negative limit the thread sleeps until a line comes.
  Result<std::string> Read(std::chrono::milliseconds limit);

 private:
  UniqueFd fd_;
  // Bytes received after the last complete line.
  std::string pending_;
};

// The socket to which the ranks of one library connect. It owns the descriptor. The socket's file stays in
// the caller's folder.
class ControlListener {
 public:
  // Binds and listens. The path must be shorter than 108 bytes, the limit of sockaddr_un.
  static Result<ControlListener> Open(const std::string& path);
  // Returns the next connection, or the error kTimeout after `limit`.
  Result<ControlLine> Accept(std::chrono::milliseconds limit);
  const std::string& path() const { return path_; }

 private:
  ControlListener(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  UniqueFd fd_;
  std::string path_;
};

}  // namespace dynamiccl
