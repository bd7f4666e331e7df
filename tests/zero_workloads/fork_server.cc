// SPDX-License-Identifier: Apache-2.0
// Preloaded under dynamiccl-zero: loads the program once and forks a copy for every rank that is asked for.
// Half of a short training is otherwise the loading of LibTorch. What runs is the program's own main(), from
// a fresh process. Requests come on the descriptor $FORK_SERVER_FD, see rank_server.h; its end ends the
// server.
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

using dynamiccl::zero::kMostRequestBytes;
using Main = int (*)(int, char**, char**);

Main g_main = nullptr;

// A request is a datagram: words that each end with a zero byte. First the number of seconds after which the
// rank is killed, the file of its output and the number of variables, then so many NAME=VALUE, then the
// program's arguments.
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
  // Destructors of LibTorch would copy every page of its tables from the server.
  std::fflush(nullptr);
  ::_exit(code);
}

// Starts the rank as a child of the test, which waits for it: a process whose parent has ended falls to the
// test.
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
  pid_t rank = -1;
  const bool told = ::read(ends[0], &rank, sizeof(rank)) == sizeof(rank);
  ::waitpid(between, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  return told ? rank : -1;
}

int Serve(int argc, char** argv, char** environment) {
  const char* const text = std::getenv("FORK_SERVER_FD");
  if (text == nullptr) return g_main(argc, argv, environment);
  const int socket = std::atoi(text);
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  for (const char* name : {"FORK_SERVER_FD", "LD_PRELOAD"}) ::unsetenv(name);
  std::string request(kMostRequestBytes, '\0');
  for (;;) {
    const ssize_t bytes = ::recv(socket, request.data(), request.size(), 0);
    if (bytes <= 0) return 0;
    const pid_t rank = StartRank(request.substr(0, static_cast<size_t>(bytes)));
    if (::send(socket, &rank, sizeof(rank), 0) != sizeof(rank)) return 1;
  }
}

}  // namespace

// The C library calls it with the program's main() once everything is loaded and initialised.
extern "C" __attribute__((visibility("default"))) int __libc_start_main(Main main, int argc, char** argv,
                                                                        void (*init)(), void (*fini)(),
                                                                        void (*loader_fini)(),
                                                                        void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  g_main = main;
  const auto start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(Serve, argc, argv, init, fini, loader_fini, stack_end);
}
