// SPDX-License-Identifier: Apache-2.0
// Finds the running jobs by the names of their sockets in /proc/net/unix and talks to one of them. See
// link_client.h.
#include "src/transport/link_client.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

namespace dynamiccl {
namespace {

// In milliseconds. The server answers within 1 ms unless its machine is overloaded.
constexpr int64_t kAnswerMs = 5000;

}  // namespace

std::vector<pid_t> ProcessesWithLinks() {
  std::vector<pid_t> processes;
  const std::string mark = "@" + LinkSocketPrefix();
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const size_t at = line.find(mark);
    if (at == std::string::npos) continue;
    pid_t process = 0;
    const char* const end = line.data() + line.size();
    const auto parsed = std::from_chars(line.data() + at + mark.size(), end, process);
    if (parsed.ec == std::errc() && parsed.ptr == end) processes.push_back(process);
  }
  std::sort(processes.begin(), processes.end());
  // /proc/net/unix lists the socket's name once more for each connection that is being served.
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  return processes;
}

Result<LinkAnswer> AskForLinks(pid_t process, const LinkRequest& request) {
  const Deadline deadline = Deadline::After(kAnswerMs);
  const auto socket = ConnectAbstract(LinkSocketPrefix() + std::to_string(process));
  if (!socket) {
    return WithHint(
        MakeError(ErrorKind::kNotFound, "process {} has no emulated links that can be changed", process),
        "name the process of rank 0 of a job whose HOSTCCL_TOPOLOGY shapes links; `dynamiccl link "
        "show` lists them");
  }
  DYNAMICCL_CHECK_OK(CheckPeerUser(socket->get()));
  DYNAMICCL_CHECK_OK(SendLinkMessage(socket->get(), Encode(request), deadline));
  DYNAMICCL_TRY(const auto body, ReceiveLinkMessage(socket->get(), deadline));
  DYNAMICCL_TRY(LinkAnswer answer, DecodeLinkAnswer(body));
  if (answer.refused.empty()) return answer;
  return MakeError(ErrorKind::kInvalidArgument, "process {}: {}", process, answer.refused);
}

}  // namespace dynamiccl
