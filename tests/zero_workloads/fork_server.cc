// SPDX-License-Identifier: Apache-2.0
// A library that turns dynamiccl-zero into a fork server when it is preloaded. The program is loaded once.
// Each rank that a test asks for is a fork that runs the program's own main(). Loading LibTorch for each rank
// would take half the time of a short training. The test sends its requests to the descriptor $FORK_SERVER_FD
// (rank_server.h), and ends the server by closing its end.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/zero_workloads/rank_server.h"

namespace {

using dynamiccl::zero::kMaxRequestBytes;
using Main = int (*)(int, char**, char**);

Main g_main = nullptr;

// Splits a request into its words. A request is one datagram of words, each of which ends with a zero byte.
// The words are: the seconds after which SIGALRM ends the rank, the file for its output, the number of
// variables, the variables as NAME=VALUE, and the program's arguments.
std::vector<char*> WordsOf(std::string& request) {
  std::vector<char*> words;
  for (size_t at = 0; at < request.size(); at = request.find('\0', at) + 1)
    words.push_back(request.data() + at);
  return words;
}

[[noreturn]] void RunRank(std::string request) {
  std::vector<char*> words = WordsOf(request);
  ::alarm(static_cast<unsigned>(std::atoi(words[0])));
  const int output = ::open(words[1], O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  const auto arguments = words.begin() + 3 + std::atoi(words[2]);
  for (auto variable = words.begin() + 3; variable != arguments; ++variable) ::putenv(*variable);
  words.erase(words.begin(), arguments);
  words.push_back(nullptr);
  const int code = g_main(static_cast<int>(words.size()) - 1, words.data(), environ);
  // exit() would run LibTorch's destructors. They write to every page of its tables, so every page would be
  // copied.
  const auto end = reinterpret_cast<void (*)()>(::dlsym(RTLD_DEFAULT, "rank_ends"));
  if (end != nullptr) end();
  std::fflush(nullptr);
  ::_exit(code);
}

// Starts a rank that the test can wait for. Returns its process, or -1. Between the server and the rank is a
// process that ends at once. So the test, which is a subreaper (prctl(2)), becomes the rank's parent.
pid_t StartRank(const std::string& request) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const pid_t between = ::fork();
  if (between == 0) {
    const pid_t rank = ::fork();
    if (rank != 0) ::_exit(::write(ends[1], &rank, sizeof(rank)) == sizeof(rank) ? 0 : 1);
    ::close(ends[0]);
    ::close(ends[1]);
    RunRank(request);
  }
  ::close(ends[1]);  // if the first fork failed, the read ends at once
  pid_t rank = -1;
  const bool told = ::read(ends[0], &rank, sizeof(rank)) == sizeof(rank);
  if (between > 0) ::waitpid(between, nullptr, 0);
  ::close(ends[0]);
  return told ? rank : -1;
}

int Serve(int argc, char** argv, char** environment) {
  const char* const text = std::getenv("FORK_SERVER_FD");
  if (text == nullptr) return g_main(argc, argv, environment);
  const int socket = std::atoi(text);
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  for (const char* name : {"FORK_SERVER_FD", "LD_PRELOAD"}) ::unsetenv(name);
  std::string request(kMaxRequestBytes, '\0');
  for (;;) {
    const ssize_t bytes = ::recv(socket, request.data(), request.size(), 0);
    if (bytes <= 0) return 0;
    const pid_t rank = StartRank(request.substr(0, static_cast<size_t>(bytes)));
    if (::send(socket, &rank, sizeof(rank), 0) != sizeof(rank)) return 1;
  }
}

}  // namespace

// The program's start code calls this with its main(), after all libraries are loaded and initialised.
extern "C" __attribute__((visibility("default"))) int __libc_start_main(Main main, int argc, char** argv,
                                                                        void (*init)(), void (*fini)(),
                                                                        void (*loader_fini)(),
                                                                        void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  g_main = main;
  const auto start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(Serve, argc, argv, init, fini, loader_fini, stack_end);
}
