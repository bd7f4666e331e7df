// SPDX-License-Identifier: Apache-2.0
// The header is untrusted: every extent, offset and length is checked before use. Tensors are processed in
// pieces, so that only one piece is in memory.
#include "zero_workloads/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "zero_workloads/checkpoint/part_writer.h"

namespace dynamiccl::zero {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

// Bytes. The reader of huggingface/safetensors has the same limit.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
// Number of elements that are in memory at a time: 1 MiB in fp32.
constexpr int64_t kPiece = 1 << 18;
// Prefixes of the optimizer's states in an exported file.
constexpr const char* kMoments[] = {"first_moment.", "second_moment."};

// A number type of the safetensors format, and the conversion of one number to fp32.
struct NumberType {
  const char* name;
  size_t bytes;
  float (*to_float)(const std::byte* number);
};

template <typename T>
T Load(const std::byte* bytes) {
  T number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

// IEEE 754 binary16: 5 bits of exponent with bias 15, 10 bits of fraction.
float HalfToFloat(const std::byte* bytes) {
  const auto bits = Load<uint16_t>(bytes);
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float magnitude =
      std::ldexp(static_cast<float>(exponent == 0 ? fraction : fraction + 1024), std::max(exponent, 1) - 25);
  if (exponent == 31) {
    magnitude =
        fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  }
  return (bits >> 15) != 0 ? -magnitude : magnitude;
}

// bf16 is the upper half of an fp32 number.
float BrainToFloat(const std::byte* bytes) {
  return std::bit_cast<float>(static_cast<uint32_t>(Load<uint16_t>(bytes)) << 16);
}

// The types that SafetensorsFile::Read converts.
constexpr NumberType kTypes[] = {
    {"F32", 4, Load<float>},
    {"BF16", 2, BrainToFloat},
    {"F16", 2, HalfToFloat},
    {"F64", 8, [](const std::byte* bytes) { return static_cast<float>(Load<double>(bytes)); }},
};

const NumberType* TypeOf(const std::string& name) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const NumberType& type) { return name == type.name; });
  return found == std::end(kTypes) ? nullptr : found;
}

// Rounds to nearest, ties to even. A NaN stays a NaN: one bit of its fraction is set, so that the fraction
// cannot become zero.
uint16_t FloatToBrain(float number) {
  const auto bits = std::bit_cast<uint32_t>(number);
  if (std::isnan(number)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// True for a list of non-negative numbers below 2^48. No extent or offset of a real file is larger.
bool IsExtents(const Json& json) {
  return json.is_array() && std::all_of(json.begin(), json.end(), [](const Json& extent) {
           return extent.is_number_unsigned() && extent.get<uint64_t>() < (uint64_t{1} << 48);
         });
}

// Parses an entry of the header. Returns false if `json` is not an entry as the format defines it, or if the
// entry's length does not fit its shape.
bool ReadEntry(const std::string& name, const Json& json, SafetensorsEntry* entry) {
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() || !json.contains("shape") ||
      !IsExtents(json["shape"]) || !json.contains("data_offsets") || !IsExtents(json["data_offsets"]) ||
      json["data_offsets"].size() != 2) {
    return false;
  }
  *entry = {name, json["dtype"], json["shape"], json["data_offsets"][0], json["data_offsets"][1]};
  int64_t elements = 1;
  for (int64_t extent : entry->shape) {
    if (__builtin_mul_overflow(elements, extent, &elements)) return false;
  }
  const NumberType* type = TypeOf(entry->type);
  uint64_t bytes = 0;
  if (entry->begin > entry->end) return false;
  return type == nullptr || (!__builtin_mul_overflow(static_cast<uint64_t>(elements), type->bytes, &bytes) &&
                             bytes == entry->end - entry->begin);
}

tl::unexpected<Error> UnknownType(const std::string& path, const SafetensorsEntry& entry) {
  return MakeError(ErrorKind::kUnsupported, "{}: {} is of type {}; F64, F32, F16 and BF16 can be read", path,
                   entry.name, entry.type);
}

bool IsMoment(const std::string& name) {
  return std::any_of(std::begin(kMoments), std::end(kMoments),
                     [&](const char* prefix) { return name.starts_with(prefix); });
}

// One tensor of the exported file.
struct Exported {
  std::string name;
  int64_t tensor = 0;
  int64_t state = 0;
};

std::vector<Exported> ExportedTensors(const CheckpointIndex& index, bool optimizer_state) {
  std::vector<Exported> list;
  for (size_t state = 0; state < index.states.size(); ++state) {
    const bool weights = index.states[state] == "master";
    if (!weights && !optimizer_state) continue;
    const std::string prefix = weights ? "" : index.states[state] + ".";
    for (size_t tensor = 0; tensor < index.tensors.size(); ++tensor) {
      list.push_back(
          {prefix + index.tensors[tensor].name, static_cast<int64_t>(tensor), static_cast<int64_t>(state)});
    }
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return list;
}

Result<std::string> HeaderOf(const CheckpointReader& checkpoint, const std::vector<Exported>& list,
                             bool bf16) {
  // Readers of the format check for "pt" before they treat the tensors as PyTorch's.
  Json header = {{"__metadata__", {{"format", "pt"}, {"step", std::to_string(checkpoint.step())}}}};
  uint64_t offset = 0;
  for (const Exported& exported : list) {
    const CheckpointTensor& tensor = checkpoint.index().tensors[static_cast<size_t>(exported.tensor)];
    const uint64_t end = offset + static_cast<uint64_t>(tensor.Elements()) * (bf16 ? 2 : 4);
    header[exported.name] = {
        {"dtype", bf16 ? "BF16" : "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  try {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const Json::type_error&) {
    return MakeError(ErrorKind::kUnsupported, "a tensor's name is not UTF-8, as safetensors wants it");
  }
}

Status WriteNumbers(CheckpointReader* checkpoint, const Exported& exported, bool bf16, std::ofstream* file) {
  const int64_t elements = checkpoint->index().tensors[static_cast<size_t>(exported.tensor)].Elements();
  std::vector<float> numbers;
  std::vector<uint16_t> brains;
  for (int64_t begin = 0; begin < elements; begin += kPiece) {
    const int64_t end = std::min(elements, begin + kPiece);
    numbers.resize(static_cast<size_t>(end - begin));
    DYNAMICCL_CHECK_OK(checkpoint->Read(exported.tensor, exported.state, {elements, elements, 0}, begin, end,
                                        numbers.data()));
    if (bf16) {
      brains.resize(numbers.size());
      std::transform(numbers.begin(), numbers.end(), brains.begin(), FloatToBrain);
      file->write(reinterpret_cast<const char*>(brains.data()), (end - begin) * 2);
    } else {
      file->write(reinterpret_cast<const char*>(numbers.data()), (end - begin) * 4);
    }
  }
  return {};
}

Status WriteTensor(const SafetensorsFile& file, const SafetensorsEntry& entry, DataFileWriter* data) {
  std::vector<float> numbers;
  for (int64_t begin = 0; begin < entry.Elements(); begin += kPiece) {
    numbers.resize(static_cast<size_t>(std::min(kPiece, entry.Elements() - begin)));
    DYNAMICCL_CHECK_OK(file.Read(entry, begin, numbers));
    DYNAMICCL_CHECK_OK(data->Append(std::as_bytes(std::span(numbers))));
  }
  return {};
}

Result<CheckpointIndex> WriteTensors(const SafetensorsFile& file, const std::string& name,
                                     const std::string& folder) {
  CheckpointIndex index;
  index.values = {{"step", "0"}, {"imported", name}};
  index.states = {"master"};
  DYNAMICCL_TRY(DataFileWriter data, DataFileWriter::Create(folder, "rank-00000.data", {0, 0, 1}));
  for (const SafetensorsEntry& entry : file.entries()) {
    if (IsMoment(entry.name) || entry.Elements() == 0) continue;
    const int64_t elements = entry.Elements();
    index.ranges.push_back({static_cast<uint32_t>(index.tensors.size()), 0, 0, data.bytes(),
                            TensorSlice{elements, elements, 0}, 0, elements});
    index.tensors.push_back({entry.name, entry.shape});
    DYNAMICCL_CHECK_OK(WriteTensor(file, entry, &data));
  }
  DYNAMICCL_TRY(CheckpointFile written, data.Finish());
  index.files.push_back(std::move(written));
  return index;
}

// Renames the temporary file. The content is synced before the rename and the folder after it, so that the
// file is on the disk when the function returns.
Status PutInPlace(const std::string& temporary, const std::string& path) {
  const UniqueFd fd(::open(temporary.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) {
    return MakeError(ErrorKind::kUnavailable, "{}: {}", temporary, ErrnoText(errno));
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return MakeError(ErrorKind::kUnavailable, "{}: {}", path, ErrnoText(errno));
  }
  const fs::path folder = fs::path(path).parent_path();
  return SyncFolder(folder.empty() ? "." : folder.string());
}

Result<size_t> WriteImported(const SafetensorsFile& file, const std::string& name, CheckpointFolder* folder) {
  const std::string partial = folder->PartialPathOf(0);
  std::error_code failure;
  fs::create_directory(partial, failure);
  if (failure) return MakeError(ErrorKind::kUnavailable, "{}: {}", partial, failure.message());
  DYNAMICCL_TRY(const CheckpointIndex index, WriteTensors(file, name, partial));
  DYNAMICCL_CHECK_OK(WriteIndex(partial, index));
  DYNAMICCL_CHECK_OK(folder->Commit(0, {}));
  return index.tensors.size();
}

}  // namespace

int64_t SafetensorsEntry::Elements() const {
  int64_t elements = 1;
  for (int64_t extent : shape) elements *= extent;
  return elements;
}

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
    return MakeError(ErrorKind::kNotFound, "{}: {}", path, ErrnoText(errno));
  }
  SafetensorsFile file(path, std::move(fd));
  DYNAMICCL_CHECK_OK(file.ReadHeader(static_cast<uint64_t>(info.st_size)));
  return file;
}

Status SafetensorsFile::ReadHeader(uint64_t file_bytes) {
  uint64_t bytes = 0;
  DYNAMICCL_CHECK_OK(ReadBytes(0, std::as_writable_bytes(std::span(&bytes, 1))));
  if (bytes > kMaxHeaderBytes || bytes > file_bytes - sizeof(bytes)) {
    return MakeError(ErrorKind::kCorrupt,
                     "{}: offset 0: a header of {} bytes: not a safetensors file, or "
                     "truncated",
                     path_, bytes);
  }
  std::string text(bytes, ' ');
  DYNAMICCL_CHECK_OK(ReadBytes(sizeof(bytes), std::as_writable_bytes(std::span(text))));
  const Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object())
    return MakeError(ErrorKind::kCorrupt, "{}: offset 8: the header is not JSON", path_);
  data_offset_ = sizeof(bytes) + bytes;
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") continue;
    SafetensorsEntry entry;
    if (!ReadEntry(name, json, &entry)) {
      return MakeError(ErrorKind::kCorrupt, "{}: header: {} is no tensor of the format", path_, name);
    }
    if (entry.end > file_bytes - data_offset_) {
      return MakeError(ErrorKind::kCorrupt, "{}: offset {}: ends here, before {}: truncated", path_,
                       file_bytes, name);
    }
    entries_.push_back(std::move(entry));
  }
  return {};
}

Status SafetensorsFile::ReadBytes(uint64_t offset, std::span<std::byte> output) const {
  while (!output.empty()) {
    const ssize_t got = ::pread(fd_.get(), output.data(), output.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return MakeError(ErrorKind::kCorrupt, "{}: offset {}: {}", path_, offset,
                       got == 0 ? "the file ends" : ErrnoText(errno));
    }
    output = output.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return {};
}

Status SafetensorsFile::CheckTypes() const {
  for (const SafetensorsEntry& entry : entries_) {
    if (TypeOf(entry.type) == nullptr && !IsMoment(entry.name)) return UnknownType(path_, entry);
  }
  return {};
}

Status SafetensorsFile::Read(const SafetensorsEntry& entry, int64_t first, std::span<float> output) const {
  const NumberType* type = TypeOf(entry.type);
  if (type == nullptr) return UnknownType(path_, entry);
  std::vector<std::byte> bytes(output.size() * type->bytes);
  DYNAMICCL_CHECK_OK(
      ReadBytes(data_offset_ + entry.begin + static_cast<uint64_t>(first) * type->bytes, bytes));
  for (size_t i = 0; i < output.size(); ++i) output[i] = type->to_float(bytes.data() + i * type->bytes);
  return {};
}

Status ExportSafetensors(CheckpointReader* checkpoint, const std::string& path,
                         const ExportSettings& settings) {
  const std::vector<Exported> list = ExportedTensors(checkpoint->index(), settings.optimizer_state);
  DYNAMICCL_TRY(const std::string header, HeaderOf(*checkpoint, list, settings.bf16));
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  std::ofstream file(temporary, std::ios::binary);
  const uint64_t bytes = header.size();
  file.write(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  file << header;
  Status status;
  for (size_t i = 0; i < list.size() && status && file; ++i) {
    status = WriteNumbers(checkpoint, list[i], settings.bf16, &file);
  }
  file.close();
  if (status && !file) status = MakeError(ErrorKind::kUnavailable, "{}: cannot be written", path);
  if (status) status = PutInPlace(temporary, path);
  std::error_code failure;
  if (!status) fs::remove(temporary, failure);
  return status;
}

Result<size_t> ImportSafetensors(const SafetensorsFile& file, const std::string& name,
                                 CheckpointFolder* folder) {
  DYNAMICCL_CHECK_OK(folder->Claim());
  DYNAMICCL_TRY(const std::vector<int64_t> steps, folder->Steps());
  if (!steps.empty()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: has checkpoints already", folder->path()),
                    "import into another folder");
  }
  DYNAMICCL_CHECK_OK(file.CheckTypes());
  const Result<size_t> tensors = WriteImported(file, name, folder);
  if (!tensors) folder->DropPartial(0);
  return tensors;
}

}  // namespace dynamiccl::zero
