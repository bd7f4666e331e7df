// SPDX-License-Identifier: Apache-2.0
// Reads and writes the XML that NCCL itself reads and writes: topologies (NCCL_TOPO_FILE,
// NCCL_TOPO_DUMP_FILE) and graphs (NCCL_GRAPH_DUMP_FILE). Elements with attributes, no text; comments and
// declarations are skipped.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cuda_standin {

struct XmlElement {
  std::string tag;
  std::vector<std::pair<std::string, std::string>> attributes;  // in the order of the file
  std::vector<XmlElement> children;
  int line = 0;  // of the file, where the element begins; 0 if it was not read from one

  // Value of an attribute; nullptr without it.
  const std::string* Find(std::string_view name) const;
  // Value of an attribute, or `otherwise`.
  std::string Get(std::string_view name, const std::string& otherwise = "") const;
  void Set(std::string_view name, std::string value);
  // Calls `visit` for this element and everything below it, parents first.
  void Visit(const std::function<void(const XmlElement&)>& visit) const;
  void Visit(const std::function<void(XmlElement&)>& visit);
};

// The outermost element. On failure *error says at which line what is wrong. Nesting is limited to 64 levels.
std::optional<XmlElement> ParseXml(std::string_view text, std::string* error);

// One line an element, indented by one space a level.
std::string WriteXml(const XmlElement& root);

}  // namespace cuda_standin
