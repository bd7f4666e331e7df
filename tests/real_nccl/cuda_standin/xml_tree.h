// SPDX-License-Identifier: Apache-2.0
// Reads and writes the XML that NCCL reads and writes: topologies (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE) and
// graphs (NCCL_GRAPH_DUMP_FILE). Elements have attributes and no text. Comments and declarations are skipped.
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
  int line = 0;  // line of the file where the element begins; 0 if it was not read from a file

  // Returns the value of an attribute, or null when the element does not have it.
  const std::string* Find(std::string_view name) const;
  // Returns the value of an attribute, or `otherwise` when the element does not have it.
  std::string Get(std::string_view name, const std::string& otherwise = "") const;
  void Set(std::string_view name, std::string value);
  // Calls `visit` for this element and every element below it, parents first.
  void Visit(const std::function<void(const XmlElement&)>& visit) const;
  void Visit(const std::function<void(XmlElement&)>& visit);
};

// Returns the outermost element. On failure returns nothing, and *error says the line and what is wrong.
// Elements nested deeper than 64 levels are an error.
std::optional<XmlElement> ParseXml(std::string_view text, std::string* error);

// Returns one line for each tag, indented by one space for each level.
std::string WriteXml(const XmlElement& root);

}  // namespace cuda_standin
