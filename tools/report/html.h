// SPDX-License-Identifier: Apache-2.0
// The HTML of a report: escaped text, tables, and one page that needs no network and runs no script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dynamiccl {

// Everything that comes from outside (names, paths, file contents) goes through this.
std::string EscapeHtml(std::string_view text);

struct HtmlColumn {
  std::string title;
  bool is_number = false;  // right-aligned
};

// Cells are plain text and are escaped here. A row longer or shorter than the columns is cut or filled.
class HtmlTable {
 public:
  explicit HtmlTable(std::vector<HtmlColumn> columns) : columns_(std::move(columns)) {}
  // `emphasis` is a CSS class of the row: "win", "loss", "held-out" or empty.
  void AddRow(std::vector<std::string> cells, const std::string& emphasis = {});
  bool empty() const { return body_.empty(); }
  std::string Html() const;

 private:
  std::vector<HtmlColumn> columns_;
  std::string body_;
};

std::string HtmlParagraph(std::string_view text);
std::string HtmlList(const std::vector<std::string>& items);

// One part of the page; `html` is finished HTML.
struct HtmlSection {
  std::string id;
  std::string title;
  std::string html;
};

// The whole file: styles inlined, a content security policy that forbids everything else.
std::string HtmlPage(const std::string& title, const std::vector<HtmlSection>& sections);

}  // namespace dynamiccl
