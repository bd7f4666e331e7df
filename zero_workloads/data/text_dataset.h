// SPDX-License-Identifier: Apache-2.0
// Text as bytes: which files are trained on, and which part is held out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::zero {

struct TextSource {
  std::vector<std::string>
      paths;             // files, or folders of which all *.txt files are taken in the order of their names
  std::string held_out;  // file of the held-out text; empty: the last 5 % of the text
};

struct TextDataset {
  std::vector<uint8_t> train;
  std::vector<uint8_t> held_out;
};

// A missing, unreadable or empty file is an error that names it. The held-out file is left out of a folder's
// files.
Result<TextDataset> LoadText(const TextSource& source);

// Entropy in bits a byte of the text's byte frequencies: what a model reaches that knows nothing but those.
double UnigramEntropy(const std::vector<uint8_t>& text);

}  // namespace dynamiccl::zero
