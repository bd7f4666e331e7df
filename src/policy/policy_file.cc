// SPDX-License-Identifier: Apache-2.0
// Parsing and writing of policy files. The order of the checks is: size, header, section table, padding,
// trailer, values. Each check relies only on those before it.
#include "src/policy/policy_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "src/base/byte_codec.h"
#include "src/base/log.h"
#include "src/base/whole_file.h"
#include "src/policy/policy_checks.h"
#include "src/policy/policy_sections.h"
#include "src/policy/structure_network.h"

namespace dynamiccl {
namespace {

constexpr char kRetrain[] = "make a new policy with `dynamiccl train`, or use the build that made this one";
constexpr char kDamaged[] =
    "the file is damaged or cut short: copy it again or make it again with `dynamiccl train`";

size_t AlignUp(size_t offset) {
  return (offset + kPolicyAlignment - 1) / kPolicyAlignment * kPolicyAlignment;
}

uint64_t Checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

tl::unexpected<Error> Damaged(size_t byte, const std::string& check) {
  return WithHint(MakeError(ErrorKind::kCorrupt, "byte {}: {}", byte, check), kDamaged);
}

tl::unexpected<Error> OtherVersion(size_t byte, const std::string& check) {
  return WithHint(MakeError(ErrorKind::kUnsupported, "byte {}: {}", byte, check), kRetrain);
}

// Says where each section lies in the file. The places follow from the sections' sizes. Reading and writing
// share this definition.
struct Layout {
  bool with_effects = false;
  std::vector<PolicySection> sections;
  size_t file_bytes = 0;
};

Layout LayoutFor(bool with_effects, size_t provenance_bytes) {
  Layout layout{with_effects, {}, 0};
  const auto rows = PolicySections(with_effects);
  size_t offset = AlignUp(sizeof(PolicyHeader) + (rows.size() + 1) * sizeof(PolicySection));
  const auto place = [&](uint32_t kind, SectionType type, std::array<uint32_t, 4> dims, size_t bytes) {
    layout.sections.push_back(
        {kind, static_cast<uint32_t>(type), {dims[0], dims[1], dims[2], dims[3]}, offset, bytes, 0});
    offset = AlignUp(offset + bytes);
  };
  for (const SectionRow& row : rows) place(row.kind, row.type, row.dims, row.bytes);
  place(kProvenanceKind, SectionType::kText, {static_cast<uint32_t>(provenance_bytes), 1, 1, 1},
        provenance_bytes);
  layout.file_bytes = offset + kTrailerBytes;
  return layout;
}

PolicyHeader HeaderFor(const Policy& policy, const Layout& layout) {
  PolicyHeader header{};
  std::memcpy(header.magic, kPolicyMagic, sizeof(kPolicyMagic));
  header.format_version = layout.with_effects ? kPolicyVersionWithEffects : kPolicyFormatVersion;
  header.header_bytes = sizeof(PolicyHeader);
  header.file_bytes = layout.file_bytes;
  header.token_schema = TokenSchemaHash();
  header.config_schema = ConfigSchemaHash();
  header.min_nccl_version = policy.min_nccl_version;
  header.max_nccl_version = policy.max_nccl_version;
  header.arithmetic_id = kArithmeticId;
  header.section_count = static_cast<uint32_t>(layout.sections.size());
  header.training_data_id = policy.training_data_id;
  if (layout.with_effects) header.effect_schema = EffectSchemaHash();
  return header;
}

Status CheckHeader(const PolicyHeader& header, size_t file_bytes) {
  if (header.format_version != kPolicyFormatVersion && header.format_version != kPolicyVersionWithEffects) {
    return OtherVersion(offsetof(PolicyHeader, format_version),
                        fmt::format("format version {}, this build reads {} and {}", header.format_version,
                                    kPolicyFormatVersion, kPolicyVersionWithEffects));
  }
  if (header.header_bytes != sizeof(PolicyHeader)) {
    return Damaged(offsetof(PolicyHeader, header_bytes),
                   fmt::format("header of {} bytes", header.header_bytes));
  }
  if (header.file_bytes != file_bytes) {
    return Damaged(offsetof(PolicyHeader, file_bytes),
                   fmt::format("{} bytes announced, {} there", header.file_bytes, file_bytes));
  }
  if (header.token_schema != TokenSchemaHash()) {
    return OtherVersion(offsetof(PolicyHeader, token_schema),
                        "trained on other tokens than this build makes");
  }
  if (header.config_schema != ConfigSchemaHash()) {
    return OtherVersion(offsetof(PolicyHeader, config_schema),
                        "trained on other config features than this build makes");
  }
  if (header.arithmetic_id != kArithmeticId) {
    return OtherVersion(
        offsetof(PolicyHeader, arithmetic_id),
        fmt::format("arithmetic {}, this build computes {}", header.arithmetic_id, kArithmeticId));
  }
  const bool effects = header.format_version == kPolicyVersionWithEffects;
  if (header.effect_schema != (effects ? EffectSchemaHash() : 0)) {
    return OtherVersion(offsetof(PolicyHeader, effect_schema),
                        "trained on other inputs about steps than this build makes");
  }
  for (const uint8_t byte : header.reserved) {
    if (byte != 0) return Damaged(offsetof(PolicyHeader, reserved), "reserved bytes are not zero");
  }
  return {};
}

// Every section must stand exactly where the layout puts it. That covers order, overlap, alignment, type and
// dimensions.
Status CheckSections(std::span<const std::byte> bytes, const PolicyHeader& header, const Layout& layout) {
  if (header.section_count != layout.sections.size()) {
    return Damaged(offsetof(PolicyHeader, section_count),
                   fmt::format("{} sections instead of {}", header.section_count, layout.sections.size()));
  }
  if (layout.file_bytes != bytes.size()) return Damaged(bytes.size(), "the sections do not fill the file");
  for (size_t i = 0; i < layout.sections.size(); ++i) {
    const size_t at = sizeof(PolicyHeader) + i * sizeof(PolicySection);
    PolicySection found;
    std::memcpy(&found, bytes.data() + at, sizeof(found));
    PolicySection expected = layout.sections[i];
    expected.checksum = found.checksum;
    if (std::memcmp(&found, &expected, sizeof(found)) != 0) {
      return Damaged(
          at, fmt::format("section {} has another kind, type, shape or place than this build's", i + 1));
    }
    if (Checksum(bytes.subspan(found.offset, found.bytes)) != found.checksum) {
      return Damaged(found.offset, fmt::format("checksum of section {} is wrong", found.kind));
    }
  }
  return {};
}

// Bytes between sections have no meaning, so they must be zero.
Status CheckPadding(std::span<const std::byte> bytes, const Layout& layout) {
  size_t end = sizeof(PolicyHeader) + layout.sections.size() * sizeof(PolicySection);
  const auto zeros_until = [&](size_t begin) -> Status {
    for (size_t at = end; at < begin; ++at)
      if (bytes[at] != std::byte{0}) return Damaged(at, "padding is not zero");
    return {};
  };
  for (const PolicySection& section : layout.sections) {
    DYNAMICCL_CHECK_OK(zeros_until(section.offset));
    end = section.offset + section.bytes;
  }
  return zeros_until(bytes.size() - kTrailerBytes);
}

Status CheckTrailer(std::span<const std::byte> bytes, Sha256Digest& digest) {
  const size_t at = bytes.size() - kTrailerBytes;
  digest = Sha256Of(bytes.first(at));
  if (std::memcmp(digest.data(), bytes.data() + at, digest.size()) != 0)
    return Damaged(at, "SHA-256 of the file is wrong");
  return {};
}

Status CheckValues(const PolicyTensors& tensors, const Layout& layout) {
  const PolicyFault fault = FindFault(tensors);
  if (fault.kind == 0) return {};
  const auto rows = PolicySections(layout.with_effects);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].kind != fault.kind) continue;
    const size_t element = rows[i].type == SectionType::kInt16 ? 2 : 4;
    return OtherVersion(layout.sections[i].offset + fault.element * element,
                        fmt::format("{}: {}", rows[i].name, fault.check));
  }
  return MakeError(ErrorKind::kInternal, "a check names section {}, which does not exist", fault.kind);
}

// Returns the length of the last section, on which the layout depends. The length is read from the last row
// of the section table; returns an error if the file is too short for that row.
Result<size_t> ProvenanceBytes(std::span<const std::byte> bytes, bool with_effects) {
  const size_t at = sizeof(PolicyHeader) + PolicySections(with_effects).size() * sizeof(PolicySection);
  if (bytes.size() < at + sizeof(PolicySection))
    return Damaged(bytes.size(), "the section table is cut short");
  PolicySection last;
  std::memcpy(&last, bytes.data() + at, sizeof(last));
  if (last.bytes > kMaxProvenanceBytes) return Damaged(at, fmt::format("provenance of {} bytes", last.bytes));
  return static_cast<size_t>(last.bytes);
}

Status CheckMagic(std::span<const std::byte> bytes) {
  const size_t compared = std::min(bytes.size(), sizeof(kPolicyMagic));
  if (compared == 0 || std::memcmp(bytes.data(), kPolicyMagic, compared) == 0) return {};
  return WithHint(
      MakeError(ErrorKind::kCorrupt, "byte 0: not a policy file (magic)"),
      "name a .dcpolicy; `dynamiccl train` makes them, and `dynamiccl why FILE` reads traces and logs");
}

Result<std::unique_ptr<const Policy>> Parse(std::span<const std::byte> bytes) {
  DYNAMICCL_CHECK_OK(CheckMagic(bytes));
  if (bytes.size() < sizeof(PolicyHeader) + kTrailerBytes) {
    return Damaged(bytes.size(), "shorter than a policy's header and trailer");
  }
  if (bytes.size() > kMaxPolicyBytes) return Damaged(kMaxPolicyBytes, "longer than any policy");
  PolicyHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  DYNAMICCL_CHECK_OK(CheckHeader(header, bytes.size()));
  const bool with_effects = header.format_version == kPolicyVersionWithEffects;
  DYNAMICCL_TRY(const size_t provenance_bytes, ProvenanceBytes(bytes, with_effects));
  const Layout layout = LayoutFor(with_effects, provenance_bytes);
  DYNAMICCL_CHECK_OK(CheckSections(bytes, header, layout));
  DYNAMICCL_CHECK_OK(CheckPadding(bytes, layout));

  auto policy = std::make_unique<Policy>();
  DYNAMICCL_CHECK_OK(CheckTrailer(bytes, policy->sha256));
  const auto rows = PolicySections(with_effects);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(SectionBytes(policy->tensors, rows[i]).data(), bytes.data() + layout.sections[i].offset,
                rows[i].bytes);
  }
  if (with_effects && policy->tensors.effect.count == 0)
    return Damaged(offsetof(PolicyHeader, format_version), "format version 3 without measured effects");
  DYNAMICCL_CHECK_OK(CheckValues(policy->tensors, layout));
  const PolicySection& text = layout.sections.back();
  policy->provenance.assign(reinterpret_cast<const char*>(bytes.data()) + text.offset, text.bytes);
  policy->training_data_id = header.training_data_id;
  policy->min_nccl_version = header.min_nccl_version;
  policy->max_nccl_version = header.max_nccl_version;
  policy->structure_network = std::make_shared<const StructureNetwork>(policy->tensors);
  return policy;
}

}  // namespace

Result<std::unique_ptr<const Policy>> ParsePolicy(std::span<const std::byte> bytes, const std::string& name) {
  auto policy = Parse(bytes);
  if (!policy) return Wrap(policy.error(), name);
  return policy;
}

Result<std::unique_ptr<const Policy>> ReadPolicyFile(const std::string& path) {
  auto file = ReadWholeFile(path, kMaxPolicyBytes);
  if (!file) {
    const bool has_hint = !file.error().hint.empty();
    return WithHint(tl::unexpected<Error>(file.error()),
                    has_hint ? file.error().hint : "check the path of the policy (DYNAMICCL_POLICY)");
  }
  if (file->others_may_write) {
    Log(LogLevel::kWarn, "{}: others than its owner may write to this policy (chmod go-w)", path);
  }
  return ParsePolicy(file->bytes, path);
}

Result<Sha256Digest> ReadPolicyDigest(const std::string& path) {
  DYNAMICCL_TRY(const WholeFile file, ReadWholeFile(path, kMaxPolicyBytes));
  if (file.bytes.size() < kTrailerBytes) return Damaged(0, "not a policy file (length)");
  Sha256Digest digest;
  DYNAMICCL_CHECK_OK(CheckTrailer(file.bytes, digest));
  return digest;
}

std::vector<std::byte> FormatPolicy(const Policy& policy) {
  Layout layout = LayoutFor(policy.tensors.effect.count != 0, policy.provenance.size());
  std::vector<std::byte> bytes(layout.file_bytes);
  const auto put = [&bytes](size_t offset, const void* data, size_t size) {
    if (size > 0) std::memcpy(bytes.data() + offset, data, size);
  };
  const auto rows = PolicySections(layout.with_effects);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto section = SectionBytes(policy.tensors, rows[i]);
    put(layout.sections[i].offset, section.data(), section.size());
  }
  put(layout.sections.back().offset, policy.provenance.data(), policy.provenance.size());
  for (PolicySection& section : layout.sections) {
    section.checksum = Checksum(std::span<const std::byte>(bytes).subspan(section.offset, section.bytes));
  }
  const PolicyHeader header = HeaderFor(policy, layout);
  put(0, &header, sizeof(header));
  put(sizeof(header), layout.sections.data(), layout.sections.size() * sizeof(PolicySection));
  const size_t end = bytes.size() - kTrailerBytes;
  const Sha256Digest digest = Sha256Of(std::span<const std::byte>(bytes).first(end));
  put(end, digest.data(), digest.size());
  return bytes;
}

Result<Sha256Digest> WritePolicyFile(const std::string& path, const Policy& policy) {
  const std::vector<std::byte> bytes = FormatPolicy(policy);
  DYNAMICCL_TRY(const auto read_back, ParsePolicy(bytes, path));
  DYNAMICCL_CHECK_OK(WriteWholeFile(path, bytes));
  return read_back->sha256;
}

}  // namespace dynamiccl
