// SPDX-License-Identifier: Apache-2.0
// The parts of the stand-in that need no NCCL: machine files, topology, symbol tables and redirections.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/real_nccl/cuda_standin/code_patch.h"
#include "tests/real_nccl/cuda_standin/elf_symbols.h"
#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/topology_xml.h"

namespace cuda_standin {
namespace {

constexpr const char* kMachine =
    "name = Box # with a comment\narchitecture = 90\nmultiprocessors = 132\nshared_memory_bytes = 232448\n"
    "memory_gib = 80\ndriver_version = 13000\ngpu_buses = 18 2a\npcie_speed = 32.0 GT/s "
    "PCIe\nnvlinks_per_gpu = 18\n"
    "multicast = 1\nnetwork_mbps = 400000\n";

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
  EXPECT_NE(error.find("line 12"), std::string::npos) << error;
  std::string text = kMachine;
  text.replace(text.find("= 80"), 4, "= many");
  EXPECT_FALSE(ParseMachine(text, &error));
  EXPECT_EQ(error, "'memory_gib' is not a number: 'many'");
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

TEST(Topology, WithoutNetworkHasNoAdapter) {
  Machine machine = TestMachine();
  machine.network_mbps = 0;
  EXPECT_EQ(TopologyXml(machine).find("<net "), std::string::npos);
}

extern "C" __attribute__((noinline, visibility("default"))) int cuda_standin_test_answer() {
  asm volatile("nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop");  // room for the jump
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
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "cuda_standin: cudaNotThere is not implemented\n");
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

// Truncated files must give fewer symbols or an error, never a fault.
TEST(ElfSymbols, SurvivesTruncation) {
  std::ifstream program(OwnProgram(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(program)), {});
  const std::string path = testing::TempDir() + "/truncated_program";
  std::string error;
  for (size_t length = 1; length < bytes.size(); length += length < 200 ? 7 : bytes.size() / 40) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(length));
    const auto functions = ReadFunctionSymbols(path, &error);
    EXPECT_TRUE(!functions || functions->empty() || length > bytes.size() / 2) << length;
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cuda_standin
