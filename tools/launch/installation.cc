// SPDX-License-Identifier: Apache-2.0
// Looks for each part of an installation in the one or two folders where it may be.
#include "tools/launch/installation.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "src/base/settings.h"
#include "tools/build_paths.h"
#include "tools/version.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// `path` without "." and "..", or an empty string when nothing exists there.
std::string IfExists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) ? path.lexically_normal().string() : std::string();
}

// Path of `file` in HOME/lib or, failing that, in the library folder that the build was configured with
// (lib64 on some distributions).
std::string InLibraryFolder(const fs::path& home, const std::string& file) {
  const std::string found = IfExists(home / "lib" / file);
  return found.empty() ? IfExists(home / kInstallLibraryFolder / file) : found;
}

std::string FolderOfFile(const std::string& file) {
  return file.empty() ? std::string() : fs::path(file).parent_path().string();
}

// The folder above the one that holds the running program; empty when /proc is not mounted.
std::string OwnHome() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  return failed ? std::string() : program.parent_path().parent_path().string();
}

Installation InspectHome(const std::string& home) {
  const fs::path bin = fs::path(home) / "bin";
  return {.home = home,
          .preload = InLibraryFolder(home, "libdynamiccl.so"),
          .hostccl_dir = FolderOfFile(InLibraryFolder(home, "hostccl/libnccl.so.2")),
          .sweep_tuner = InLibraryFolder(home, "libnccl-tuner-sweep.so"),
          .real_nccl_dir = FolderOfFile(InLibraryFolder(home, "real_nccl/libcuda_standin.so")),
          .startup_dir = FolderOfFile(InLibraryFolder(home, "python/dynamiccl_startup/sitecustomize.py")),
          .kernels = InLibraryFolder(home, "dynamiccl_kernels.fatbin"),
          .dynamiccl = IfExists(bin / "dynamiccl"),
          .agents = IfExists(bin / "dynamiccl-agents"),
          .zero = IfExists(bin / "dynamiccl-zero")};
}

// The first line of a file, empty without the file.
std::string FirstLine(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The program that installed a wheel, "pip" or "uv", by the file that it leaves beside the package. Empty for
// other installations than wheels: their folder has another name than packaging/make_wheel.py gives it.
std::string InstallerOfWheel(const fs::path& home) {
  const fs::path package = home.parent_path();
  if (home.filename() != "home" || package.filename() != "dynamiccl") return "";
  const std::string folder = std::string("dynamiccl-") + kVersion + ".dist-info";
  return FirstLine(package.parent_path() / folder / "INSTALLER");
}

}  // namespace

std::string InstalledAs() {
  const fs::path home = OwnHome();
  if (const std::string installer = InstallerOfWheel(home); !installer.empty())
    return "a wheel, by " + installer;
  if (!IfExists(home / "CMakeCache.txt").empty()) return "a build folder";
  if (home == "/usr" && !IfExists("/var/lib/dpkg/info/dynamiccl.list").empty()) return "the DEB";
  return "an unpacked archive or cmake --install";
}

const char* HowToGetTorchPrograms() {
  if (*kSourceFolder == '\0')
    return "packages have no LibTorch, which must be the release that you train with: build the sources "
           "(tools/setup/build.sh programs)";
  return "configure with -DDYNAMICCL_BUILD_TORCH=ON (tools/setup/install.sh installs LibTorch) and build "
         "again";
}

Result<Installation> FindInstallation(const std::string& home) {
  const std::string named = home.empty() ? TextSetting(Setting::kHome) : home;
  if (named.empty()) return InspectHome(OwnHome());
  const Installation found = InspectHome(fs::absolute(named).lexically_normal().string());
  if (found.preload.empty() && found.hostccl_dir.empty() && found.dynamiccl.empty()) {
    return WithHint(
        MakeError(ErrorKind::kNotFound, "no installation of dynamiccl in '{}'", named),
        "give the folder that has bin/dynamiccl and lib/libdynamiccl.so, by --home or DYNAMICCL_HOME");
  }
  return found;
}

std::string FindDataFile(const Installation& installation, const std::string& relative) {
  const std::string installed = IfExists(fs::path(installation.home) / "share/dynamiccl" / relative);
  if (!installed.empty() || *kSourceFolder == '\0') return installed;
  return IfExists(fs::path(kSourceFolder) / relative);
}

Result<std::string> PolicyFileOf(const Installation& installation, const std::string& word) {
  if (word != kStarterWord) return word;
  const std::string shipped = FindDataFile(installation, "starter.dcpolicy");
  if (!shipped.empty()) return shipped;
  return WithHint(MakeError(ErrorKind::kNotFound, "no starter.dcpolicy under '{}'", installation.home),
                  "name a policy file, ./starter where it has that name, or an installation with --home");
}

std::string ShippedPolicy() {
  const auto installation = FindInstallation();
  const auto file = installation ? PolicyFileOf(*installation, kStarterWord) : Result<std::string>("");
  return file.value_or("");
}

std::filesystem::path CacheFolder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path root = cache != nullptr && *cache != '\0'
                                         ? std::filesystem::path(cache)
                                         : std::filesystem::path(home == nullptr ? "/" : home) / ".cache";
  return root / "dynamiccl";
}

}  // namespace dynamiccl
