// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes the messages of `dynamiccl link`. docs/formats/link_control.md has the grammar.
#include "src/transport/link_messages.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "src/base/byte_codec.h"

namespace dynamiccl {
namespace {

constexpr uint32_t kMagic = 0x4b4c4344;  // "DCLK"
constexpr uint32_t kVersion = 1;
// 16 MiB, the most that a message's body may have. The rows of 64 nodes with 8 rails take 3 MB.
constexpr uint32_t kMaxBody = 16 << 20;
// In characters: the longest reason that comes with a refusal.
constexpr size_t kMaxReason = 4096;

void PutTarget(ByteWriter& writer, const LinkTarget& target) {
  writer.Put(int32_t{target.from});
  writer.Put(int32_t{target.to});
  writer.Put(int32_t{target.rail});
  writer.Put(static_cast<uint8_t>(target.both));
}

LinkTarget GetTarget(ByteReader& reader) {
  LinkTarget target;
  target.from = reader.Get<int32_t>();
  target.to = reader.Get<int32_t>();
  target.rail = reader.Get<int32_t>();
  target.both = reader.Get<uint8_t>() != 0;
  return target;
}

// Writes the fields in the order of LinkFieldTable.
void PutShape(ByteWriter& writer, const LinkShape& shape) {
  for (const LinkField& field : LinkFieldTable()) writer.Put(shape.*field.value);
}

LinkShape GetShape(ByteReader& reader) {
  LinkShape shape;
  for (const LinkField& field : LinkFieldTable()) shape.*field.value = reader.Get<double>();
  return shape;
}

void PutRow(ByteWriter& writer, const LinkRow& row) {
  writer.Put(row.from);
  writer.Put(row.to);
  writer.Put(row.rail);
  writer.Put(static_cast<uint8_t>(row.ordered));
  writer.Put(row.messages);
  writer.Put(row.bytes);
  PutShape(writer, row.shape);
}

LinkRow GetRow(ByteReader& reader) {
  LinkRow row;
  row.from = reader.Get<int32_t>();
  row.to = reader.Get<int32_t>();
  row.rail = reader.Get<int32_t>();
  row.ordered = reader.Get<uint8_t>() != 0;
  row.messages = reader.Get<uint64_t>();
  row.bytes = reader.Get<uint64_t>();
  row.shape = GetShape(reader);
  return row;
}

LinkJob GetJob(ByteReader& reader) {
  LinkJob job;
  job.n_ranks = reader.Get<int32_t>();
  job.elapsed_ns = reader.Get<int64_t>();
  job.calls = reader.Get<int64_t>();
  const auto rows = reader.Get<uint32_t>();
  for (uint32_t i = 0; i < rows && reader.ok(); ++i) job.rows.push_back(GetRow(reader));
  return job;
}

tl::unexpected<Error> Damaged(const char* what) {
  return MakeError(ErrorKind::kCorrupt, "link control: {}", what);
}

}  // namespace

std::vector<std::byte> Encode(const LinkRequest& request) {
  ByteWriter writer;
  writer.Put(static_cast<uint16_t>(request.kind));
  PutTarget(writer, request.target);
  writer.Put(request.change.fields);
  PutShape(writer, request.change.values);
  writer.Put(request.for_ns);
  return std::move(writer.buffer());
}

Result<LinkRequest> DecodeLinkRequest(std::span<const std::byte> body) {
  ByteReader reader(body);
  LinkRequest request;
  const auto kind = reader.Get<uint16_t>();
  request.kind = static_cast<LinkRequestKind>(kind);
  request.target = GetTarget(reader);
  request.change.fields = reader.Get<uint32_t>();
  request.change.values = GetShape(reader);
  request.for_ns = reader.Get<int64_t>();
  if (!reader.ok() || reader.remaining() != 0) return Damaged("a request of another length");
  if (kind < 1 || kind > 3) return Damaged("a request of an unknown kind");
  if (request.change.fields >> kLinkFields != 0 || request.for_ns < 0)
    return Damaged("a request that means nothing");
  DYNAMICCL_CHECK_OK(CheckRanges(request.change));
  return request;
}

std::vector<std::byte> Encode(const LinkAnswer& answer) {
  ByteWriter writer;
  writer.PutText(answer.refused);
  writer.Put(answer.changed);
  writer.Put(static_cast<uint32_t>(answer.jobs.size()));
  for (const LinkJob& job : answer.jobs) {
    writer.Put(job.n_ranks);
    writer.Put(job.elapsed_ns);
    writer.Put(job.calls);
    writer.Put(static_cast<uint32_t>(job.rows.size()));
    for (const LinkRow& row : job.rows) PutRow(writer, row);
  }
  return std::move(writer.buffer());
}

Result<LinkAnswer> DecodeLinkAnswer(std::span<const std::byte> body) {
  ByteReader reader(body);
  LinkAnswer answer;
  answer.refused = reader.GetText(kMaxReason);
  answer.changed = reader.Get<uint32_t>();
  const auto jobs = reader.Get<uint32_t>();
  for (uint32_t i = 0; i < jobs && reader.ok(); ++i) answer.jobs.push_back(GetJob(reader));
  if (!reader.ok() || reader.remaining() != 0) return Damaged("an answer of another length");
  return answer;
}

Status SendLinkMessage(int socket, std::span<const std::byte> body, Deadline deadline) {
  if (body.size() > kMaxBody) return Damaged("more links than a message can carry");
  const std::array<uint32_t, 3> header{kMagic, kVersion, static_cast<uint32_t>(body.size())};
  DYNAMICCL_CHECK_OK(SendAll(socket, std::as_bytes(std::span(header)), deadline));
  return SendAll(socket, body, deadline);
}

Result<std::vector<std::byte>> ReceiveLinkMessage(int socket, Deadline deadline) {
  std::array<uint32_t, 3> header{};
  DYNAMICCL_CHECK_OK(ReceiveAll(socket, std::as_writable_bytes(std::span(header)), deadline));
  if (header[0] != kMagic) return Damaged("not a message of link control");
  if (header[1] != kVersion) {
    return MakeError(ErrorKind::kUnsupported, "link control: version {}, this build speaks {}", header[1],
                     kVersion);
  }
  if (header[2] > kMaxBody) return Damaged("a message that is too long");
  std::vector<std::byte> body(header[2]);
  DYNAMICCL_CHECK_OK(ReceiveAll(socket, body, deadline));
  return body;
}

std::string LinkSocketPrefix() {
  return fmt::format("dynamiccl-links-{}-", ::geteuid());
}

}  // namespace dynamiccl
