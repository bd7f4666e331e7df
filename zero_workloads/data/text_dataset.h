// SPDX-License-Identifier: Apache-2.0
// Text as bytes: selects the files to train on and the part that is held out for evaluation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::zero {

// The source of the text (--data and --held-out).
struct TextSource {
  // Files or folders. A folder stands for all its *.txt files in the order of their names.
  std::vector<std::string> paths;
  // The file with the held-out text. If it is empty, the last 5 % of the text is held out.
  std::string held_out;
};

// The bytes of the text in memory. Every rank has all of them.
struct TextDataset {
  std::vector<uint8_t> train;
  std::vector<uint8_t> held_out;
};

// Reads all files into memory. If a file is missing, unreadable or empty, the error names it. If a folder
// contains the held-out file, training does not use that file.
Result<TextDataset> LoadText(const TextSource& source);

// Entropy of the text's byte frequencies, in bits per byte. This is the loss of a model that knows nothing
// but the byte frequencies.
double UnigramEntropy(const std::vector<uint8_t>& text);

}  // namespace dynamiccl::zero
