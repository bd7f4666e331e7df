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
  // True if the column holds numbers, which are right-aligned.
  bool is_number = false;
};

// An HTML table that grows row by row. AddRow escapes the plain text of the cells. If a row has more cells
// than there are columns, it is cut; if it has fewer, empty cells are added.
class HtmlTable {
 public:
  explicit HtmlTable(std::vector<HtmlColumn> columns) : columns_(std::move(columns)) {}
  // Adds a row. `emphasis` is the row's CSS class: "win", "loss", "held-out" or empty.
  void AddRow(std::vector<std::string> cells, const std::string& emphasis = {});
  // True if the table has no rows.
  bool empty() const { return body_.empty(); }
  // Returns the table as HTML, inside a frame that scrolls sideways on a narrow screen. A table with more
  // than three columns has the column's title in each cell, from which the style sheet makes a list for a
  // phone.
  std::string Html() const;

 private:
  std::vector<HtmlColumn> columns_;
  std::string body_;
};

// Returns `text` as an escaped paragraph. Words between two backquotes are shown as code.
std::string HtmlParagraph(std::string_view text);
// Returns `items` as a bulleted list. Texts are escaped, and words between two backquotes are shown as code.
std::string HtmlList(const std::vector<std::string>& items);

// One section of the page. `html` is finished HTML; `title` and `id` are plain text.
struct HtmlSection {
  std::string id;
  std::string title;
  std::string html;
};

// Returns the whole page: links to the sections, inlined styles, and a content security policy that forbids
// scripts and every load from outside.
std::string HtmlPage(const std::string& title, const std::vector<HtmlSection>& sections);

}  // namespace dynamiccl
