// SPDX-License-Identifier: Apache-2.0
// Encoding, decoding and merging of the index. The layout is in docs/formats/checkpoint.md: magic, version,
// length, the lists in order, and a checksum. Nothing in a decoded index is trusted before IsSound has
// checked it.
#include "zero_workloads/checkpoint/checkpoint_index.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <tuple>
#include <utility>

#include "src/base/byte_codec.h"

namespace dynamiccl::zero {
namespace {

// The letters "DCKINDEX" in little-endian order.
constexpr uint64_t kMagic = 0x5845444e494b4344;
constexpr uint32_t kVersion = 1;
// Bytes. No name or value in an index is longer. A larger length means that the file is damaged.
constexpr size_t kLongestText = 1 << 20;
// No tensor has more dimensions. A larger number means that the file is damaged.
constexpr uint32_t kMaxDimensions = 64;

using Bytes = std::span<const std::byte>;

uint64_t Hash(Bytes bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

void Put(const CheckpointTensor& tensor, ByteWriter* writer) {
  writer->PutText(tensor.name);
  writer->Put(static_cast<uint32_t>(tensor.shape.size()));
  for (int64_t extent : tensor.shape) writer->Put(extent);
}

void Put(const CheckpointFile& file, ByteWriter* writer) {
  writer->PutText(file.name);
  writer->Put(file.bytes);
  for (uint64_t hash : file.block_hashes) writer->Put(hash);
}

void Put(const StoredRange& range, ByteWriter* writer) {
  for (uint32_t number : {range.tensor, range.state, range.file}) writer->Put(number);
  writer->Put(range.offset);
  for (int64_t number : {range.slice.run, range.slice.stride, range.slice.base, range.begin, range.end}) {
    writer->Put(number);
  }
}

template <typename T>
void PutAll(const std::vector<T>& list, ByteWriter* writer) {
  writer->Put(static_cast<uint32_t>(list.size()));
  for (const T& item : list) Put(item, writer);
}

// Puts the reader into its failed state by reading more bytes than there are.
void Refuse(ByteReader* reader) {
  reader->GetBytes(SIZE_MAX);
}

// Reads the length of a list. No item of a list is shorter than four bytes, so a damaged length is refused
// before memory is reserved.
uint32_t Count(ByteReader* reader) {
  const auto count = reader->Get<uint32_t>();
  if (count <= reader->remaining() / 4) return count;
  Refuse(reader);
  return 0;
}

CheckpointTensor GetTensor(ByteReader* reader) {
  CheckpointTensor tensor{reader->GetText(kLongestText), {}};
  const auto dimensions = reader->Get<uint32_t>();
  if (dimensions > kMaxDimensions) Refuse(reader);
  for (uint32_t i = 0; i < dimensions && reader->ok(); ++i) tensor.shape.push_back(reader->Get<int64_t>());
  return tensor;
}

CheckpointFile GetFile(ByteReader* reader) {
  CheckpointFile file{reader->GetText(kLongestText), reader->Get<uint64_t>(), {}};
  const uint64_t blocks = file.bytes / kCheckpointBlockBytes + (file.bytes % kCheckpointBlockBytes != 0);
  for (uint64_t i = 0; i < blocks && reader->ok(); ++i) file.block_hashes.push_back(reader->Get<uint64_t>());
  return file;
}

StoredRange GetRange(ByteReader* reader) {
  StoredRange range;
  for (uint32_t* number : {&range.tensor, &range.state, &range.file}) *number = reader->Get<uint32_t>();
  range.offset = reader->Get<uint64_t>();
  TensorSlice& slice = range.slice;
  for (int64_t* number : {&slice.run, &slice.stride, &slice.base, &range.begin, &range.end}) {
    *number = reader->Get<int64_t>();
  }
  return range;
}

// True if it is safe to compute with the range, whatever the file contains: its indices exist, the slice fits
// the tensor, and the bytes lie inside the file.
bool IsSound(const StoredRange& range, const CheckpointIndex& index) {
  if (range.tensor >= index.tensors.size() || range.state >= index.states.size() ||
      range.file >= index.files.size()) {
    return false;
  }
  const TensorSlice& slice = range.slice;
  const int64_t elements = index.tensors[range.tensor].Elements();
  const uint64_t file_bytes = index.files[range.file].bytes;
  return slice.run > 0 && slice.stride >= slice.run && slice.base >= 0 &&
         slice.base <= slice.stride - slice.run && slice.stride <= elements && range.begin >= 0 &&
         range.begin < range.end && range.end <= elements && elements % slice.stride == 0 &&
         (range.end - 1) / slice.run < elements / slice.stride && range.offset <= file_bytes &&
         static_cast<uint64_t>(range.end - range.begin) <= (file_bytes - range.offset) / sizeof(float);
}

bool IsSound(const CheckpointTensor& tensor) {
  int64_t elements = 1;
  return std::all_of(tensor.shape.begin(), tensor.shape.end(), [&](int64_t extent) {
    return extent > 0 && !__builtin_mul_overflow(elements, extent, &elements);
  });
}

Status CheckEnvelope(Bytes bytes) {
  ByteReader reader(bytes);
  const auto magic = reader.Get<uint64_t>();
  const auto version = reader.Get<uint32_t>();
  const auto length = reader.Get<uint64_t>();
  if (!reader.ok()) return MakeError(ErrorKind::kCorrupt, "{} bytes are too few for an index", bytes.size());
  if (magic != kMagic) return MakeError(ErrorKind::kCorrupt, "offset 0: not the index of a checkpoint");
  if (version != kVersion) {
    return MakeError(ErrorKind::kCorrupt, "offset 8: version {}, this build reads {}", version, kVersion);
  }
  if (length != bytes.size()) {
    return MakeError(ErrorKind::kCorrupt, "offset 12: {} bytes expected, the file has {}: truncated?", length,
                     bytes.size());
  }
  const size_t body = bytes.size() - std::min(bytes.size(), sizeof(uint64_t));
  ByteReader end(bytes.subspan(body));
  if (end.Get<uint64_t>() != Hash(bytes.first(body))) {
    return MakeError(ErrorKind::kCorrupt, "offset {}: the checksum of all bytes before it is wrong", body);
  }
  return {};
}

// Appends the files of `part` and their ranges to `whole`. `tensors` maps the part's tensor numbers to those
// of `whole`.
void AppendRanges(const CheckpointIndex& part, const std::vector<uint32_t>& tensors, CheckpointIndex* whole) {
  const auto first_file = static_cast<uint32_t>(whole->files.size());
  whole->files.insert(whole->files.end(), part.files.begin(), part.files.end());
  for (StoredRange range : part.ranges) {
    range.tensor = tensors[range.tensor];
    range.file += first_file;
    whole->ranges.push_back(range);
  }
}

// True if `next` lies after `range` in the whole tensor: behind it in the same columns, or in later columns.
bool IsBehind(const StoredRange& range, const StoredRange& next) {
  if (next.slice.stride != range.slice.stride) return false;
  if (next.slice.base == range.slice.base) {
    return next.slice.run == range.slice.run && next.begin >= range.end;
  }
  return next.slice.base >= range.slice.base + range.slice.run;
}

// Checks that the ranges of one tensor and state cover the tensor. The ranges are sorted by position, and no
// range may overlap the next one. The total number of elements then shows whether any element is missing.
Status CheckCovered(const CheckpointTensor& tensor, std::vector<const StoredRange*> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const auto* a, const auto* b) {
    return std::tie(a->slice.base, a->begin) < std::tie(b->slice.base, b->begin);
  });
  int64_t elements = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (i > 0 && !IsBehind(*ranges[i - 1], *ranges[i])) {
      return MakeError(ErrorKind::kCorrupt, "{}: elements are there twice", tensor.name);
    }
    elements += ranges[i]->end - ranges[i]->begin;
  }
  if (elements == tensor.Elements()) return {};
  return MakeError(ErrorKind::kCorrupt, "{}: {} of {} elements are there", tensor.name, elements,
                   tensor.Elements());
}

}  // namespace

int64_t CheckpointTensor::Elements() const {
  int64_t elements = 1;
  for (int64_t extent : shape) elements *= extent;
  return elements;
}

Result<int64_t> CheckpointIndex::IntegerValue(const std::string& name) const {
  const auto found = values.find(name);
  if (found == values.end()) return MakeError(ErrorKind::kNotFound, "the checkpoint has no value {}", name);
  int64_t value = 0;
  const char* end = found->second.data() + found->second.size();
  const auto parsed = std::from_chars(found->second.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return MakeError(ErrorKind::kCorrupt, "the checkpoint's value {}=\"{}\" is not a number", name,
                     found->second);
  }
  return value;
}

int64_t CheckpointIndex::StateNumber(const std::string& name) const {
  const auto found = std::find(states.begin(), states.end(), name);
  return found == states.end() ? -1 : found - states.begin();
}

int64_t CheckpointIndex::TensorNumber(const std::string& name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
  return found == tensors.end() ? -1 : found - tensors.begin();
}

std::vector<std::byte> EncodeIndex(const CheckpointIndex& index) {
  ByteWriter body;
  body.Put(static_cast<uint32_t>(index.values.size()));
  for (const auto& [name, value] : index.values) {
    body.PutText(name);
    body.PutText(value);
  }
  body.Put(static_cast<uint32_t>(index.states.size()));
  for (const std::string& state : index.states) body.PutText(state);
  PutAll(index.tensors, &body);
  PutAll(index.files, &body);
  PutAll(index.ranges, &body);

  ByteWriter writer;
  writer.Put(kMagic);
  writer.Put(kVersion);
  const uint64_t envelope = sizeof(kMagic) + sizeof(kVersion) + 2 * sizeof(uint64_t);
  writer.Put(uint64_t{envelope + body.buffer().size()});
  writer.PutBytes(body.buffer());
  writer.Put(Hash(writer.buffer()));
  return std::move(writer.buffer());
}

Result<CheckpointIndex> DecodeIndex(std::span<const std::byte> bytes) {
  DYNAMICCL_CHECK_OK(CheckEnvelope(bytes));
  // Bytes before the body: magic number, version and length.
  constexpr size_t kHead = sizeof(kMagic) + sizeof(kVersion) + sizeof(uint64_t);
  ByteReader reader(bytes.first(bytes.size() - sizeof(uint64_t)));
  reader.GetBytes(kHead);
  CheckpointIndex index;
  for (uint32_t left = Count(&reader); left > 0; --left) {
    const std::string name = reader.GetText(kLongestText);
    // The values must be sorted by name, and each name must occur once.
    if (!index.values.empty() && name <= index.values.rbegin()->first) Refuse(&reader);
    index.values[name] = reader.GetText(kLongestText);
  }
  for (uint32_t left = Count(&reader); left > 0; --left) index.states.push_back(reader.GetText(kLongestText));
  for (uint32_t left = Count(&reader); left > 0; --left) index.tensors.push_back(GetTensor(&reader));
  for (uint32_t left = Count(&reader); left > 0; --left) index.files.push_back(GetFile(&reader));
  for (uint32_t left = Count(&reader); left > 0; --left) index.ranges.push_back(GetRange(&reader));
  bool sound = reader.ok() && reader.remaining() == 0;
  for (const CheckpointTensor& tensor : index.tensors) sound = sound && IsSound(tensor);
  for (const CheckpointFile& file : index.files) sound = sound && file.name.find('/') == std::string::npos;
  for (const StoredRange& range : index.ranges) sound = sound && IsSound(range, index);
  if (!sound) {
    return MakeError(ErrorKind::kCorrupt,
                     "offset {}: the checksum is right and the content is not: written "
                     "by something else",
                     reader.offset());
  }
  return index;
}

Result<CheckpointIndex> MergeParts(const std::vector<CheckpointIndex>& parts) {
  CheckpointIndex whole;
  if (parts.empty()) return whole;
  whole.values = parts.front().values;
  whole.states = parts.front().states;
  std::map<std::string, uint32_t> numbers;
  for (const CheckpointIndex& part : parts) {
    if (part.values != whole.values || part.states != whole.states) {
      return MakeError(ErrorKind::kInternal, "the ranks' parts of the checkpoint are not of one step");
    }
    std::vector<uint32_t> tensors;
    for (const CheckpointTensor& tensor : part.tensors) {
      const auto [known, is_new] = numbers.try_emplace(tensor.name, whole.tensors.size());
      if (is_new) whole.tensors.push_back(tensor);
      if (whole.tensors[known->second] != tensor) {
        return MakeError(ErrorKind::kInternal, "ranks have {} in different shapes", tensor.name);
      }
      tensors.push_back(known->second);
    }
    AppendRanges(part, tensors, &whole);
  }
  return whole;
}

// Every pair of tensor and state needs at least one range, so the amount of work is bounded by the number of
// ranges.
Status CheckComplete(const CheckpointIndex& index) {
  std::map<std::pair<size_t, size_t>, std::vector<const StoredRange*>> ranges;
  for (const StoredRange& range : index.ranges) ranges[{range.tensor, range.state}].push_back(&range);
  for (size_t tensor = 0; tensor < index.tensors.size(); ++tensor) {
    for (size_t state = 0; state < index.states.size(); ++state) {
      const Status covered = CheckCovered(index.tensors[tensor], std::move(ranges[{tensor, state}]));
      if (!covered) return Wrap(covered.error(), index.states[state]);
    }
  }
  return {};
}

}  // namespace dynamiccl::zero
