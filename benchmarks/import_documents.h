// SPDX-License-Identifier: Apache-2.0
// Generated files of all formats that are imported, of any length and in the proportions of real ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dynamiccl {

// A kind of file: `head`, then `piece` of 1, 2, 3 and so on, then `foot`.
struct ImportDocument {
  std::string_view name;  // the importer's, and the form where it reads several: "nccl-tests-json"
  std::string (*head)(uint64_t pieces);
  std::string (*piece)(uint64_t i);
  std::string_view foot;
  // Number of calls in each piece. The number in a whole file is rounded down.
  double calls = 1;
};

std::span<const ImportDocument> AllImportDocuments();

}  // namespace dynamiccl
