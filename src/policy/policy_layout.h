// SPDX-License-Identifier: Apache-2.0
// The bytes of a .dcpolicy file, little-endian (docs/formats/policy_file.md):
//   PolicyHeader (128) | PolicySection (48) x section_count | sections, each aligned to 64 | SHA-256 (32)
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace dynamiccl {

inline constexpr char kPolicyMagic[8] = {'D', 'Y', 'N', 'C', 'C', 'L', 'P', '1'};
// Files of version 2 have no sections about effects on steps; those of version 3 have them.
inline constexpr uint32_t kPolicyFormatVersion = 2;
inline constexpr uint32_t kPolicyVersionWithEffects = 3;
// Names the arithmetic of structure_network.cc, its kernels, and config_inference.cc. Any change of a
// rounding needs a new number.
inline constexpr uint32_t kArithmeticId = 2;
inline constexpr size_t kPolicyAlignment = 64;  // bytes; a cache line, and the widest vector load
inline constexpr size_t kTrailerBytes = 32;     // SHA-256 of everything before it
// Readers refuse a file, or a provenance text in it, that has more bytes. The starter policy has 134 KB.
inline constexpr size_t kMaxPolicyBytes = 1 << 20;
inline constexpr size_t kMaxProvenanceBytes = 64 << 10;

// The start of the file. A file with another magic, version, schema or arithmetic is refused.
struct PolicyHeader {
  char magic[8];
  uint32_t format_version;
  uint32_t header_bytes;
  uint64_t file_bytes;
  uint64_t token_schema;   // TokenSchemaHash()
  uint64_t config_schema;  // ConfigSchemaHash()
  uint32_t min_nccl_version;
  uint32_t max_nccl_version;
  uint32_t arithmetic_id;
  uint32_t section_count;
  uint64_t training_data_id;
  uint64_t effect_schema;  // EffectSchemaHash(); zero in version 2
  uint8_t reserved[56];    // zero
};
static_assert(sizeof(PolicyHeader) == 128 && std::is_trivially_copyable_v<PolicyHeader>);

enum class SectionType : uint32_t { kInt16 = 1, kInt32 = 2, kText = 3 };

// Describes one row of the section table.
struct PolicySection {
  uint32_t kind;
  uint32_t type;     // SectionType
  uint32_t dims[4];  // unused ones are 1
  uint64_t offset;   // offset in the file, a multiple of kPolicyAlignment
  uint64_t bytes;
  uint64_t checksum;  // XXH3 of the bytes
};
static_assert(sizeof(PolicySection) == 48 && std::is_trivially_copyable_v<PolicySection>);

// X(kind, member of PolicyTensors): every section but the last, in the order of the file. A kind that is
// dropped is never used again.
#define DYNAMICCL_POLICY_SECTIONS(X) \
  X(1, gate_weights)                 \
  X(2, gate_bias)                    \
  X(3, head_weights)                 \
  X(4, head_bias)                    \
  X(5, sigmoid_table)                \
  X(6, tanh_table)                   \
  X(7, structure)                    \
  X(8, config_weights_1)             \
  X(9, config_bias_1)                \
  X(10, config_weights_2)            \
  X(11, config_bias_2)               \
  X(12, config_weights_3)            \
  X(13, config_bias_3)               \
  X(14, config)                      \
  X(15, domain_min)                  \
  X(16, domain_max)                  \
  X(17, golden_tokens)               \
  X(18, golden_logits)               \
  X(19, golden_features)             \
  X(20, golden_residuals)            \
  X(22, trees)                       \
  X(23, tree_nodes)                  \
  X(24, tree_leaves)                 \
  X(25, golden_tree_residuals)
// The sections that only files of version 3 have, after those above.
#define DYNAMICCL_EFFECT_SECTIONS(X) \
  X(26, effect_weights_1)            \
  X(27, effect_bias_1)               \
  X(28, effect_weights_2)            \
  X(29, effect_bias_2)               \
  X(30, effect_weights_3)            \
  X(31, effect_bias_3)               \
  X(32, effect)                      \
  X(33, effect_domain_min)           \
  X(34, effect_domain_max)           \
  X(35, golden_effect_features)      \
  X(36, golden_effects)
// The last section: text of at most kMaxProvenanceBytes.
inline constexpr uint32_t kProvenanceKind = 21;

}  // namespace dynamiccl
