// SPDX-License-Identifier: Apache-2.0
// Formats and parses a policy's origin. The order of the lines is fixed, because equal inputs must give equal
// files. Lines of earlier trainings keep their text and begin with "earlier: N ".
#include "agents/provenance.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "src/base/sha256.h"
#include "src/policy/policy_layout.h"

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

constexpr std::string_view kEarlier = "earlier: ";

// Returns the number of the training to which the text of an `earlier` line belongs: 1, 2, ...
int GenerationOf(std::string_view line) {
  return ToNumber<int>(line);
}

// Formats everything but the earlier trainings.
std::string FormatOwn(const Provenance& provenance) {
  std::string text = fmt::format("program: {}\n", provenance.program);
  if (!provenance.libraries.empty()) text += fmt::format("libraries: {}\n", provenance.libraries);
  text += fmt::format("seed: {}\n", provenance.seed);
  if (provenance.structure_iterations > 0)
    text += fmt::format("structure_iterations: {}\n", provenance.structure_iterations);
  if (provenance.config_iterations > 0)
    text += fmt::format("config_iterations: {}\n", provenance.config_iterations);
  text += fmt::format("hold_out_sizes: {}\nhold_out_ranks: {}\n", provenance.hold_out.sizes,
                      provenance.hold_out.ranks);
  for (const std::string& topology : provenance.hold_out.topologies)
    text += fmt::format("hold_out_topology: {}\n", topology);
  for (const InputFile& input : provenance.inputs) {
    // Only the file's name is stored: its folder means nothing on other machines.
    text += fmt::format("{}: {} {}\n", input.kind, input.sha256,
                        std::filesystem::path(input.path).filename().string());
  }
  for (const std::string& learnt : provenance.learnt) text += fmt::format("learnt: {}\n", learnt);
  for (const std::string& note : provenance.notes) text += fmt::format("note: {}\n", note);
  return text;
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
  const std::string own = FormatOwn(provenance);
  std::vector<std::string> earlier = provenance.earlier;
  for (;;) {
    std::string text = own;
    for (const std::string& line : earlier) text += fmt::format("{}{}\n", kEarlier, line);
    if (text.size() <= kMaxProvenanceBytes || earlier.empty()) return text;
    const int earliest = GenerationOf(earlier.back());
    std::erase_if(earlier, [&](const std::string& line) { return GenerationOf(line) == earliest; });
  }
}

Provenance ParseProvenance(const std::string& text) {
  Provenance provenance;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, colon), value = line.substr(colon + 2);
    if (key == "program") provenance.program = value;
    if (key == "libraries") provenance.libraries = value;
    if (key == "seed") provenance.seed = ToNumber<uint64_t>(value);
    if (key == "structure_iterations") provenance.structure_iterations = ToNumber<int>(value);
    if (key == "config_iterations") provenance.config_iterations = ToNumber<int>(value);
    if (key == "hold_out_sizes") provenance.hold_out.sizes = ToNumber<int>(value);
    if (key == "hold_out_ranks") provenance.hold_out.ranks = ToNumber<int>(value);
    if (key == "hold_out_topology" && !value.empty()) provenance.hold_out.topologies.push_back(value);
    if (key == "trace" || key == "measurements") provenance.inputs.push_back(ParseInput(key, value));
    if (key == "learnt") provenance.learnt.push_back(value);
    if (key == "note") provenance.notes.push_back(value);
    if (key == "earlier") provenance.earlier.push_back(value);
  }
  return provenance;
}

std::vector<std::string> EarlierLines(const std::string& text_of_base) {
  std::vector<std::string> earlier;
  std::istringstream lines(text_of_base);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kEarlier)) {
      earlier.push_back("1 " + line);
      continue;
    }
    const std::string_view rest = std::string_view(line).substr(kEarlier.size());
    const size_t text = std::min(rest.find(' '), rest.size());
    earlier.push_back(fmt::format("{}{}", GenerationOf(rest) + 1, rest.substr(text)));
  }
  return earlier;
}

std::vector<Provenance> AllTrainings(const std::string& text) {
  std::vector<Provenance> trainings{ParseProvenance(text)};
  std::map<int, std::string> texts;
  for (const std::string& line : trainings.front().earlier) {
    const size_t begin = line.find(' ');
    if (begin != std::string::npos) texts[GenerationOf(line)] += line.substr(begin + 1) + "\n";
  }
  for (const auto& [generation, earlier] : texts) trainings.push_back(ParseProvenance(earlier));
  return trainings;
}

uint64_t TrainingDataId(const Provenance& provenance) {
  std::string hashes;
  for (const InputFile& input : provenance.inputs) hashes += input.sha256;
  return XXH3_64bits(hashes.data(), hashes.size());
}

}  // namespace dynamiccl::agents
