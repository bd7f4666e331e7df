// SPDX-License-Identifier: Apache-2.0
// Warns with one line at the end of a process if it was asked to watch NCCL but could not see its calls:
// because NCCL is linked statically into a library or program, or because the program looks up NCCL's
// functions by address.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "plugin/border/no_throw.h"
#include "plugin/runtime/in_flight_calls.h"
#include "plugin/runtime/process_runtime.h"
#include "plugin/runtime/runtime_instance.h"
#include "src/base/settings.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {
namespace {

// A file mapped into memory during the lifetime of this object. If it cannot be mapped, At returns null for
// every part.
class MappedFile {
 public:
  explicit MappedFile(const char* path) {
    const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || status.st_size <= 0) return;
    size_ = static_cast<size_t>(status.st_size);
    void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (memory != MAP_FAILED) data_ = static_cast<const char*>(memory);
  }
  ~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Returns the address of a part of the file; null if the part does not lie in the file.
  const char* At(size_t offset, size_t bytes) const {
    return data_ != nullptr && offset <= size_ && bytes <= size_ - offset ? data_ + offset : nullptr;
  }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// Returns true if a text holds the version message that every release of NCCL contains: "NCCL version
// 2.28.9+cuda12.9".
bool NamesNcclVersion(const char* text, size_t bytes) {
  constexpr char kWords[] = "NCCL version ";
  constexpr size_t kLength = sizeof(kWords) - 1;
  const char* const end = text + bytes;
  while (static_cast<size_t>(end - text) > kLength) {
    const auto* found =
        static_cast<const char*>(::memmem(text, static_cast<size_t>(end - text), kWords, kLength));
    if (found == nullptr || found + kLength >= end) return false;
    if (std::isdigit(static_cast<unsigned char>(found[kLength])) != 0) return true;
    text = found + kLength;
  }
  return false;
}

// Returns true if NCCL is linked into the object at `path`. It reads only the object's constants, since
// reading the GPU code, which is most of such a library, would take long.
bool HasNcclInside(const char* path) {
  const MappedFile file(path);
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(file.At(0, sizeof(ElfW(Ehdr))));
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(
      file.At(header->e_shoff, size_t{header->e_shnum} * sizeof(ElfW(Shdr))));
  if (sections == nullptr || header->e_shstrndx >= header->e_shnum) return false;
  const ElfW(Shdr)& names = sections[header->e_shstrndx];
  for (int i = 0; i < header->e_shnum; ++i) {
    const char* name = file.At(names.sh_offset + sections[i].sh_name, sizeof(".rodata"));
    if (name == nullptr || std::strncmp(name, ".rodata", sizeof(".rodata")) != 0) continue;
    const char* text = file.At(sections[i].sh_offset, sections[i].sh_size);
    if (text != nullptr && NamesNcclVersion(text, sections[i].sh_size)) return true;
  }
  return false;
}

struct Found {
  std::string separate;  // path of a libnccl.so
  std::string inside;    // path of an object that has NCCL linked into it
};

void Inspect(const dl_phdr_info* info, Found& found) {
  const std::string path =
      info->dlpi_name == nullptr || *info->dlpi_name == '\0' ? "/proc/self/exe" : info->dlpi_name;
  if (path.find("libdynamiccl") != std::string::npos) return;
  if (path.find("libnccl.so") != std::string::npos) {
    found.separate = path;
  } else if (found.inside.empty() && HasNcclInside(path.c_str())) {
    found.inside = path;
  }
}

// No exception may cross dl_iterate_phdr: another unwinder handles the C library's frames, and would end the
// process.
int InspectObject(dl_phdr_info* info, size_t, void* result) {
  NoThrow([=] { Inspect(info, *static_cast<Found*>(result)); });
  return 0;
}

// Returns true if this process used a GPU. Used where no launcher marked the process as a rank: a process
// that merely has NCCL loaded gets no warning.
bool UsedGpu() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/dev/nvidia") != std::string::npos) return true;
  }
  return false;
}

void WarnAboutUnseen() {
  Found found;
  ::dl_iterate_phdr(InspectObject, &found);
  if (!found.separate.empty()) {
    Log(LogLevel::kWarn,
        "no NCCL call was seen: this program looks up the functions of {} by address; "
        "LD_AUDIT=libdynamiccl-audit.so beside LD_PRELOAD shows them (docs/doors.md)",
        found.separate);
  } else if (!found.inside.empty()) {
    Log(LogLevel::kWarn,
        "no NCCL call was seen: NCCL is linked statically into {}; "
        "NCCL_TUNER_PLUGIN=libnccl-tuner-dynamiccl.so "
        "with DYNAMICCL_POLICY_SHA256 is the way in (docs/doors.md)",
        found.inside);
  }
}

// The process in which this object was set up. A forked child has another id and does not warn.
pid_t g_observed_process = 0;

// Skips the warning for a program that failed, because it may have failed before its first call.
void AtExit(int exit_code, void*) {
  if (exit_code != 0) return;
  NoThrow([] {
    ProcessRuntime* const runtime = RuntimeInstance::GetIfCreated();
    const bool failed = runtime == nullptr && RuntimeInstance::WasRequested();
    if (::getpid() != g_observed_process || failed) return;
    if (runtime != nullptr && runtime->communicators().ever_used()) return;
    SetLogLevel(ParseLogLevel(TextSetting(Setting::kLog), LogLevel::kWarn));
    if (::secure_getenv("RANK") != nullptr || UsedGpu()) WarnAboutUnseen();
  });
}

// Does something only if this object was preloaded and a setting needs it, so that other processes of the job
// stay untouched.
__attribute__((constructor)) void Watch() {
  const char* const preload = ::secure_getenv("LD_PRELOAD");
  if (preload == nullptr || std::strstr(preload, "libdynamiccl.so") == nullptr) return;
  NoThrow([] {
    for (const Setting asked : {Setting::kPolicy, Setting::kRules, Setting::kTrace}) {
      if (TextSetting(asked).empty()) continue;
      g_observed_process = ::getpid();
      ::on_exit(AtExit, nullptr);
      InFlightCalls::Register();  // while the process has one thread
      return;
    }
  });
}

}  // namespace
}  // namespace dynamiccl
