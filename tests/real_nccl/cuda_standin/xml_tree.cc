// SPDX-License-Identifier: Apache-2.0
// Parses elements and attributes recursively.
#include "tests/real_nccl/cuda_standin/xml_tree.h"

#include <algorithm>

namespace cuda_standin {
namespace {

constexpr int kDeepest = 64;
constexpr std::string_view kSpace = " \t\r\n";

// Owns the position in the text. A function that fails sets *error and returns false.
class XmlParser {
 public:
  XmlParser(std::string_view text, std::string* error) : text_(text), error_(error) {}

  std::optional<XmlElement> ParseDocument() {
    XmlElement root;
    if (!SkipToElement() || !ParseElement(&root, 0)) return std::nullopt;
    return root;
  }

 private:
  bool Fail(const std::string& what) {
    *error_ = "line " + std::to_string(Line()) + ": " + what;
    return false;
  }

  // Returns the line of the position. The position never moves back, so each line break is counted once.
  int Line() {
    const auto at = [&](size_t place) { return text_.begin() + static_cast<std::ptrdiff_t>(place); };
    line_ += static_cast<int>(std::count(at(counted_), at(at_), '\n'));
    counted_ = at_;
    return line_;
  }

  bool StartsWith(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  // Moves behind the next `end`. Fails when the text does not contain it.
  bool SkipPast(std::string_view end) {
    const size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) return Fail("the file ends before '" + std::string(end) + "'");
    at_ = found + end.size();
    return true;
  }

  void SkipSpace() { at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size()); }

  // Moves to the '<' of the next start or end tag. Text, comments and declarations are skipped.
  bool SkipToElement() {
    for (;;) {
      at_ = std::min(text_.find('<', at_), text_.size());
      if (at_ == text_.size()) return Fail("the file ends where an element is expected");
      if (StartsWith("<!--")) {
        if (!SkipPast("-->")) return false;
      } else if (StartsWith("<?") || StartsWith("<!")) {
        if (!SkipPast(">")) return false;
      } else {
        return true;
      }
    }
  }

  std::string ParseName() {
    const size_t end = std::min(text_.find_first_of(" \t\r\n=/>", at_), text_.size());
    const std::string name(text_.substr(at_, end - at_));
    at_ = end;
    return name;
  }

  // Parses name="value" and leaves the position behind it.
  bool ParseAttribute(XmlElement* element) {
    const std::string name = ParseName();
    SkipSpace();
    if (name.empty() || !StartsWith("=")) return Fail("expected name=\"value\" in <" + element->tag + ">");
    ++at_;
    SkipSpace();
    if (!StartsWith("\"")) return Fail("the value of '" + name + "' does not begin with '\"'");
    const size_t begin = ++at_;
    if (!SkipPast("\"")) return false;
    element->attributes.emplace_back(name, text_.substr(begin, at_ - 1 - begin));
    return true;
  }

  bool ParseElement(XmlElement* element, int depth) {
    if (depth > kDeepest) return Fail("elements are nested deeper than 64 levels");
    element->line = Line();
    ++at_;
    element->tag = ParseName();
    if (element->tag.empty()) return Fail("an element without a name");
    for (SkipSpace(); !StartsWith(">") && !StartsWith("/>"); SkipSpace()) {
      if (at_ == text_.size()) return Fail("the file ends inside <" + element->tag + ">");
      if (!ParseAttribute(element)) return false;
    }
    const bool empty = StartsWith("/>");
    at_ += empty ? 2 : 1;
    return empty || ParseChildren(element, depth);
  }

  bool ParseChildren(XmlElement* element, int depth) {
    for (;;) {
      if (!SkipToElement()) return false;
      if (StartsWith("</")) {
        at_ += 2;
        const std::string name = ParseName();
        if (name != element->tag) return Fail("</" + name + "> ends <" + element->tag + ">");
        return SkipPast(">");
      }
      if (!ParseElement(&element->children.emplace_back(), depth + 1)) return false;
    }
  }

  const std::string_view text_;
  std::string* const error_;
  size_t at_ = 0;
  size_t counted_ = 0;  // line_ includes the line breaks before this position
  int line_ = 1;
};

void Write(const XmlElement& element, size_t depth, std::string* out) {
  out->append(depth, ' ').append("<").append(element.tag);
  for (const auto& [name, value] : element.attributes)
    out->append(" ").append(name).append("=\"").append(value).append("\"");
  if (element.children.empty()) {
    out->append("/>\n");
    return;
  }
  out->append(">\n");
  for (const XmlElement& child : element.children) Write(child, depth + 1, out);
  out->append(depth, ' ').append("</").append(element.tag).append(">\n");
}

}  // namespace

const std::string* XmlElement::Find(std::string_view name) const {
  const auto found =
      std::find_if(attributes.begin(), attributes.end(), [&](const auto& one) { return one.first == name; });
  return found == attributes.end() ? nullptr : &found->second;
}

std::string XmlElement::Get(std::string_view name, const std::string& otherwise) const {
  const std::string* value = Find(name);
  return value == nullptr ? otherwise : *value;
}

void XmlElement::Set(std::string_view name, std::string value) {
  for (auto& [known, its] : attributes) {
    if (known != name) continue;
    its = std::move(value);
    return;
  }
  attributes.emplace_back(name, std::move(value));
}

void XmlElement::Visit(const std::function<void(const XmlElement&)>& visit) const {
  visit(*this);
  for (const XmlElement& child : children) child.Visit(visit);
}

void XmlElement::Visit(const std::function<void(XmlElement&)>& visit) {
  visit(*this);
  for (XmlElement& child : children) child.Visit(visit);
}

std::optional<XmlElement> ParseXml(std::string_view text, std::string* error) {
  return XmlParser(text, error).ParseDocument();
}

std::string WriteXml(const XmlElement& root) {
  std::string out;
  Write(root, 0, &out);
  return out;
}

}  // namespace cuda_standin
