// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/machine_inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <tuple>

namespace dynamiccl {
namespace {

constexpr std::string_view kMagic = "dynamiccl-machine-inventory\t";
constexpr const char* kVersion = "1";
constexpr const char* kCollectAgain =
    "collect it again on the node: sh collect_machine.sh >node.inventory (docs/canary.md)";

using Fields = std::vector<std::string>;

Fields FieldsOf(std::string_view line) {
  Fields fields;
  for (;;) {
    const size_t end = line.find('\t');
    fields.emplace_back(line.substr(0, end));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + 1);
  }
}

// Removes terminal escapes: nvidia-smi underlines the header of its matrix.
std::string WithoutEscapes(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\033') {
      plain += text[i];
      continue;
    }
    while (i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) == 0) ++i;
  }
  return plain;
}

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char letter : text) {
    if (letter != ' ' && letter != '\t')
      words.back() += letter;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Converts "200 Gb/sec (4X HDR)" into Mb/s.
int RateOf(const std::string& text) {
  return static_cast<int>(std::lround(std::strtod(text.c_str(), nullptr) * 1000));
}

// Orders "mlx5_10" after "mlx5_9".
std::tuple<std::string, int, int> OrderOf(const InventoryAdapter& adapter) {
  const size_t digits = adapter.name.find_last_not_of("0123456789") + 1;
  return {adapter.name.substr(0, digits), std::atoi(adapter.name.c_str() + digits), adapter.port};
}

// Builds an inventory line by line. ParseMachineInventory owns it on its stack.
class InventoryReader {
 public:
  explicit InventoryReader(std::string name) : name_(std::move(name)) {}

  Status Take(size_t number, const std::string& line) {
    const Fields fields = FieldsOf(line);
    for (const auto& [word, least, take] : kRecords) {
      if (fields.front() != word) continue;
      if (fields.size() >= least) return (this->*take)(fields), Status{};
      return WithHint(MakeError(ErrorKind::kCorrupt, "{}:{}: {} fields of '{}', {} expected", name_, number,
                                fields.size(), word, least),
                      kCollectAgain);
    }
    return {};  // a later collector may know more
  }

  MachineInventory Finish() && {
    if (inventory_.adapters.empty()) inventory_.adapters = std::move(interfaces_);
    std::ranges::sort(inventory_.adapters, {}, OrderOf);
    return std::move(inventory_);
  }

 private:
  struct Record {
    std::string_view word;
    size_t fields;
    void (InventoryReader::*take)(const Fields&);
  };

  void TakeHost(const Fields& fields) { inventory_.host = fields[1]; }
  void TakeArchitecture(const Fields& fields) { inventory_.architecture = fields[1]; }
  void TakeGdr(const Fields& fields) { inventory_.gdr = fields[1]; }
  void TakeCpu(const Fields& fields) {
    inventory_.cpu_vendor = fields[1];
    inventory_.cpu_family = fields[2];
    inventory_.cpu_model = fields[3];
  }
  void TakePci(const Fields& f) {
    inventory_.devices[f[1]] = {f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[9]};
  }
  void TakeInfiniBand(const Fields& fields) {
    if (fields[5].find("ACTIVE") == std::string::npos) return;
    inventory_.adapters.push_back(
        {fields[1], fields[2], std::atoi(fields[3].c_str()), RateOf(fields[4]), fields[6]});
  }
  void TakeEthernet(const Fields& fields) {
    const int mbps = std::atoi(fields[3].c_str());
    if (fields[4] == "up" && mbps > 0) interfaces_.push_back({fields[1], fields[2], 1, mbps, "-"});
  }

  // Reads a line of nvidia-smi about one GPU: "0, 00000000:1D:00.0, 8.0, NVIDIA A100".
  void TakeGpu(const Fields& fields) {
    const std::vector<std::string> words = WordsOf(fields[1]);
    if (words.size() < 3) return;
    std::string bus = words[1].substr(0, words[1].find(','));
    std::ranges::transform(bus, bus.begin(), [](unsigned char letter) { return std::tolower(letter); });
    if (bus.size() == 16) bus.erase(0, 4);  // the driver writes a domain of eight digits
    const double capability = std::strtod(words[2].c_str(), nullptr);
    inventory_.gpus.push_back(
        {std::atoi(words[0].c_str()), bus, static_cast<int>(std::lround(capability * 10))});
  }

  // Reads a row of `nvidia-smi topo -m`, such as "GPU0  X  NV12  NV12 ...". The first row is the header with
  // the names of the GPUs.
  void TakeMatrix(const Fields& fields) {
    std::string row;
    for (size_t i = 1; i < fields.size(); ++i) row += fields[i] + " ";
    const std::vector<std::string> words = WordsOf(WithoutEscapes(row));
    const auto is_gpu = [](const std::string& word) { return word.starts_with("GPU") && word.size() > 3; };
    if (words.empty() || !is_gpu(words.front())) return;
    const auto names = static_cast<size_t>(std::ranges::find_if_not(words, is_gpu) - words.begin());
    if (columns_ == 0) {
      columns_ = names;
      return;
    }
    if (words.size() <= columns_) return;
    std::vector<int> links;
    for (size_t i = 1; i <= columns_; ++i)
      links.push_back(words[i].starts_with("NV") ? std::atoi(words[i].c_str() + 2) : 0);
    inventory_.links.push_back(std::move(links));
  }

  static const Record kRecords[9];
  const std::string name_;
  MachineInventory inventory_;
  std::vector<InventoryAdapter> interfaces_;
  size_t columns_ = 0;  // GPUs in the head of the matrix
};

constexpr InventoryReader::Record InventoryReader::kRecords[] = {
    {"host", 2, &InventoryReader::TakeHost},    {"arch", 2, &InventoryReader::TakeArchitecture},
    {"gdr", 2, &InventoryReader::TakeGdr},      {"cpu", 4, &InventoryReader::TakeCpu},
    {"pci", 10, &InventoryReader::TakePci},     {"ib", 7, &InventoryReader::TakeInfiniBand},
    {"eth", 5, &InventoryReader::TakeEthernet}, {"gpu", 2, &InventoryReader::TakeGpu},
    {"topo", 2, &InventoryReader::TakeMatrix}};

// Checks the file's last line, "end <checksum> <bytes>", which covers all lines before it. Returns those
// lines.
Result<std::string> CheckedBody(const std::string& name, const std::string& text) {
  const auto damaged = [&](const std::string& what) {
    return WithHint(MakeError(ErrorKind::kCorrupt, "{}: {}", name, what), kCollectAgain);
  };
  const size_t end = text.rfind("\nend\t");
  if (end == std::string::npos || text.back() != '\n')
    return damaged(fmt::format("cut after {} bytes: the last line is not 'end'", text.size()));
  const std::string body = text.substr(0, end + 1);
  const Fields fields = FieldsOf(std::string_view(text).substr(end + 1, text.size() - end - 2));
  const std::string wanted = fmt::format("end\t{}\t{}", PosixChecksum(body), body.size());
  if (text.compare(end + 1, std::string::npos, wanted + "\n") != 0)
    return damaged(fmt::format("its checksum is {}, the last line has {}", PosixChecksum(body),
                               fields.size() > 1 ? fields[1] : "none"));
  return body;
}

}  // namespace

std::string InventoryDevice::bus_id() const {
  return place.substr(place.rfind('/') + 1);
}

uint32_t PosixChecksum(std::string_view bytes) {
  uint32_t crc = 0;
  const auto add = [&](uint8_t byte) {
    crc ^= static_cast<uint32_t>(byte) << 24;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc >> 31) != 0 ? 0x04C11DB7u : 0u);
  };
  for (const char byte : bytes) add(static_cast<uint8_t>(byte));
  for (size_t length = bytes.size(); length != 0; length >>= 8) add(static_cast<uint8_t>(length & 0xff));
  return ~crc;
}

bool IsMachineInventory(std::string_view text) {
  return text.starts_with(kMagic);
}

Result<MachineInventory> ParseMachineInventory(const std::string& name, const std::string& text) {
  const std::string version = text.substr(kMagic.size(), text.find('\n') - kMagic.size());
  if (version != kVersion)
    return WithHint(
        MakeError(ErrorKind::kUnsupported, "{}: version '{}' of the format, this program reads {}", name,
                  version, kVersion),
        "use the collect_machine.sh of this installation");
  DYNAMICCL_TRY(const std::string body, CheckedBody(name, text));
  InventoryReader reader(name);
  size_t number = 0;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find('\n', at);
    DYNAMICCL_CHECK_OK(reader.Take(++number, body.substr(at, end - at)));
    at = end + 1;
  }
  return std::move(reader).Finish();
}

}  // namespace dynamiccl
