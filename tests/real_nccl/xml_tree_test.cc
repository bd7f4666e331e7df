// SPDX-License-Identifier: Apache-2.0
// Tests reading and writing the XML of NCCL's topologies and graphs.
#include "tests/real_nccl/cuda_standin/xml_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cuda_standin {
namespace {

constexpr const char* kTopology = R"(<?xml version="1.0"?>
<!-- a node -->
<system version="1">
  <cpu numaid="0" arch="x86_64"><pci busid = "0000:18:00.0" class="0x030200">
    <gpu dev="0" sm="80"/></pci>
  </cpu>
</system>
)";

std::string ErrorOf(const std::string& text) {
  std::string error;
  EXPECT_FALSE(ParseXml(text, &error)) << text;
  return error;
}

TEST(XmlTree, ReadsElementsAndAttributesOverCommentsAndDeclarations) {
  std::string error;
  const auto root = ParseXml(kTopology, &error);
  ASSERT_TRUE(root) << error;
  std::vector<std::string> tags;
  root->Visit([&](const XmlElement& element) { tags.push_back(element.tag); });
  EXPECT_EQ(tags, (std::vector<std::string>{"system", "cpu", "pci", "gpu"}));
  const XmlElement& pci = root->children.at(0).children.at(0);
  EXPECT_EQ(pci.Get("busid"), "0000:18:00.0");
  EXPECT_EQ(pci.Get("width", "16"), "16");
  EXPECT_EQ(pci.Find("width"), nullptr);
}

TEST(XmlTree, AnElementKnowsItsLine) {
  std::string error;
  const auto root = ParseXml(kTopology, &error);
  ASSERT_TRUE(root) << error;
  std::vector<int> lines;
  root->Visit([&](const XmlElement& element) { lines.push_back(element.line); });
  EXPECT_EQ(lines, (std::vector<int>{3, 4, 4, 5}));
}

TEST(XmlTree, WhatIsWrittenReadsTheSame) {
  std::string error;
  auto root = ParseXml(kTopology, &error);
  ASSERT_TRUE(root);
  root->children.at(0).Set("arch", "arm64");
  root->children.at(0).Set("affinity", "1");
  const std::string once = WriteXml(*root);
  const auto again = ParseXml(once, &error);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(WriteXml(*again), once);
  EXPECT_EQ(again->children.at(0).Get("arch"), "arm64");
  EXPECT_EQ(again->children.at(0).Get("affinity"), "1");
}

TEST(XmlTree, EveryTruncationIsRefusedWithItsLine) {
  const std::string whole = kTopology;
  const size_t complete = whole.rfind('>') + 1;
  for (size_t length = 0; length < complete; ++length) {
    const std::string error = ErrorOf(whole.substr(0, length));
    EXPECT_NE(error.find("line "), std::string::npos) << length << ": " << error;
  }
}

TEST(XmlTree, WhatIsWrongIsNamed) {
  EXPECT_EQ(ErrorOf("<a>\n</b>"), "line 2: </b> ends <a>");
  EXPECT_EQ(ErrorOf("<a b>"), "line 1: expected name=\"value\" in <a>");
  EXPECT_EQ(ErrorOf("<a b=c/>"), "line 1: the value of 'b' does not begin with '\"'");
  EXPECT_EQ(ErrorOf("no element"), "line 1: the file ends where an element is expected");
  std::string deep;
  for (int level = 0; level < 100; ++level) deep += "<a>";
  EXPECT_EQ(ErrorOf(deep), "line 1: elements are nested deeper than 64 levels");
}

}  // namespace
}  // namespace cuda_standin
