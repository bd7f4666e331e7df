// SPDX-License-Identifier: Apache-2.0
// Tests the parts of the stand-in that need no NCCL: machine files, topology, symbol tables and redirections.
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "tests/real_nccl/cuda_standin/code_patch.h"
#include "tests/real_nccl/cuda_standin/elf_symbols.h"
#include "tests/real_nccl/cuda_standin/free_ranges.h"
#include "tests/real_nccl/cuda_standin/launch.h"
#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/memory.h"
#include "tests/real_nccl/cuda_standin/memory_arena.h"
#include "tests/real_nccl/cuda_standin/topology_xml.h"
#include "tests/support/test_seed.h"

namespace cuda_standin {
namespace {

constexpr const char* kMachine =
    "name = Box # with a comment\narchitecture = 90\nmultiprocessors = 132\nshared_memory_bytes = 232448\n"
    "memory_gib = 80\ndriver_version = 13000\ngpu_buses = 18 2a\ngpus_per_switch = 1\n"
    "gpus_per_numa_node = 4\ngpu_identity = 2330 16c1\ncpu = GenuineIntel 6 143\npcie_speed = 32.0 GT/s "
    "PCIe\n"
    "nvlinks_per_gpu = 18\nmulticast = 1\nnetwork_mbps = 400000\nadapters_at = 0 1\n";

Machine TestMachine() {
  std::string error;
  return ParseMachine(kMachine, &error).value();
}

TEST(Machine, ReadsEveryKey) {
  const Machine machine = TestMachine();
  EXPECT_EQ(machine.name, "Box");
  EXPECT_EQ(machine.gpu_buses, (std::vector<int>{0x18, 0x2a}));
  EXPECT_EQ(machine.pcie_speed, "32.0 GT/s PCIe");
  EXPECT_EQ(machine.network_mbps, 400000);
}

TEST(Machine, EveryMissingLineIsNamed) {
  std::istringstream lines(kMachine);
  for (std::string line; std::getline(lines, line);) {
    std::string text = kMachine, error;
    text.erase(text.find(line), line.size());
    EXPECT_FALSE(ParseMachine(text, &error)) << line;
    EXPECT_NE(error.find(line.substr(0, line.find(' '))), std::string::npos) << error;
  }
}

TEST(Machine, RefusesUnknownDoubleAndUnreadableValues) {
  std::string error;
  EXPECT_FALSE(ParseMachine(std::string(kMachine) + "colour = red\n", &error));
  EXPECT_EQ(error, "unknown key 'colour'");
  EXPECT_FALSE(ParseMachine(std::string(kMachine) + "memory_gib = 81\n", &error));
  EXPECT_NE(error.find("line 17"), std::string::npos) << error;
  std::string text = kMachine;
  text.replace(text.find("= 80"), 4, "= many");
  EXPECT_FALSE(ParseMachine(text, &error));
  EXPECT_EQ(error, "'memory_gib' is not a number: 'many'");
}

TEST(Machine, ThreeKeysMayBeLeftOut) {
  EXPECT_EQ(TestMachine().nvlink_domain_nodes, 0);
  std::string error;
  const auto tray = ParseMachine(std::string(kMachine) + "c2c_links = 5\nnvlink_domain_nodes = 18\n", &error);
  ASSERT_TRUE(tray) << error;
  EXPECT_EQ(tray->c2c_links, 5);
  EXPECT_EQ(tray->nvlink_domain_nodes, 18);
  EXPECT_FALSE(ParseMachine(std::string(kMachine) + "c2c_links = five\n", &error));
  EXPECT_EQ(error, "'c2c_links' is not a number: 'five'");
  EXPECT_EQ(TestMachine().lacks, Lacks{});
  const auto poor = ParseMachine(std::string(kMachine) + "lacks = fabric_handles peer_access\n", &error);
  ASSERT_TRUE(poor) << error;
  EXPECT_EQ(poor->lacks, (Lacks{.peer_access = true, .fabric_handles = true}));
  EXPECT_FALSE(ParseMachine(std::string(kMachine) + "lacks = sleep\n", &error));
  EXPECT_EQ(error, "'lacks' knows peer_access, multicast_binding and fabric_handles, not 'sleep'");
}

TEST(Machine, FindsDevicesByEverySpellingOfAnAddress) {
  const Machine machine = TestMachine();
  EXPECT_EQ(PciAddress(machine, 1), "0000:2a:00.0");
  EXPECT_EQ(DeviceAtPciAddress(machine, "0000:2A:00.0"), 1);
  EXPECT_EQ(DeviceAtPciAddress(machine, "00000000:18:00.0"), 0);
  EXPECT_EQ(DeviceAtPciAddress(machine, "0000:2b:00.0"), -1);
  EXPECT_EQ(DeviceAtPciAddress(machine, "no address"), -1);
}

TEST(Topology, HoldsEveryGpuAndAdapterOnce) {
  const std::string xml = TopologyXml(TestMachine());
  for (const char* part : {"<gpu dev=\"0\"", "<gpu dev=\"1\"", "name=\"instant0\"", "name=\"instant1\"",
                           "busid=\"0000:2b:00.0\"", "count=\"18\"", "speed=\"400000\""}) {
    EXPECT_NE(xml.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(xml.find("instant2"), std::string::npos);
}

TEST(Topology, GpusShareASwitchAndAnAdapter) {
  Machine machine = TestMachine();
  machine.gpus_per_switch = 2;
  machine.adapters_at = {1};
  const std::string xml = TopologyXml(machine);
  EXPECT_NE(xml.find("busid=\"0000:16:00.0\""), std::string::npos) << "the switch, below the first GPU";
  EXPECT_EQ(xml.find("busid=\"0000:28:00.0\""), std::string::npos) << "no switch of the second";
  EXPECT_NE(xml.find("busid=\"0000:2b:00.0\""), std::string::npos) << "the adapter, above the second GPU";
  EXPECT_EQ(xml.find("instant1"), std::string::npos);
}

TEST(Topology, GpusWithLinksToTheirProcessorHaveNoSwitch) {
  Machine machine = TestMachine();
  machine.cpu_vendor = "arm64";
  machine.c2c_links = 5;
  const std::string xml = TopologyXml(machine);
  EXPECT_NE(xml.find("arch=\"arm64\">"), std::string::npos) << xml;
  EXPECT_NE(xml.find("count=\"5\"/></gpu>"), std::string::npos) << xml;
  EXPECT_EQ(xml.find("class=\"0x060400\""), std::string::npos) << "a bridge";
}

TEST(Machine, RefusesPlacesThatDoNotFit) {
  const auto error_of = [](const char* from, const char* to) {
    std::string text = kMachine, error;
    text.replace(text.find(from), std::strlen(from), to);
    EXPECT_FALSE(ParseMachine(text, &error)) << to;
    return error;
  };
  EXPECT_NE(error_of("adapters_at = 0 1", "adapters_at = 1 2").find("below 2"), std::string::npos);
  EXPECT_NE(error_of("adapters_at = 0 1", "adapters_at = 1 0").find("ascending"), std::string::npos);
  EXPECT_NE(error_of("gpus_per_switch = 1", "gpus_per_switch = 3").find("multiple"), std::string::npos);
  EXPECT_NE(error_of("gpu_buses = 18 2a", "gpu_buses = 18 2x").find("hexadecimal"), std::string::npos);
  EXPECT_NE(error_of("gpu_identity = 2330 16c1", "gpu_identity = 2330").find("board"), std::string::npos);
  EXPECT_NE(error_of("cpu = GenuineIntel 6 143", "cpu = GenuineIntel").find("family"), std::string::npos);
}

TEST(Machine, EveryPresetIsReadable) {
  int presets = 0;
  for (const auto& entry : std::filesystem::directory_iterator(REAL_NCCL_MACHINES)) {
    std::string error;
    const auto machine = LoadMachine(entry.path(), &error);
    ASSERT_TRUE(machine) << error;
    EXPECT_EQ(machine->network_mbps > 0, !machine->adapters_at.empty()) << entry.path();
    ++presets;
  }
  EXPECT_GE(presets, 5);
}

TEST(Topology, WithoutNetworkHasNoAdapter) {
  Machine machine = TestMachine();
  machine.adapters_at.clear();
  EXPECT_EQ(TopologyXml(machine).find("<net "), std::string::npos);
}

extern "C" __attribute__((noinline, visibility("default"))) int cuda_standin_test_answer() {
  asm volatile("nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop");  // room for the 12 bytes of the jump
  return 1;
}

int OtherAnswer() {
  return 2;
}

TEST(CodePatch, RedirectedFunctionRunsTheReplacement) {
  int (*volatile answer)() = &cuda_standin_test_answer;
  ASSERT_EQ(answer(), 1);
  ASSERT_TRUE(RedirectFunction(reinterpret_cast<void*>(&cuda_standin_test_answer),
                               reinterpret_cast<const void*>(&OtherAnswer)));
  EXPECT_EQ(answer(), 2);
}

TEST(CodePatch, MissingFunctionNamesItselfAndFails) {
  const auto missing = reinterpret_cast<int (*)(int, void*)>(MakeMissingFunction("cudaNotThere"));
  ASSERT_NE(missing, nullptr);
  const uint64_t before = MissingFunctionCalls();
  testing::internal::CaptureStderr();
  EXPECT_EQ(missing(1, nullptr), 801);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "cuda_standin: cudaNotThere has no stand-in\n");
  EXPECT_EQ(MissingFunctionCalls(), before + 1);
}

std::string OwnProgram() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

TEST(ElfSymbols, FindsAFunctionOfThisProgram) {
  std::string error;
  const auto functions = ReadFunctionSymbols(OwnProgram(), &error);
  ASSERT_TRUE(functions) << error;
  int found = 0;
  for (const auto& function : *functions) found += function.name == "cuda_standin_test_answer";
  EXPECT_EQ(found, 1);
}

TEST(ElfSymbols, RefusesWhatIsNoLibrary) {
  std::string error;
  EXPECT_FALSE(ReadFunctionSymbols("/proc/self/environ", &error));
  EXPECT_FALSE(ReadFunctionSymbols("/nonexistent", &error));
  EXPECT_EQ(error, "cannot read /nonexistent");
}

TEST(ElfSymbols, ALibraryForAnotherArchitectureIsNamed) {
  std::ifstream program(OwnProgram(), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(program)), {});
  constexpr size_t kMachineAt = 18;
  bytes[kMachineAt] = static_cast<char>(183);  // EM_AARCH64
  const std::string path = testing::TempDir() + "/program_for_arm";
  std::ofstream(path, std::ios::binary) << bytes;
  std::string error;
  EXPECT_FALSE(ReadFunctionSymbols(path, &error));
  EXPECT_EQ(error, path + " is for another architecture than x86-64 (machine 183 of ELF)");
  std::filesystem::remove(path);
}

// A truncated file, such as half a download, is an error. It is not mistaken for a stripped library.
TEST(ElfSymbols, TruncatedFilesAreNamed) {
  std::ifstream program(OwnProgram(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(program)), {});
  const std::string path = testing::TempDir() + "/truncated_program";
  std::string error;
  for (size_t length = 1; length < bytes.size(); length += length < 200 ? 7 : bytes.size() / 40) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(length));
    EXPECT_FALSE(ReadFunctionSymbols(path, &error)) << length;
    EXPECT_TRUE(error.ends_with(length < sizeof(Elf64_Ehdr)
                                    ? " is no ELF file of 64 bits"
                                    : " is cut: its table of sections is not in the file"))
        << length << ": " << error;
  }
  std::filesystem::remove(path);
}

TEST(MemoryArena, PiecesAreFilesRangesThatCanBeHandedOn) {
  const auto first = TakePiece(1, false), second = TakePiece(3 << 20, false);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->file, second->file);
  EXPECT_NE(first->offset, second->offset);
  const int descriptor = DescribePiece(*second);
  ASSERT_GE(descriptor, 0);
  const auto found = FindPiece(descriptor);
  close(descriptor);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offset, second->offset);
  ReturnPiece(*second);
  // The share in `found` is left, so the range is not handed out again.
  const auto third = TakePiece(4 << 20, false);
  ASSERT_TRUE(third);
  EXPECT_NE(third->offset, second->offset);
  ReturnPiece(*found);
  const auto fourth = TakePiece(4 << 20, false);
  EXPECT_EQ(fourth->offset, second->offset);
  for (const auto& piece : {first, third, fourth}) ReturnPiece(*piece);
}

// The nodes of an NVLink domain pass memory to each other by such names.
TEST(MemoryArena, AnotherProcessFindsAPieceByItsName) {
  const auto piece = TakePiece(4096, false);
  ASSERT_TRUE(piece);
  const PieceName name = NameOf(*piece);
  const pid_t child = fork();
  if (child == 0) {
    const auto found = FindPiece(name);
    const char text[] = "from the child";
    const bool written =
        found && pwrite(found->file, text, sizeof text, static_cast<off_t>(found->offset)) == sizeof text;
    _exit(written && found->file != piece->file ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  char read[16] = {};
  EXPECT_GT(pread(piece->file, read, sizeof read, static_cast<off_t>(piece->offset)), 0);
  EXPECT_STREQ(read, "from the child");
  EXPECT_FALSE(FindPiece(PieceName{-1, *piece}));
  ReturnPiece(*piece);
}

int TakePieceFile() {
  const auto piece = TakePiece(1, false);
  ReturnPiece(*piece);
  return piece->file;
}

// Takes and returns many pieces in a random order. Held ranges must never overlap. At the end all memory must
// be one free range.
TEST(MemoryArena, HeldRangesNeverOverlap) {
  const unsigned seed = dynamiccl::test::TestSeed(1);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::map<size_t, size_t> held;  // end of each held range, by offset
  for (int step = 0; step < 2000; ++step) {
    if (held.size() < 50 && random() % 3 != 0) {
      const size_t bytes = 1 + random() % (16 << 20);
      const auto piece = TakePiece(bytes, false);
      ASSERT_TRUE(piece);
      const auto after = held.lower_bound(piece->offset);
      ASSERT_TRUE(after == held.end() || piece->offset + bytes <= after->first);
      ASSERT_TRUE(after == held.begin() || std::prev(after)->second <= piece->offset);
      held[piece->offset] = piece->offset + bytes;
    } else if (!held.empty()) {
      const auto row = std::next(held.begin(), static_cast<long>(random() % held.size()));
      ReturnPiece({TakePieceFile(), row->first});
      held.erase(row);
    }
  }
  for (const auto& row : held) ReturnPiece({TakePieceFile(), row.first});
  EXPECT_EQ(TakePiece(size_t{1} << 43, false)->offset, 0u);
}

TEST(FreeRanges, TakesWhereAlignmentAllowsAndJoinsWhatIsReturned) {
  FreeRanges ranges;
  EXPECT_FALSE(ranges.Take(1, 1));
  ranges.Return(100, 300);
  EXPECT_FALSE(ranges.Take(201, 256)) << "only 256 to 400 is aligned";
  EXPECT_EQ(ranges.Take(100, 256), 256u);
  EXPECT_EQ(ranges.Take(156, 4), 100u) << "what was skipped stays free";
  ranges.Return(100, 56);
  ranges.Return(256, 100);
  EXPECT_EQ(ranges.Take(144, 1), 256u) << "100 to 156 and 256 to 400 are free";
}

int LinesOfMaps() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<int>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

// A large communicator has more blocks than a process may have mappings.
TEST(Memory, ABlockOfAFileIsMappedWhenItIsUsed) {
  constexpr size_t kBytes = 2 << 20, kBlocks = 8;
  const auto piece = TakePiece(kBytes, false);
  ASSERT_TRUE(piece);
  auto* space = static_cast<char*>(MapPages(0, kBlocks * kBytes, PROT_NONE));
  ASSERT_NE(space, nullptr);
  for (size_t block = 0; block < kBlocks; ++block)
    RememberBlock({.address = reinterpret_cast<uintptr_t>(space + block * kBytes),
                   .bytes = kBytes,
                   .file = piece->file,
                   .file_offset = piece->offset,
                   .mapped = false});
  char* used = space + 3 * kBytes;
  const int before = LinesOfMaps();
  EXPECT_TRUE(FillMemory(space, 0, kBytes));
  EXPECT_EQ(LinesOfMaps(), before) << "zeros need no mapping";
  EXPECT_TRUE(FillMemory(used + 10, 7, 5));
  EXPECT_EQ(LinesOfMaps(), before + 2) << "one block, which parts the reserved addresses";
  EXPECT_TRUE(MakeUsable(space + kBytes - 1, 2));
  EXPECT_EQ(std::string(space + 10, 6), std::string(5, 7) + '\0') << "all blocks show the same bytes";
  EXPECT_TRUE(FillMemory(space + 4 * kBytes, 0, 12));
  EXPECT_EQ(std::string(used + 10, 5), std::string(2, 0) + std::string(3, 7));
  for (size_t block = 0; block < kBlocks; ++block) FreeMemory(space + block * kBytes);
  ReturnPiece(*piece);
}

// The line tells the canary that the machine failed, and not the release.
TEST(Memory, WhatTheMachineRefusesIsSaid) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(MapPages(0, size_t{1} << 60, PROT_NONE), nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "cuda_standin: cannot map 1152921504606846976 bytes: Cannot allocate memory\n");
}

TEST(Launch, IsCountedAndDescribedOfItsThread) {
  const FunctionSymbol kernel{"_Z31ncclDevKernel_AllReduce_RING_LL24ncclDevKernelArgsStorage", 0x40};
  NameKernels(0x1000, std::span(&kernel, 1));
  const uint64_t before = LaunchCount();
  CountLaunch(reinterpret_cast<const void*>(0x1040), 5, 512);
  EXPECT_EQ(LaunchCount(), before + 1);
  EXPECT_STREQ(LaunchesOfThisThread().last.kernel, "ncclDevKernel_AllReduce_RING_LL");
  EXPECT_EQ(LaunchesOfThisThread().last.grid, 5u);
  CountLaunch(reinterpret_cast<const void*>(0x2000), 1, 32);
  EXPECT_STREQ(LaunchesOfThisThread().last.kernel, "unknown");
  std::thread([] { EXPECT_EQ(LaunchesOfThisThread().count, 0u); }).join();
}

}  // namespace
}  // namespace cuda_standin
