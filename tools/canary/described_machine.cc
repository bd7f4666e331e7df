// SPDX-License-Identifier: Apache-2.0
// NCCL finds a device by its PCI address, but the CUDA stand-in (the library that emulates GPUs) knows only
// PCI bus numbers. Therefore all addresses are renumbered: each device of the topology gets a bus of its own
// in domain 0, in the order of the file. The facts by which NCCL decides (which device is below which,
// classes, widths, speeds, links) are not changed.
#include "tools/canary/described_machine.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/topology_xml.h"
#include "tests/real_nccl/cuda_standin/xml_tree.h"
#include "tools/canary/inventory_topology.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;
using cuda_standin::XmlElement;

constexpr const char* kDriverVersion = "13000";  // CUDA 13.0: every release up to now accepts it
constexpr const char* kNvSwitch = "0000:05:00.0";
constexpr int kFirstBus = 0x10, kLastBus = 0xff;
constexpr const char* kHowToDescribe =
    "run the job once with NCCL_TOPO_DUMP_FILE=topology.xml, or collect_machine.sh on the node "
    "(docs/canary.md)";
constexpr const char* kHowToDump =
    "let NCCL write the file: run the job once with NCCL_TOPO_DUMP_FILE=topology.xml";

// A GPU of one architecture, with the numbers of NVIDIA's data sheets for A100, L40S, H100 and B200. NCCL
// uses them only for the number of a kernel's blocks and their memory.
struct GpuFacts {
  int architecture;
  int multiprocessors;
  int shared_memory_bytes;
  int memory_gib;
};
constexpr GpuFacts kGpuFacts[] = {{70, 80, 98304, 32},     {75, 40, 65536, 16},    {80, 108, 166912, 80},
                                  {86, 84, 101376, 48},    {89, 142, 101376, 48},  {90, 132, 232448, 80},
                                  {100, 148, 232448, 180}, {103, 148, 232448, 270}};

const GpuFacts& FactsOf(int architecture) {
  const auto known = std::find_if(std::rbegin(kGpuFacts), std::rend(kGpuFacts),
                                  [&](const GpuFacts& one) { return one.architecture <= architecture; });
  return known == std::rend(kGpuFacts) ? kGpuFacts[0] : *known;
}

constexpr const char* kHowToDumpAll =
    "let a communicator of all GPUs of the node write NCCL_TOPO_DUMP_FILE; --gpus then names those of your "
    "ranks";

// Attributes that NCCL reads as numbers. NCCL takes any other text for 0 and does not warn.
const std::map<std::string, std::vector<const char*>> kNumbers = {
    {"system", {"version"}},
    {"cpu", {"numaid", "familyid", "modelid"}},
    {"pci", {"class", "link_width"}},
    {"gpu", {"dev", "sm", "rank", "gdr"}},
    {"nvlink", {"count", "tclass"}},
    {"net", {"dev", "speed", "latency", "port", "guid", "maxconn", "gdr", "coll"}}};

// Returns whether the text is one number: "-1", "1.5", "1e-05" or "0x1f".
bool IsNumber(const std::string& text) {
  const bool hexadecimal = text.starts_with("0x");
  const size_t other = hexadecimal ? text.find_first_not_of("0123456789abcdefABCDEF", 2)
                                   : text.find_first_not_of("0123456789.e+-");
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && other == std::string::npos && *end == '\0';
}

// Returns whether the text begins with one of NCCL's words. NCCL too compares only as many characters.
bool BeginsWithOneOf(std::initializer_list<std::string_view> words, const std::string& text) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.starts_with(word); });
}

// Returns whether NCCL has an entry for the text (kvDictPciGen in its topo.cc). Kernels up to 5.6 write
// "8 GT/s", newer ones "8.0 GT/s PCIe". In virtual machines the kernel does not know a link's speed, and
// NCCL's own dump has such a text.
bool IsLinkSpeed(const std::string& text) {
  return text.empty() ||
         BeginsWithOneOf({"2.5 GT/s", "5 GT/s", "8 GT/s", "16 GT/s", "32 GT/s", "5.0 GT/s PCIe",
                          "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe", "Unknown"},
                         text);
}

// Returns 0 for a text that is no number.
int Number(const std::string& text, int base = 10) {
  return static_cast<int>(std::strtol(text.c_str(), nullptr, base));
}

// Converts one topology file into a description. DescribeTopology owns it for one call.
class TopologyReader {
 public:
  TopologyReader(std::string name, XmlElement root) : name_(std::move(name)), root_(std::move(root)) {}

  Result<DescribedMachine> Read() {
    if (root_.tag != "system") {
      return Missing(fmt::format("<{}> where <system> is expected: not a topology of NCCL", root_.tag));
    }
    DYNAMICCL_CHECK_OK(CheckAttributes());
    DYNAMICCL_CHECK_OK(CheckNumbers());
    DYNAMICCL_CHECK_OK(CheckWords());
    DYNAMICCL_CHECK_OK(CheckLinks());
    DYNAMICCL_CHECK_OK(RenumberDevices());
    RenumberLinks();
    RenumberAdapters();
    root_.Visit([](XmlElement& element) {
      if (element.tag != "cpu") return;
      // All CPUs of the mask must exist where the canary runs, or NCCL cannot pin its threads.
      element.Set("affinity", "00000001");
      std::erase_if(element.attributes, [](const auto& one) { return one.first == "host_hash"; });
    });
    return Describe();
  }

 private:
  tl::unexpected<Error> Missing(const std::string& what) const {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: {}", name_, what), kHowToDump);
  }

  // It is an error when an attribute is missing that NCCL would otherwise read from the machine on which the
  // canary runs.
  Status CheckAttributes() const {
    const std::map<std::string, std::vector<const char*>> needed = {
        {"cpu", {"numaid", "arch", "vendor", "familyid", "modelid"}},
        {"pci", {"busid", "class", "link_speed", "link_width"}},
        {"gpu", {"dev", "sm", "gdr"}},
        {"net", {"name", "dev", "speed"}}};
    std::string missing;
    int gpus = 0;
    root_.Visit([&](const XmlElement& element) {
      gpus += element.tag == "gpu";
      const auto rules = needed.find(element.tag);
      if (rules == needed.end()) return;
      // NCCL distinguishes only x86 processors by their model, so other processors need no attributes of a
      // model.
      const bool any_model = element.tag == "cpu" && !element.Get("arch").starts_with("x86_64");
      for (const char* attribute : rules->second) {
        const bool of_model = attribute != std::string("arch") && attribute != std::string("numaid");
        if (missing.empty() && element.Find(attribute) == nullptr && !(any_model && of_model))
          missing = fmt::format("<{}> without '{}'", element.tag, attribute);
      }
    });
    if (!missing.empty()) return Missing(missing);
    if (gpus == 0) return Missing("no <gpu>: what the devices are is left to the machine");
    return {};
  }

  Status CheckNumbers() const {
    std::string wrong;
    root_.Visit([&](const XmlElement& element) {
      const auto numbers = kNumbers.find(element.tag);
      if (numbers == kNumbers.end()) return;
      for (const char* name : numbers->second) {
        const std::string* value = element.Find(name);
        if (wrong.empty() && value != nullptr && !IsNumber(*value))
          wrong = fmt::format("line {}: <{}> has {}=\"{}\", which is no number", element.line, element.tag,
                              name, *value);
      }
    });
    if (!wrong.empty()) return Missing(wrong);
    return {};
  }

  // NCCL refuses another version. For another unknown text it takes a fallback and does not warn.
  Status CheckWords() const {
    std::string wrong;
    const auto expect = [&](const XmlElement& element, const char* name, bool known, const char* what) {
      if (wrong.empty() && !known)
        wrong = fmt::format("line {}: <{}> has {}=\"{}\", which is no {}", element.line, element.tag, name,
                            element.Get(name), what);
    };
    root_.Visit([&](const XmlElement& element) {
      if (element.tag == "system")
        expect(element, "version", element.Get("version", "1") == "1", "version that NCCL reads: 1");
      if (element.tag == "cpu")
        expect(element, "arch", BeginsWithOneOf({"x86_64", "arm64", "ppc64"}, element.Get("arch")),
               "architecture that NCCL knows: x86_64, arm64 or ppc64");
      if (element.tag == "pci")
        expect(element, "link_speed", IsLinkSpeed(element.Get("link_speed")),
               "speed of a PCI link that NCCL knows, such as 16.0 GT/s PCIe");
    });
    if (!wrong.empty()) return Missing(wrong);
    return {};
  }

  // It is an error when an NVLink leads to a GPU that the file does not have. NCCL writes such a file for a
  // communicator of some of the node's GPUs, and a file that was cut by hand is also like this.
  Status CheckLinks() const {
    constexpr std::string_view kDisplayClass = "0x03";  // PCI's class of GPUs
    std::set<std::string> devices;
    root_.Visit([&](const XmlElement& element) {
      if (element.tag == "pci") devices.insert(element.Get("busid"));
    });
    std::string wrong;
    root_.Visit([&](const XmlElement& element) {
      if (element.tag != "nvlink" || !element.Get("tclass").starts_with(kDisplayClass)) return;
      const std::string target = element.Get("target");
      if (wrong.empty() && !devices.contains(target))
        wrong = fmt::format("line {}: <nvlink> to GPU {}, which is not in the file", element.line, target);
    });
    if (wrong.empty()) return {};
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: {}", name_, wrong), kHowToDumpAll);
  }

  Status RenumberDevices() {
    int next = kFirstBus;
    root_.Visit([&](XmlElement& element) {
      if (element.tag != "pci") return;
      const auto [known, added] = bus_of_.emplace(element.Get("busid"), next);
      if (added) ++next;
      element.Set("busid", Address(known->second));
    });
    if (next > kLastBus + 1)
      return Missing(fmt::format("{} PCI devices; 240 are supported", next - kFirstBus));
    return {};
  }

  static std::string Address(int bus) { return fmt::format("0000:{:02x}:00.0", bus); }

  void RenumberLinks() {
    root_.Visit([&](XmlElement& element) {
      if (element.tag != "nvlink") return;
      const auto known = bus_of_.find(element.Get("target"));
      const bool to_switch = element.Get("tclass").starts_with("0x0680");
      if (known != bus_of_.end())
        element.Set("target", Address(known->second));
      else if (to_switch)
        element.Set("target", kNvSwitch);
      links_to_switch_ += to_switch;
    });
  }

  // Numbers the adapters from 0 on. In NCCL's dump keep="1" marks adapters that a plugin reported. The
  // canary's own plugin reports all adapters again, so the mark is removed.
  void RenumberAdapters() {
    std::vector<XmlElement*> nets;
    root_.Visit([&](XmlElement& element) {
      std::erase_if(element.attributes, [](const auto& one) { return one.first == "keep"; });
      if (element.tag == "net" && element.Get("coll", "0") != "1") nets.push_back(&element);
    });
    std::stable_sort(nets.begin(), nets.end(), [](const XmlElement* a, const XmlElement* b) {
      return Number(a->Get("dev")) < Number(b->Get("dev"));
    });
    for (size_t index = 0; index < nets.size(); ++index) nets[index]->Set("dev", std::to_string(index));
    adapters_ = static_cast<int>(nets.size());
  }

  struct Gpu {
    int device;
    int bus;
    int architecture;
    std::string identity;
  };

  std::vector<Gpu> GpusInOrder() const {
    std::vector<Gpu> gpus;
    root_.Visit([&](const XmlElement& pci) {
      for (const XmlElement& child : pci.children) {
        if (pci.tag != "pci" || child.tag != "gpu") continue;
        gpus.push_back(
            {Number(child.Get("dev")), Number(pci.Get("busid").substr(5, 2), 16), Number(child.Get("sm")),
             fmt::format("{} {}", Hexadecimal(pci, "device"), Hexadecimal(pci, "subsystem_device"))});
      }
    });
    std::sort(gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) { return a.device < b.device; });
    return gpus;
  }

  static std::string Hexadecimal(const XmlElement& pci, const char* attribute) {
    const std::string value = pci.Get(attribute, "0x0");
    return value.starts_with("0x") ? value.substr(2) : value;
  }

  const XmlElement& FirstCpu() const {
    const XmlElement* first = nullptr;
    root_.Visit([&](const XmlElement& element) {
      if (first == nullptr && element.tag == "cpu") first = &element;
    });
    return first == nullptr ? root_ : *first;
  }

  Result<DescribedMachine> Describe() {
    const std::vector<Gpu> gpus = GpusInOrder();
    const GpuFacts& facts = FactsOf(gpus.front().architecture);
    std::vector<std::string> buses;
    for (const Gpu& gpu : gpus) buses.push_back(fmt::format("{:02x}", gpu.bus));
    const XmlElement& cpu = FirstCpu();
    const bool multicast = gpus.front().architecture >= 90 && links_to_switch_ > 0;
    std::string text;
    const auto add = [&](const char* key, const std::string& value) {
      text += fmt::format("{} = {}\n", key, value);
    };
    add("name", fs::path(name_).stem());
    add("architecture", std::to_string(gpus.front().architecture));
    add("multiprocessors", std::to_string(facts.multiprocessors));
    add("shared_memory_bytes", std::to_string(facts.shared_memory_bytes));
    add("memory_gib", std::to_string(facts.memory_gib));
    add("driver_version", kDriverVersion);
    add("gpu_buses", fmt::format("{}", fmt::join(buses, " ")));
    add("gpus_per_switch", "1");
    add("gpus_per_numa_node", "1");
    add("gpu_identity", gpus.front().identity);
    add("cpu", fmt::format("{} {} {}", cpu.Get("vendor", "Unknown"), cpu.Get("familyid", "0"),
                           cpu.Get("modelid", "0")));
    add("pcie_speed", "32.0 GT/s PCIe");
    add("nvlinks_per_gpu", "0");
    add("multicast", multicast ? "1" : "0");
    add("network_mbps", "0");
    add("adapters_at", "none");
    return DescribedMachine{.name = fs::path(name_).stem(),
                            .stand_in = text,
                            .topology = cuda_standin::WriteXml(root_),
                            .gpus = static_cast<int>(gpus.size()),
                            .adapters = adapters_,
                            .architecture = gpus.front().architecture};
  }

  const std::string name_;
  XmlElement root_;
  std::map<std::string, int> bus_of_;
  int links_to_switch_ = 0;
  int adapters_ = 0;
};

Result<DescribedMachine> DescribeMachineFile(const std::string& path) {
  DYNAMICCL_TRY(std::string text, ReadTextFile(path));
  std::string error;
  const auto machine = cuda_standin::ParseMachine(text, &error);
  if (!machine) return MakeError(ErrorKind::kInvalidArgument, "{}: {}", path, error);
  return DescribedMachine{.name = fs::path(path).stem(),
                          .stand_in = std::move(text),
                          .topology = cuda_standin::TopologyXml(*machine),
                          .gpus = static_cast<int>(machine->gpu_buses.size()),
                          .adapters = static_cast<int>(machine->adapters_at.size()),
                          .architecture = machine->architecture,
                          .nvlink_domain_nodes = machine->nvlink_domain_nodes};
}

// Divides a topology of several hosts into one topology for each host. NCCL writes the host of a processor
// only into dumps.
std::vector<XmlElement> HostsOf(const XmlElement& root) {
  std::vector<std::string> names;
  std::vector<XmlElement> hosts;
  for (const XmlElement& child : root.children) {
    const std::string name = child.Get("host_hash");
    const auto known = std::ranges::find(names, name);
    const auto place = static_cast<size_t>(known - names.begin());
    if (known == names.end()) {
      names.push_back(name);
      hosts.push_back({.tag = root.tag, .attributes = root.attributes, .children = {}, .line = root.line});
    }
    hosts[place].children.push_back(child);
  }
  return hosts;
}

// Returns the description without the attributes in which equal hosts differ: GUIDs and ranks.
std::string KindOf(const DescribedMachine& machine) {
  std::string error;
  auto root = cuda_standin::ParseXml(machine.topology, &error);
  if (!root) return machine.topology;
  root->Visit([](XmlElement& element) {
    std::erase_if(element.attributes,
                  [](const auto& one) { return one.first == "guid" || one.first == "rank"; });
  });
  return machine.stand_in + cuda_standin::WriteXml(*root);
}

Result<std::vector<DescribedMachine>> DescribeHosts(const std::string& name, const std::string& text) {
  std::string error;
  const auto root = cuda_standin::ParseXml(text, &error);
  const std::vector<XmlElement> hosts = root ? HostsOf(*root) : std::vector<XmlElement>{};
  std::vector<DescribedMachine> machines;
  if (hosts.size() < 2) {
    DYNAMICCL_TRY(DescribedMachine machine, DescribeTopology(name, text));
    machines.push_back(std::move(machine));
    return machines;
  }
  for (const XmlElement& host : hosts) {
    DYNAMICCL_TRY(DescribedMachine machine, TopologyReader(name, host).Read());
    DYNAMICCL_CHECK_OK(ShareNvlink(static_cast<int>(hosts.size()), &machine));
    machines.push_back(std::move(machine));
  }
  const bool alike = std::ranges::all_of(
      machines, [&](const DescribedMachine& one) { return KindOf(one) == KindOf(machines.front()); });
  if (alike) machines.resize(1);
  return machines;
}

constexpr const char* kMachines = "tests/real_nccl/machines";

std::vector<std::string> KnownMachines(const Installation& installation) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(FindDataFile(installation, kMachines), none)) {
    if (entry.path().extension() == ".machine") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Result<DescribedMachine> DescribeTopology(const std::string& name, const std::string& text) {
  std::string error;
  auto root = cuda_standin::ParseXml(text, &error);
  if (!root) return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: {}", name, error), kHowToDump);
  return TopologyReader(name, std::move(*root)).Read();
}

Result<std::vector<DescribedMachine>> DescribeNodes(const Installation& installation,
                                                    const std::string& named) {
  const auto described = [](const std::string& path) -> Result<std::vector<DescribedMachine>> {
    DYNAMICCL_TRY(DescribedMachine machine, DescribeMachineFile(path));
    return std::vector{std::move(machine)};
  };
  if (named.find('/') == std::string::npos && named.find('.') == std::string::npos) {
    const std::string file = FindDataFile(installation, fmt::format("{}/{}.machine", kMachines, named));
    std::error_code none;
    if (!file.empty()) return described(file);
    if (std::filesystem::exists(named, none)) return DescribeNodes(installation, "./" + named);
    return WithHint(MakeError(ErrorKind::kNotFound, "no machine is called '{}'", named),
                    fmt::format("known: {}; or give a file that NCCL wrote (NCCL_TOPO_DUMP_FILE)",
                                fmt::join(KnownMachines(installation), ", ")));
  }
  if (named.ends_with(".machine")) return described(named);
  DYNAMICCL_TRY(std::string text, ReadTextFile(named));
  if (IsMachineInventory(text)) {
    DYNAMICCL_TRY(const MachineInventory inventory, ParseMachineInventory(named, text));
    DYNAMICCL_TRY(text, TopologyOfInventory(named, inventory));
  }
  // The first line names the columns: GPU0, GPU1, ..., CPU Affinity.
  const std::string titles = text.substr(0, text.find('\n'));
  if (titles.find("GPU0") != std::string::npos && titles.find("CPU Affinity") != std::string::npos)
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument,
                  "{}: the matrix of `nvidia-smi topo -m`, which lacks the links' speeds and the PCI bridges",
                  named),
        kHowToDescribe);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos ||
      text[text.find_first_not_of(" \t\r\n")] != '<')
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "{}: neither a topology of NCCL nor of collect_machine.sh", named),
                    kHowToDescribe);
  return DescribeHosts(named, text);
}

Status CheckAdapters(const std::vector<DescribedMachine>& machines, int nodes) {
  for (const DescribedMachine& one : machines) {
    if (one.adapters > 0 || nodes < 2 || one.nvlink_domain_nodes >= nodes) continue;
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument,
                  "{} has no <net>, and {} nodes need a network: NCCL would take that of this machine",
                  one.name, nodes),
        fmt::format(
            "give the file that a job of several nodes wrote (NCCL_TOPO_DUMP_FILE), or judge one node "
            "by --world 1x{}",
            one.gpus));
  }
  return {};
}

Status ShareNvlink(int nodes, DescribedMachine* machine) {
  if (machine->nvlink_domain_nodes == nodes) return {};
  if (machine->nvlink_domain_nodes > 0)
    return MakeError(ErrorKind::kInvalidArgument, "{} has NVLink domains of {} nodes, not of {}",
                     machine->name, machine->nvlink_domain_nodes, nodes);
  machine->nvlink_domain_nodes = nodes;
  machine->stand_in += fmt::format("nvlink_domain_nodes = {}\n", nodes);
  return {};
}

Status TakeAway(const std::vector<std::string>& lacks, DescribedMachine* machine) {
  if (lacks.empty()) return {};
  const std::string text = fmt::format("{}lacks = {}\n", machine->stand_in, fmt::join(lacks, " "));
  std::string error;
  const auto without = cuda_standin::ParseMachine(text, &error);
  if (!without)
    return MakeError(ErrorKind::kInvalidArgument, "--lacks {}: {}: {}", fmt::join(lacks, ","), machine->name,
                     error);
  const auto refuses = [&](const char* what) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--lacks {}: {} has none", what, machine->name),
                    "leave it out, or name another machine");
  };
  if (without->lacks.multicast_binding && without->multicast == 0) return refuses("multicast_binding");
  if (without->lacks.fabric_handles && without->nvlink_domain_nodes == 0) return refuses("fabric_handles");
  machine->stand_in = text;
  return {};
}

}  // namespace dynamiccl
