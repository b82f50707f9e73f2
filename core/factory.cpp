#include "core/factory.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/error.h"

namespace rondo {

bool is_label(std::string_view text) {
  const auto is_allowed = [](unsigned char letter) {
    return (letter < 0x80 && std::isalnum(letter)) || letter == '_' || letter == '-';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_allowed);
}

std::string class_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  std::string name = status == 0 ? demangled.get() : type.name();
  const size_t arguments = name.find('<');
  const size_t scope = name.rfind("::", arguments);
  return scope == std::string::npos ? name : name.substr(scope + 2);
}

namespace detail {

void throw_not_made(const std::string& component) {
  std::throw_with_nested(Error(component + " cannot be made"));
}

}  // namespace detail

}  // namespace rondo
