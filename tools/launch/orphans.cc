// SPDX-License-Identifier: Apache-2.0
// Reads the parents of all processes from /proc. Without /proc there are no orphans.
#include "tools/launch/orphans.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// Returns the parent in the line of /proc/PID/stat, "4711 (name) S 42 ..."; 0: the line has none. The name
// may contain blanks and parentheses.
pid_t ParentIn(const std::string& line) {
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(line.substr(name_end + 1));
  char state = 0;
  pid_t parent = 0;
  rest >> state >> parent;
  return parent;
}

// Returns the children of this process, those that have ended and were not collected included.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  std::error_code failed;
  for (fs::directory_iterator at("/proc", failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size())
      continue;
    std::ifstream file(at->path() / "stat");
    std::string line;
    if (std::getline(file, line) && ParentIn(line) == ::getpid()) children.push_back(pid);
  }
  return children;
}

bool Contains(const std::vector<pid_t>& list, pid_t pid) {
  return std::ranges::find(list, pid) != list.end();
}

}  // namespace

OrphanScope::OrphanScope() : before_(Children()) {
  ::prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

OrphanScope::~OrphanScope() {
  ::prctl(PR_SET_CHILD_SUBREAPER, was_subreaper_);
}

std::vector<pid_t> OrphanScope::Running(const std::vector<pid_t>& started) {
  for (const pid_t pid : Children())
    if (!Contains(started, pid) && !Contains(before_, pid) && !Contains(running_, pid))
      running_.push_back(pid);
  std::erase_if(running_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
  return running_;
}

}  // namespace dynamiccl
