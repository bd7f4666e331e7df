// SPDX-License-Identifier: Apache-2.0
// The style sheet and the functions that write HTML.
#include "tools/report/html.h"

#include <fmt/format.h>

namespace dynamiccl {
namespace {

// The page's styles. A table breaks lines between words before it gets wider than the page. On a phone or a
// small tablet each row of a table with many columns (class "rows") becomes a list with one line for each
// cell, which begins with the column's title. A table that is still too wide scrolls inside its frame. Print
// has no colours and frames. Dark mode follows the reader's setting.
constexpr const char* kStyle = R"css(
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--ground:#fff;--band:#f6f8fa;
--default:#6e7781;--ours:#0969da;--best:#1a7f37;--win:#dafbe1;--loss:#ffebe9;--held:#fff8c5}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9da7b1;--line:#3d444d;--ground:#0d1117;--band:#161b22;
--default:#9198a1;--ours:#4493f8;--best:#3fb950;--win:#12361f;--loss:#49181a;--held:#3a3000}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:70rem;font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground)}
h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.15rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1.4rem 0 .25rem}h4{font-size:.9rem;margin:.8rem 0 .2rem}
nav{display:flex;flex-wrap:wrap;gap:.25rem 1rem}nav a,a{color:var(--ours)}
p,li{max-width:46rem;overflow-wrap:anywhere}.soft{color:var(--soft)}
.scroll{overflow-x:auto;margin:.5rem 0}
table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:left}
th{background:var(--band);font-weight:600}.n{text-align:right}
tr.win{background:var(--win)}tr.loss{background:var(--loss)}tr.held-out{background:var(--held)}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,26rem),1fr));gap:1rem}
figure{margin:0;border:1px solid var(--line);border-radius:6px;padding:.5rem}
figcaption{font-size:.86rem;font-weight:600}
svg{width:100%;height:auto;display:block}svg text{fill:var(--ink);font:11px system-ui,sans-serif}
svg .axis{stroke:var(--line);stroke-width:1}svg .plain{fill:var(--line)}svg .mark{stroke:var(--ink);stroke-width:1;stroke-dasharray:3 2}
svg text.on-dark{fill:#fff}svg text.on-light{fill:#111}
svg .default{stroke:var(--default);fill:var(--default)}svg .ours{stroke:var(--ours);fill:var(--ours)}
svg .best{stroke:var(--best);fill:var(--best)}svg polyline{fill:none!important;stroke-width:2}
svg polyline.default{stroke-dasharray:5 3}svg polyline.best{stroke-dasharray:2 2}
@media(max-width:36rem){svg text{font-size:13.5px}table{font-size:.76rem}th,td{padding:.2rem .3rem;overflow-wrap:anywhere}}
@media screen and (max-width:48rem){
.rows,.rows tbody{display:block}.rows thead{display:none}
.rows tr{display:block;margin:.5rem 0;border:1px solid var(--line);border-radius:6px;break-inside:avoid}
.rows td{display:flex;justify-content:space-between;gap:1rem;border:0;text-align:right}.rows td:empty{display:none}
.rows td::before{content:attr(data-title);color:var(--soft);text-align:left}}
@media print{body{max-width:none;font-size:10pt;color:#000;background:#fff}nav{display:none}.scroll{overflow:visible}
table{font-size:7.5pt}th,td{padding:.15rem .3rem}figure,tr{break-inside:avoid}}
)css";

// The page's content security policy. It forbids everything except inlined styles, so that a script could not
// run even if a text were not escaped.
constexpr const char* kContentPolicy = "default-src 'none'; style-src 'unsafe-inline'";

// Escapes a sentence. Words between two backquotes are commands and are shown as code.
std::string EscapedSentence(std::string_view text) {
  std::string html;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t open = text.find('`', begin), close = open == text.npos ? open : text.find('`', open + 1);
    if (close == text.npos) return html + EscapeHtml(text.substr(begin));
    html += EscapeHtml(text.substr(begin, open - begin));
    html += fmt::format("<code>{}</code>", EscapeHtml(text.substr(open + 1, close - open - 1)));
    begin = close + 1;
  }
  return html;
}

// Tables with more columns than this are shown as lists on a narrow screen.
constexpr size_t kColumnsOnPhone = 3;

// Returns what a cell's tag says: that the cell holds a number, and the column's title where a narrow screen
// shows it.
std::string Attributes(const HtmlColumn& column, bool many_columns) {
  return fmt::format("{}{}", column.is_number ? " class=\"n\"" : "",
                     many_columns ? fmt::format(" data-title=\"{}\"", EscapeHtml(column.title)) : "");
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

void HtmlTable::AddRow(std::vector<std::string> cells, const std::string& emphasis) {
  cells.resize(columns_.size());
  body_ += emphasis.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", EscapeHtml(emphasis));
  for (size_t i = 0; i < cells.size(); ++i) {
    body_ += fmt::format("<td{}>{}</td>", Attributes(columns_[i], columns_.size() > kColumnsOnPhone),
                         EscapeHtml(cells[i]));
  }
  body_ += "</tr>\n";
}

std::string HtmlTable::Html() const {
  std::string head;
  for (const HtmlColumn& column : columns_) {
    head += fmt::format("<th scope=\"col\"{}>{}</th>", Attributes(column, false), EscapeHtml(column.title));
  }
  return fmt::format(
      "<div class=\"scroll\"><table{}><thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
      columns_.size() > kColumnsOnPhone ? " class=\"rows\"" : "", head, body_);
}

std::string HtmlParagraph(std::string_view text) {
  return fmt::format("<p>{}</p>\n", EscapedSentence(text));
}

std::string HtmlList(const std::vector<std::string>& items) {
  std::string html = "<ul>\n";
  for (const std::string& item : items) html += fmt::format("<li>{}</li>\n", EscapedSentence(item));
  return html + "</ul>\n";
}

std::string HtmlPage(const std::string& title, const std::vector<HtmlSection>& sections) {
  std::string links;
  std::string body;
  for (const HtmlSection& section : sections) {
    const std::string id = EscapeHtml(section.id);
    const std::string name = EscapeHtml(section.title);
    links += fmt::format("<a href=\"#{}\">{}</a>\n", id, name);
    body += fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, name, section.html);
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}</style></head>\n<body>\n<h1>{}</h1>\n<nav>\n{}</nav>\n{}</body></html>\n",
      kContentPolicy, EscapeHtml(title), kStyle, EscapeHtml(title), links, body);
}

}  // namespace dynamiccl
