// SPDX-License-Identifier: Apache-2.0
// Fork and exec of one child.
//
// 1. The parent prepares every string, array and descriptor that the child needs (PreparedChild).
// 2. The child restores signals, takes its group, binds its life to the parent's and calls exec.
// 3. If exec fails, the child writes errno into a close-on-exec pipe. The parent reads either that number or,
//    after a successful exec, the end of the pipe.
#include "tools/launch/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "src/base/unique_fd.h"
#include "tools/launch/signal_scope.h"

namespace dynamiccl {
namespace {

// Everything that the child needs, prepared before fork. Between fork and exec only async-signal-safe
// functions are allowed, so nothing there may allocate memory.
struct PreparedChild {
  std::vector<std::string> environment_words;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  UniqueFd output;
  UniqueFd null_input;
  // Write end of the pipe that reports a failed exec; a successful exec closes it.
  int error_pipe = -1;
  // Process id of the parent, by which the child notices that the parent died before prctl took effect.
  pid_t parent = 0;
};

// The words NAME=VALUE of the child's environment: `changes` first, then the variables that they do not name.
std::vector<std::string> EnvironmentWords(EnvironmentChanges changes) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string word = *entry;
    const size_t equals = word.find('=');
    if (equals != std::string::npos) changes.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  std::vector<std::string> words;
  for (const auto& [name, value] : changes) words.push_back(name + "=" + value);
  return words;
}

// The null-terminated array that exec takes. It points into `words`, which must outlive it.
std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Reports errno to the parent and ends the child. 127 is the shell's code for a command that cannot be
// executed; nobody reads it, since the parent gets the errno.
[[noreturn]] void FailInChild(int error_pipe) {
  const int code = errno;
  [[maybe_unused]] const ssize_t written = ::write(error_pipe, &code, sizeof(code));
  ::_exit(127);
}

// Runs in the child: everything between fork and exec.
[[noreturn]] void BecomeProgram(const PreparedChild& child, bool own_group) {
  RestoreDefaultSignals();
  if (own_group) ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // If the parent died before prctl took effect, the kernel will never send the signal. The child then ends
  // itself.
  if (::getppid() != child.parent) ::_exit(127);
  if (child.null_input.valid()) ::dup2(child.null_input.get(), STDIN_FILENO);
  if (child.output.valid()) {
    ::dup2(child.output.get(), STDOUT_FILENO);
    ::dup2(child.output.get(), STDERR_FILENO);
  }
  ::execvpe(child.arguments[0], child.arguments.data(), child.environment.data());
  FailInChild(child.error_pipe);
}

// Opens the files that become the child's standard streams. They stay with the parent until StartChild
// returns.
Status OpenStreams(const ChildOptions& options, PreparedChild& child) {
  if (options.own_group) child.null_input = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (options.output_path.empty()) return {};
  child.output =
      UniqueFd(::open(options.output_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!child.output.valid()) {
    return MakeError(ErrorKind::kInvalidArgument, "cannot write '{}': {}", options.output_path,
                     ErrnoText(errno));
  }
  return {};
}

// The errno of a failed exec, or 0 when exec succeeded and the pipe closed without data.
int ReadExecError(int read_end) {
  int code = 0;
  ssize_t got = 0;
  do {
    got = ::read(read_end, &code, sizeof(code));
  } while (got < 0 && errno == EINTR);
  return got == sizeof(code) ? code : 0;
}

tl::unexpected<Error> CannotStart(const std::string& program, int code) {
  const ErrorKind kind = code == ENOENT ? ErrorKind::kNotFound : ErrorKind::kInvalidArgument;
  return WithHint(MakeError(kind, "cannot start '{}': {}", program, ErrnoText(code)),
                  "check the path after `--`, and that the file may be executed");
}

}  // namespace

Result<pid_t> StartChild(const std::vector<std::string>& command, const EnvironmentChanges& environment,
                         const ChildOptions& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return MakeError(ErrorKind::kUnavailable, "no pipe: {}", ErrnoText(errno));
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  PreparedChild child{.environment_words = EnvironmentWords(environment),
                      .arguments = Pointers(command),
                      .error_pipe = write_end.get(),
                      .parent = ::getpid()};
  child.environment = Pointers(child.environment_words);
  DYNAMICCL_CHECK_OK(OpenStreams(options, child));
  const pid_t pid = ::fork();
  if (pid == 0) BecomeProgram(child, options.own_group);
  if (pid < 0) return MakeError(ErrorKind::kUnavailable, "cannot start a process: {}", ErrnoText(errno));
  // Both processes set the group, so that it exists before either continues and before a signal is sent to
  // it.
  if (options.own_group) ::setpgid(pid, pid);
  write_end.Reset();
  const int code = ReadExecError(read_end.get());
  if (code == 0) return pid;
  ::waitpid(pid, nullptr, 0);
  return CannotStart(command.front(), code);
}

void SignalChild(pid_t pid, bool whole_group, int signal_number) {
  [[maybe_unused]] const int ignored = ::kill(whole_group ? -pid : pid, signal_number);
}

}  // namespace dynamiccl
