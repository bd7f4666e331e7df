// SPDX-License-Identifier: Apache-2.0
#include "tests/zero_workloads/rank_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace dynamiccl::zero {

RankServer& RankServer::With(const std::string& preload) {
  static std::map<std::string, std::unique_ptr<RankServer>> servers;
  auto& server = servers[preload];
  if (!server) server.reset(new RankServer(preload));
  return *server;
}

RankServer::RankServer(const std::string& preload) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  EXPECT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  if (::fork() == 0) {
    ::close(ends[0]);
    ::setenv("FORK_SERVER_FD", std::to_string(ends[1]).c_str(), 1);
    ::setenv("LD_PRELOAD", (std::string(FORK_SERVER_LIBRARY) + ":" + preload).c_str(), 1);
    ::execl(DYNAMICCL_ZERO_PROGRAM, DYNAMICCL_ZERO_PROGRAM, nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  socket_ = UniqueFd(ends[0]);
  ::fcntl(socket_.get(), F_SETFD, FD_CLOEXEC);
}

pid_t RankServer::Start(const std::vector<std::string>& arguments,
                        const std::map<std::string, std::string>& environment, const std::string& output,
                        int timeout_seconds) {
  std::string request;
  const auto add = [&](const std::string& word) { request.append(word.c_str(), word.size() + 1); };
  add(std::to_string(timeout_seconds));
  add(output);
  add(std::to_string(environment.size()));
  for (const auto& [name, value] : environment) add(name + '=' + value);
  for (const std::string& argument : arguments) add(argument);
  pid_t rank = -1;
  const auto bytes = static_cast<ssize_t>(request.size());
  if (request.size() > kMaxRequestBytes ||
      ::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) != bytes ||
      ::recv(socket_.get(), &rank, sizeof(rank), 0) != static_cast<ssize_t>(sizeof(rank)) || rank <= 0) {
    throw std::runtime_error("the fork server started no rank: " + output);
  }
  return rank;
}

}  // namespace dynamiccl::zero
