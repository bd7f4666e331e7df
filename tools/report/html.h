// SPDX-License-Identifier: Apache-2.0
// Builds the HTML of a report: escaped text, tables, and one page that needs no network and runs no script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dynamiccl {

// Replaces the five characters that HTML interprets. All text from outside (names, paths, file contents) must
// pass through this function.
std::string EscapeHtml(std::string_view text);

struct HtmlColumn {
  std::string title;
  // Whether the column holds numbers, which are right-aligned.
  bool is_number = false;
};

// A table that grows row by row. Cells are plain text, which AddRow escapes. A row with more or fewer cells
// than there are columns is cut or filled with empty cells.
class HtmlTable {
 public:
  explicit HtmlTable(std::vector<HtmlColumn> columns) : columns_(std::move(columns)) {}
  // Adds a row. `emphasis` is its CSS class: "win", "loss", "held-out" or empty.
  void AddRow(std::vector<std::string> cells, const std::string& emphasis = {});
  // Whether no row was added.
  bool empty() const { return body_.empty(); }
  // The finished table inside a frame that scrolls sideways on a narrow screen.
  std::string Html() const;

 private:
  std::vector<HtmlColumn> columns_;
  std::string body_;
};

// `text` as a paragraph, escaped. Words between two backquotes are shown as code.
std::string HtmlParagraph(std::string_view text);
// `items` as a bulleted list, escaped in the same way.
std::string HtmlList(const std::vector<std::string>& items);

// One part of the page. `html` is finished HTML; `title` and `id` are plain text.
struct HtmlSection {
  std::string id;
  std::string title;
  std::string html;
};

// The whole file: links to the sections, inlined styles, and a content security policy that forbids scripts
// and every load from outside.
std::string HtmlPage(const std::string& title, const std::vector<HtmlSection>& sections);

}  // namespace dynamiccl
