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

// The bytes in memory, whole on every rank.
struct TextDataset {
  std::vector<uint8_t> train;
  std::vector<uint8_t> held_out;
};

// Reads all files into memory. A missing, unreadable or empty file is an error that names it. The held-out
// file is left out when a folder contains it.
Result<TextDataset> LoadText(const TextSource& source);

// Entropy of the text's byte frequencies, in bits a byte: the loss of a model that knows nothing but these.
double UnigramEntropy(const std::vector<uint8_t>& text);

}  // namespace dynamiccl::zero
