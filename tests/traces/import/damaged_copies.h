// SPDX-License-Identifier: Apache-2.0
// Imports damaged and truncated copies of a small file. No copy may crash the importer or give more than the
// whole file. Errors must name a line or a byte.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>

#include "traces/format/trace_calls.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {

// A file that exists while this object lives. Each test runs in its own process, at the same time as the
// others, so the path contains the process id.
class ScratchFile {
 public:
  ScratchFile(const std::string& name, std::string_view content)
      : folder_(testing::TempDir() + "/import-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/" + name;
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~ScratchFile() { std::filesystem::remove_all(folder_); }
  const std::string& path() const { return path_; }

 private:
  std::string folder_;
  std::string path_;
};

inline std::string ContentOf(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline Result<Imported> ImportText(std::string_view content, const std::string& format,
                                   const std::string& name = "sample", const ImportOptions& options = {}) {
  const ScratchFile file(name, content);
  return ImportFile(file.path(), format, options);
}

inline std::string ErrorOf(std::string_view content, const std::string& format,
                           const std::string& name = "sample") {
  const auto imported = ImportText(content, format, name);
  return imported ? "no error" : imported.error().message;
}

// Returns the number of calls of all sections, or the number of rows.
inline size_t SizeOf(const Imported& imported) {
  if (imported.measurements) return imported.measurements->rows.size();
  size_t calls = 0;
  for (const TraceSection& section : imported.trace->sections) calls += CallsOf(section).calls.size();
  return calls;
}

inline uint64_t CountOf(const Imported& imported, const std::string& field) {
  for (const UnfilledField& row : imported.unfilled) {
    if (row.field == field) return row.count;
  }
  return 0;
}

inline void ExpectSaysWhere(const Result<Imported>& imported, const std::string& what) {
  if (imported) return;
  EXPECT_THAT(imported.error().message,
              testing::AnyOf(testing::HasSubstr("line "), testing::HasSubstr("byte ")))
      << what;
}

// Imports all prefixes of a file. A prefix that is accepted must not have more calls or rows than the file.
// Returns how many prefixes were refused.
inline size_t ImportEveryTruncation(const std::string& content, const std::string& format,
                                    const std::string& name = "sample") {
  const auto whole = ImportText(content, format, name);
  EXPECT_TRUE(whole) << whole.error().message;
  if (!whole) return 0;
  size_t refused = 0;
  for (size_t length = 0; length < content.size(); ++length) {
    const auto cut = ImportText(std::string_view(content).substr(0, length), format, name);
    ExpectSaysWhere(cut, "length " + std::to_string(length));
    refused += !cut;
    if (!cut) continue;
    EXPECT_LE(SizeOf(*cut), SizeOf(*whole)) << "length " << length;
  }
  return refused;
}

// Imports copies with up to three changed bytes. Returns how many copies were refused.
inline size_t ImportFlippedCopies(const std::string& content, const std::string& format, int copies,
                                  const std::string& name = "sample") {
  std::mt19937_64 random(1);
  size_t refused = 0;
  for (int i = 0; i < copies; ++i) {
    std::string damaged = content;
    for (int flip = 0; flip < 3; ++flip)
      damaged[random() % damaged.size()] ^= static_cast<char>(1 + random() % 255);
    const auto imported = ImportText(damaged, format, name);
    ExpectSaysWhere(imported, "copy " + std::to_string(i));
    refused += !imported;
  }
  return refused;
}

}  // namespace dynamiccl
