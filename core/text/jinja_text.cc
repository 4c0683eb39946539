#include "core/text/jinja_text.h"

#include <algorithm>

namespace strata {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool IsName(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
         (c >= 'a' && c <= 'z');
}

char Unescape(char c) {
  return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
}

// Reads a string literal that begins at `at`; returns the place after it.
size_t ReadLiteral(std::string_view jinja, size_t at, std::string* literal) {
  const char quote = jinja[at++];
  while (at < jinja.size() && jinja[at] != quote) {
    if (jinja[at] == '\\' && at + 1 < jinja.size()) {
      literal->push_back(Unescape(jinja[++at]));
    } else {
      literal->push_back(jinja[at]);
    }
    ++at;
  }
  return std::min(at + 1, jinja.size());
}

// Reads the inside of a tag up to `close` ("}}" or "%}"); returns the place of
// that.
size_t ReadCode(std::string_view jinja, size_t at, std::string_view close,
                JinjaText* out) {
  const size_t first = out->code.size();
  while (at < jinja.size() && jinja.substr(at, 2) != close) {
    const char c = jinja[at];
    if (c == '\'' || c == '"') {
      std::string literal;
      at = ReadLiteral(jinja, at, &literal);
      out->code.append("'").append(literal).append("'");
      out->literals.push_back(std::move(literal));
      continue;
    }
    if (!IsSpace(c)) out->code.push_back(c);
    ++at;
  }
  // The marks of white space control, which are no code.
  std::string& code = out->code;
  if (code.size() > first && (code[first] == '-' || code[first] == '+'))
    code.erase(first, 1);
  if (code.size() > first && (code.back() == '-' || code.back() == '+'))
    code.pop_back();
  code.push_back(';');
  return at;
}

void ReplaceAttribute(std::string_view name, std::string* code) {
  const std::string dotted = "." + std::string(name);
  const std::string indexed = "['" + std::string(name) + "']";
  for (size_t at = code->find(dotted); at != std::string::npos;
       at = code->find(dotted, at)) {
    const size_t end = at + dotted.size();
    if (end < code->size() && IsName((*code)[end])) {
      at = end;
    } else {
      code->replace(at, dotted.size(), indexed);
      at += indexed.size();
    }
  }
}

void StripLeft(std::string_view* text) {
  while (!text->empty() && IsSpace(text->front())) text->remove_prefix(1);
}

void StripRight(std::string_view* text) {
  while (!text->empty() && IsSpace(text->back())) text->remove_suffix(1);
}

// Blanks between the beginning of a line and a block (lstrip_blocks).
void StripIndent(std::string_view* text, bool at_line_begin) {
  std::string_view stripped = *text;
  while (!stripped.empty() &&
         (stripped.back() == ' ' || stripped.back() == '\t')) {
    stripped.remove_suffix(1);
  }
  if (stripped.empty() ? at_line_begin : stripped.back() == '\n')
    *text = stripped;
}

}  // namespace

JinjaText ReadJinja(std::string_view jinja) {
  JinjaText out;
  out.code = ";";
  if (jinja.ends_with('\n'))
    jinja.remove_suffix(1);  // keep_trailing_newline is off
  size_t at = 0;
  bool strip_left = false;  // the tag before ended with '-'
  bool line_begins = true;  // the data begins a line
  while (at < jinja.size()) {
    size_t open = at;
    while (open < jinja.size() && jinja.substr(open, 2) != "{{" &&
           jinja.substr(open, 2) != "{%" && jinja.substr(open, 2) != "{#") {
      ++open;
    }
    std::string_view data = jinja.substr(at, open - at);
    if (strip_left) StripLeft(&data);
    if (open == jinja.size()) {
      out.data.append(data);
      break;
    }
    const char kind = jinja[open + 1];
    const char mark = open + 2 < jinja.size() ? jinja[open + 2] : ' ';
    if (mark == '-') {
      StripRight(&data);
    } else if (kind != '{' && mark != '+') {
      StripIndent(&data, line_begins);
    }
    out.data.append(data);
    const std::string_view close = kind == '{'   ? "}}"
                                   : kind == '%' ? "%}"
                                                 : "#}";
    const size_t end = kind == '#'
                           ? std::min(jinja.find(close, open), jinja.size())
                           : ReadCode(jinja, open + 2, close, &out);
    at = std::min(end + 2, jinja.size());
    strip_left = end > 0 && end < jinja.size() && jinja[end - 1] == '-';
    line_begins = false;
    if (kind != '{' && at < jinja.size() && jinja[at] == '\n') {  // trim_blocks
      ++at;
      line_begins = true;
    }
  }
  ReplaceAttribute("role", &out.code);
  ReplaceAttribute("content", &out.code);
  return out;
}

}  // namespace strata
