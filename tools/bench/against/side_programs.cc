// SPDX-License-Identifier: Apache-2.0
// Finds the launchers and libraries of the libraries that hostccl is compared with. Compiles the MPI program
// (peers/mpi_collectives.c) for each MPI.
#include "tools/bench/against/side_programs.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "tools/launch/child_process.h"
#include "tools/launch/installation.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// Returns the folder in which the programs of other libraries are built or installed (see CacheFolder).
fs::path PeerFolder() {
  return CacheFolder() / "peers";
}

// True if a folder in PATH has the program.
bool OnPath(const std::string& program) {
  std::istringstream folders(std::getenv("PATH") == nullptr ? "" : std::getenv("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((fs::path(folder) / program).c_str(), X_OK) == 0) return true;
  }
  return program.find('/') != std::string::npos && ::access(program.c_str(), X_OK) == 0;
}

tl::unexpected<Error> Missing(const std::string& what, std::string bring) {
  return WithHint(MakeError(ErrorKind::kUnavailable, "{}", what), std::move(bring));
}

// Runs a command and waits for its end. The output of the command goes to the file `log`.
Status RunToEnd(const std::vector<std::string>& command, const std::string& log) {
  DYNAMICCL_TRY(const pid_t pid, StartChild(command, {}, {.output_path = log}));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return WithHint(MakeError(ErrorKind::kUnavailable, "'{}' failed", command.front()),
                  "its words are in " + log);
}

// Path of the source file of a compared program in the installation.
Result<std::string> SourceFile(const Installation& installation, const std::string& name) {
  const std::string path = FindDataFile(installation, "tools/bench/peers/" + name);
  if (!path.empty()) return path;
  return MakeError(ErrorKind::kUnavailable, "this installation has no share/dynamiccl/tools/bench/peers/{}",
                   name);
}

// Compiles the MPI program with the command `compile`, in which "{in}" and "{out}" are placeholders. Does
// nothing if the program exists and is newer than its source. The new program replaces the old one in one
// step, so that several comparisons may run at the same time.
Result<std::string> BuildMpiProgram(const Installation& installation, const std::string& peer,
                                    std::vector<std::string> compile) {
  DYNAMICCL_TRY(const std::string source, SourceFile(installation, "mpi_collectives.c"));
  const fs::path folder = PeerFolder();
  const fs::path program = folder / ("mpi_collectives-" + peer);
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (fs::exists(program) && fs::last_write_time(program) > fs::last_write_time(source))
    return program.string();
  const fs::path fresh = folder / fmt::format("mpi_collectives-{}.{}", peer, ::getpid());
  for (std::string& word : compile) {
    if (word == "{in}") word = source;
    if (word == "{out}") word = fresh.string();
  }
  const std::string log = program.string() + ".log";
  fs::remove(log, failed);
  DYNAMICCL_CHECK_OK(RunToEnd(compile, log));
  fs::rename(fresh, program, failed);
  if (failed)
    return MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", program.string(), failed.message());
  return program.string();
}

// Starts Debian's Open MPI over shared memory, which copies by process_vm_readv. The options state how many
// ranks the host takes (slots), because mpirun otherwise refuses more ranks than cores. If there are more
// ranks than cores, the options also let idle ranks yield, as mpirun does by itself when no slots are stated.
Result<SideProgram> OpenMpi(const SideSettings& settings) {
  if (!OnPath("mpicc.openmpi") || !OnPath("mpirun.openmpi"))
    return Missing("Open MPI is not on this machine", "apt-get install openmpi-bin libopenmpi-dev");
  DYNAMICCL_TRY(const std::string program, BuildMpiProgram(settings.installation, "openmpi",
                                                           {"mpicc.openmpi", "-O2", "{in}", "-o", "{out}"}));
  SideProgram side{
      .name = "openmpi",
      .command = {"mpirun.openmpi", "-n", "@ranks", "--host", fmt::format("localhost:{}", settings.n_ranks),
                  "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "self,vader", "--mca",
                  "btl_vader_single_copy_mechanism", "cma"},
      .environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}}};
  const bool crowded = settings.n_ranks > static_cast<int>(std::thread::hardware_concurrency());
  if (crowded) side.command.insert(side.command.end(), {"--mca", "mpi_yield_when_idle", "1"});
  side.command.insert(side.command.end(), {program, "@socket", BindingWord(settings)});
  return side;
}

// Starts Debian's MPICH with its default settings, UCX over shared memory. A waiting rank spins, even if
// there are more ranks than cores.
Result<SideProgram> Mpich(const SideSettings& settings) {
  if (!OnPath("mpicc.mpich") || !OnPath("mpiexec.mpich"))
    return Missing("MPICH is not on this machine", "apt-get install mpich libmpich-dev");
  DYNAMICCL_TRY(const std::string program, BuildMpiProgram(settings.installation, "mpich",
                                                           {"mpicc.mpich", "-O2", "{in}", "-o", "{out}"}));
  return SideProgram{.name = "mpich",
                     .command = {"mpiexec.mpich", "-launcher", "fork", "-n", "@ranks", program, "@socket",
                                 BindingWord(settings)}};
}

// Starts Intel MPI from PyPI. It has MPICH's ABI, so the program is compiled against Debian's MPICH headers
// and linked with Intel's library.
Result<SideProgram> IntelMpi(const SideSettings& settings) {
  const fs::path home = PeerFolder() / "impi";
  const std::string library = (home / "lib/libmpi.so.12").string();
  const std::string headers = "/usr/include/x86_64-linux-gnu/mpich";
  if (!fs::exists(library)) {
    return Missing(
        "Intel MPI is not in " + home.string(),
        fmt::format("python3 -m venv {0} && {0}/bin/pip install impi-rt==2021.18.0", home.string()));
  }
  if (!fs::exists(headers + "/mpi.h"))
    return Missing("MPICH's headers are not on this machine", "apt-get install libmpich-dev");
  DYNAMICCL_TRY(const std::string program,
                BuildMpiProgram(settings.installation, "impi",
                                {"cc", "-O2", "-I", headers, "{in}", "-o", "{out}", library,
                                 "-Wl,-rpath," + (home / "lib").string()}));
  return SideProgram{.name = "impi",
                     .command = {(home / "bin/mpiexec.hydra").string(), "-launcher", "fork", "-n", "@ranks",
                                 program, "@socket", BindingWord(settings)},
                     .environment = {{"I_MPI_ROOT", home.string()},
                                     {"LD_LIBRARY_PATH", (home / "lib").string()},
                                     {"I_MPI_FABRICS", "shm"},
                                     {"I_MPI_PIN", "0"}}};
}

// Starts PyTorch's Gloo. Each rank is a Python process.
Result<SideProgram> Gloo(const SideSettings& settings) {
  const std::string bring =
      "python3 -m venv torch && torch/bin/pip install torch --index-url "
      "https://download.pytorch.org/whl/cpu, then --python torch/bin/python";
  if (!OnPath(settings.python)) return Missing(fmt::format("no program '{}'", settings.python), bring);
  const std::string log = (PeerFolder() / "gloo.log").string();
  std::error_code ignored;
  fs::create_directories(PeerFolder(), ignored);
  if (!RunToEnd({settings.python, "-c", "import torch.distributed as d; assert d.is_gloo_available()"}, log))
    return Missing(fmt::format("'{}' has no PyTorch with Gloo", settings.python), bring);
  DYNAMICCL_TRY(const std::string source, SourceFile(settings.installation, "gloo_collectives.py"));
  return SideProgram{.name = "gloo",
                     .command = {settings.python, source, "@socket", BindingWord(settings)},
                     .starts_all_ranks = false};
}

}  // namespace

std::string BindingWord(const SideSettings& settings) {
  const bool enough = settings.n_ranks <= static_cast<int>(std::thread::hardware_concurrency());
  return settings.bind && enough ? "core" : "none";
}

bool IsPeerName(const std::string& name) {
  return name == "openmpi" || name == "mpich" || name == "impi" || name == "gloo";
}

Result<SideProgram> FindPeer(const std::string& name, const SideSettings& settings) {
  if (name == "openmpi") return OpenMpi(settings);
  if (name == "mpich") return Mpich(settings);
  if (name == "impi") return IntelMpi(settings);
  return Gloo(settings);
}

}  // namespace dynamiccl
