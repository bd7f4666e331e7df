// SPDX-License-Identifier: Apache-2.0
// Derives element type and dimensions of each section from the C++ types.
#include "src/policy/policy_sections.h"

namespace dynamiccl {
namespace {

// A struct of int32 members counts as a vector of int32.
template <typename Member>
constexpr SectionRow MakeRow(uint32_t kind, const char* name, size_t offset) {
  using Element = std::remove_all_extents_t<Member>;
  constexpr bool kNarrow = std::is_same_v<Element, int16_t>;
  static_assert(kNarrow || sizeof(Element) % sizeof(int32_t) == 0);
  SectionRow row{kind,         name,   kNarrow ? SectionType::kInt16 : SectionType::kInt32,
                 {1, 1, 1, 1}, offset, sizeof(Member)};
  if constexpr (std::is_class_v<Element>) {
    row.dims[0] = sizeof(Element) / sizeof(int32_t);
  } else {
    row.dims[0] = std::extent_v<Member, 0>;
    if constexpr (std::rank_v < Member >> 1) row.dims[1] = std::extent_v<Member, 1>;
    if constexpr (std::rank_v < Member >> 2) row.dims[2] = std::extent_v<Member, 2>;
  }
  return row;
}

constexpr SectionRow kRows[] = {
#define DYNAMICCL_POLICY_SECTION(kind, member) \
  MakeRow<decltype(PolicyTensors::member)>(kind, #member, offsetof(PolicyTensors, member)),
    DYNAMICCL_POLICY_SECTIONS(DYNAMICCL_POLICY_SECTION) DYNAMICCL_EFFECT_SECTIONS(DYNAMICCL_POLICY_SECTION)
#undef DYNAMICCL_POLICY_SECTION
};

#define DYNAMICCL_COUNT_SECTION(kind, member) +1
constexpr size_t kSectionsWithoutEffects = 0 DYNAMICCL_POLICY_SECTIONS(DYNAMICCL_COUNT_SECTION);
#undef DYNAMICCL_COUNT_SECTION

}  // namespace

std::span<const SectionRow> PolicySections(bool with_effects) {
  const std::span<const SectionRow> all = kRows;
  return with_effects ? all : all.first(kSectionsWithoutEffects);
}

std::span<std::byte> SectionBytes(PolicyTensors& tensors, const SectionRow& row) {
  return {reinterpret_cast<std::byte*>(&tensors) + row.offset, row.bytes};
}

std::span<const std::byte> SectionBytes(const PolicyTensors& tensors, const SectionRow& row) {
  return {reinterpret_cast<const std::byte*>(&tensors) + row.offset, row.bytes};
}

}  // namespace dynamiccl
