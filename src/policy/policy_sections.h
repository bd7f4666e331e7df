// SPDX-License-Identifier: Apache-2.0
// The table of a policy's sections, made from the lists in policy_layout.h and the types of the members of
// PolicyTensors. So the file's layout follows from the struct.
#pragma once

#include <array>
#include <span>

#include "src/policy/policy.h"
#include "src/policy/policy_layout.h"

namespace dynamiccl {

// Describes one section: its row in the file and its place in PolicyTensors.
struct SectionRow {
  uint32_t kind;
  const char* name;
  SectionType type;
  std::array<uint32_t, 4> dims;
  size_t offset;  // offset of the member in PolicyTensors, in bytes
  size_t bytes;
};

// Returns all sections but the provenance, in the order of a file of format version 2, or of version 3 if
// `with_effects`.
std::span<const SectionRow> PolicySections(bool with_effects);

// Returns the member's bytes; `row` is one of PolicySections().
std::span<std::byte> SectionBytes(PolicyTensors& tensors, const SectionRow& row);
std::span<const std::byte> SectionBytes(const PolicyTensors& tensors, const SectionRow& row);

}  // namespace dynamiccl
