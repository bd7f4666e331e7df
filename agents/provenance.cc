// SPDX-License-Identifier: Apache-2.0
// Formats and parses a policy's origin. The order of the lines is fixed, because equal inputs must give equal
// files.
#include "agents/provenance.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/base/sha256.h"

namespace dynamiccl::agents {
namespace {

template <typename Number>
// The number at the start of `text`; 0 if there is none.
Number ToNumber(std::string_view text) {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Parses "<sha256> <name>".
InputFile ParseInput(const std::string& kind, const std::string& value) {
  const size_t space = value.find(' ');
  if (space == std::string::npos) return {kind, value, {}};
  return {kind, value.substr(space + 1), value.substr(0, space)};
}

}  // namespace

Result<InputFile> HashInput(const std::string& kind, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return WithHint(MakeError(ErrorKind::kNotFound, "{}: cannot be read", path),
                    "make traces with `dynamiccl record` and measurements with `dynamiccl sweep`");
  }
  Sha256 hash;
  std::vector<char> block(1 << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0) {
    hash.Update(std::as_bytes(std::span(block).first(static_cast<size_t>(file.gcount()))));
  }
  return InputFile{kind, path, ToHex(hash.Finish())};
}

std::string FormatProvenance(const Provenance& provenance) {
  std::string text =
      fmt::format("program: {}\nseed: {}\nhold_out_sizes: {}\nhold_out_ranks: {}\n", provenance.program,
                  provenance.seed, provenance.hold_out.sizes, provenance.hold_out.ranks);
  for (const std::string& topology : provenance.hold_out.topologies)
    text += fmt::format("hold_out_topology: {}\n", topology);
  for (const InputFile& input : provenance.inputs) {
    // Only the file's name is stored: its folder means nothing on other machines.
    text += fmt::format("{}: {} {}\n", input.kind, input.sha256,
                        std::filesystem::path(input.path).filename().string());
  }
  for (const std::string& note : provenance.notes) text += fmt::format("note: {}\n", note);
  return text;
}

Provenance ParseProvenance(const std::string& text) {
  Provenance provenance;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, colon), value = line.substr(colon + 2);
    if (key == "program") provenance.program = value;
    if (key == "seed") provenance.seed = ToNumber<uint64_t>(value);
    if (key == "hold_out_sizes") provenance.hold_out.sizes = ToNumber<int>(value);
    if (key == "hold_out_ranks") provenance.hold_out.ranks = ToNumber<int>(value);
    if (key == "hold_out_topology" && !value.empty()) provenance.hold_out.topologies.push_back(value);
    if (key == "trace" || key == "measurements") provenance.inputs.push_back(ParseInput(key, value));
    if (key == "note") provenance.notes.push_back(value);
  }
  return provenance;
}

uint64_t TrainingDataId(const Provenance& provenance) {
  std::string hashes;
  for (const InputFile& input : provenance.inputs) hashes += input.sha256;
  return XXH3_64bits(hashes.data(), hashes.size());
}

}  // namespace dynamiccl::agents
