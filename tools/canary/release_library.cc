// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/release_library.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "src/base/mapped_file.h"
#include "tests/real_nccl/cuda_standin/elf_symbols.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;
using real_nccl::NcclRelease;

constexpr const char* kLibrary = "libnccl.so.2";

std::string ReleasesInCache() {
  std::vector<std::string> known;
  for (const ReleaseLibrary& one : CachedReleases()) known.push_back(one.text());
  return known.empty() ? "no release" : fmt::format("{}", fmt::join(known, ", "));
}

tl::unexpected<Error> NotFetched(const std::vector<std::string>& releases) {
  return WithHint(
      MakeError(ErrorKind::kNotFound, "no NCCL {} in the cache, which holds {}", fmt::join(releases, ", "),
                ReleasesInCache()),
      fmt::format("tools/setup/fetch_nccl.sh {} fetches from PyPI (an installation has the script in "
                  "share/dynamiccl/tools/setup), or give the path of a {}",
                  fmt::join(releases, " "), kLibrary));
}

tl::unexpected<Error> NoRelease(const std::string& word) {
  return WithHint(
      MakeError(ErrorKind::kNotFound, "{}: neither a release nor a file", word),
      fmt::format("a release has three numbers, such as 2.28.9; the cache holds {}", ReleasesInCache()));
}

// Removes "v" and "-1" from a release such as "v2.28.9-1", the form of NCCL's tags.
std::string WithoutTag(std::string word) {
  if (word.find('/') != std::string::npos) return word;  // a path
  if (word.starts_with('v')) word.erase(0, 1);
  return word.substr(0, word.find('-'));
}

Result<ReleaseLibrary> FromFile(const fs::path& file) {
  DYNAMICCL_TRY(const MappedFile content, MappedFile::Open(file.string()));
  const auto bytes = content.bytes();
  const auto release = ReleaseInText({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!release)
    return MakeError(ErrorKind::kInvalidArgument, "{}: no text \"NCCL version\" in it: not an NCCL library",
                     file.string());
  std::string error;
  const auto functions = cuda_standin::ReadFunctionSymbols(file.string(), &error);
  if (!functions || functions->empty()) {
    return WithHint(
        MakeError(
            ErrorKind::kUnsupported, "{}",
            functions ? file.string() + " is stripped, so that its CUDA functions cannot be found" : error),
        fmt::format("use the same release from PyPI: tools/setup/fetch_nccl.sh {}", release->text()));
  }
  return ReleaseLibrary{*release, file.parent_path().string()};
}

// Finds the library in the file or folder that `word` names.
Result<ReleaseLibrary> FromPath(const std::string& word) {
  const fs::path path = fs::is_directory(word) ? fs::path(word) / kLibrary : fs::path(word);
  std::error_code none;
  const fs::path file = fs::canonical(path, none);
  if (none) return NoRelease(word);
  // The loader looks for libnccl.so.2, so the folder must have a file or link of that name.
  if (!fs::exists(file.parent_path() / kLibrary))
    return MakeError(ErrorKind::kNotFound, "{} has no {}", file.parent_path().string(), kLibrary);
  return FromFile(file);
}

}  // namespace

Result<std::vector<ReleaseLibrary>> FindReleaseLibraries(const std::vector<std::string>& words) {
  std::vector<ReleaseLibrary> found;
  std::vector<std::string> missing;
  for (const std::string& word : words) {
    if (const auto release = real_nccl::ParseRelease(WithoutTag(word))) {
      if (const auto folder = real_nccl::FindNcclLibraryFolder(*release))
        found.push_back({*release, *folder});
      else
        missing.push_back(release->text());
      continue;
    }
    DYNAMICCL_TRY(ReleaseLibrary library, FromPath(word));
    found.push_back(std::move(library));
  }
  if (!missing.empty()) return NotFetched(missing);
  return found;
}

std::optional<NcclRelease> ReleaseInText(std::string_view content) {
  constexpr std::string_view kMark = "NCCL version ";
  for (size_t at = content.find(kMark); at != std::string_view::npos; at = content.find(kMark, at + 1)) {
    const std::string_view rest = content.substr(at + kMark.size(), 24);
    const auto release =
        real_nccl::ParseRelease(std::string(rest.substr(0, rest.find_first_not_of("0123456789."))));
    if (release) return release;
  }
  return std::nullopt;
}

std::vector<ReleaseLibrary> CachedReleases() {
  std::vector<ReleaseLibrary> found;
  for (const NcclRelease& release : real_nccl::FetchedReleases())
    found.push_back({release, *real_nccl::FindNcclLibraryFolder(release)});
  return found;
}

}  // namespace dynamiccl
