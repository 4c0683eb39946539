#ifndef CORE_TEXT_JINJA_TEXT_H_
#define CORE_TEXT_JINJA_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace strata {

// A Jinja template in a form that texts can be compared in: read, not executed.
struct JinjaText {
  // The insides of all {{ }} and {% %}, in order, each between ';'.  Without
  // white space outside of string literals, `{%if` as if, x.role as x['role'],
  // literals in single quotes with their escapes resolved.
  std::string code;
  std::vector<std::string> literals;  // the string literals alone
  // What stands outside of the tags and is printed as it is, once Jinja's white
  // space control is applied (with trim_blocks and lstrip_blocks, as
  // transformers does).
  std::string data;

  bool Has(std::string_view part) const {
    return code.find(part) != std::string::npos;
  }
};

JinjaText ReadJinja(std::string_view jinja);

}  // namespace strata

#endif  // CORE_TEXT_JINJA_TEXT_H_
