// SPDX-License-Identifier: Apache-2.0
// The table of sections, made from DYNAMICCL_POLICY_SECTIONS and the types of PolicyTensors' members.
#pragma once

#include <array>
#include <span>

#include "src/policy/policy.h"
#include "src/policy/policy_layout.h"

namespace dynamiccl {

struct SectionRow {
  uint32_t kind;
  const char* name;
  SectionType type;
  std::array<uint32_t, 4> dims;
  size_t offset;  // of the member in PolicyTensors
  size_t bytes;
};

std::span<const SectionRow> PolicySections();

// The member's bytes; `row` is one of PolicySections().
std::span<std::byte> SectionBytes(PolicyTensors& tensors, const SectionRow& row);
std::span<const std::byte> SectionBytes(const PolicyTensors& tensors, const SectionRow& row);

}  // namespace dynamiccl
