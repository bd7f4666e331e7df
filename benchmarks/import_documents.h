// SPDX-License-Identifier: Apache-2.0
// Generates files of all formats that can be imported. They can have any length and are similar to real
// files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dynamiccl {

// A kind of file. It consists of `head`, the pieces 1, 2, 3 and so on, and `foot`.
struct ImportDocument {
  std::string_view name;  // of the importer, and of the form if there are several: "nccl-tests-json"
  std::string (*head)(uint64_t pieces);
  std::string (*piece)(uint64_t i);
  std::string_view foot;
  // Number of calls per piece. The number for a whole file is rounded down.
  double calls = 1;
};

std::span<const ImportDocument> AllImportDocuments();

}  // namespace dynamiccl
