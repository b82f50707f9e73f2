#include "remote/internal/s3_xml.h"

#include <array>
#include <cstdlib>
#include <utility>

namespace rondo::detail {

namespace {

constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
    {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}}};

/// One character of an entity such as "amp" or "#13"; '?' for an unknown one.
char character_of(const std::string& entity) {
  if (entity.size() > 1 && entity[0] == '#') {
    const bool is_hex = entity[1] == 'x';
    return static_cast<char>(
        std::strtol(entity.c_str() + (is_hex ? 2 : 1), nullptr, is_hex ? 16 : 10));
  }
  for (const auto& [name, character] : kEntities) {
    if (entity == name) {
      return character;
    }
  }
  return '?';
}

std::string decoded(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t ampersand = text.find('&');
    const size_t end = ampersand == std::string_view::npos ? ampersand : text.find(';', ampersand);
    if (end == std::string_view::npos) {
      return result.append(text);
    }
    result.append(text.substr(0, ampersand));
    result += character_of(std::string(text.substr(ampersand + 1, end - ampersand - 1)));
    text.remove_prefix(end + 1);
  }
  return result;
}

}  // namespace

std::vector<std::string> texts_of(std::string_view xml, std::string_view element) {
  const std::string open = "<" + std::string(element) + ">";
  const std::string close = "</" + std::string(element) + ">";
  std::vector<std::string> texts;
  for (size_t at = xml.find(open); at != std::string_view::npos; at = xml.find(open, at)) {
    at += open.size();
    const size_t end = xml.find(close, at);
    if (end == std::string_view::npos) {
      break;
    }
    texts.push_back(decoded(xml.substr(at, end - at)));
    at = end;
  }
  return texts;
}

std::string text_of(std::string_view xml, std::string_view element) {
  const std::vector<std::string> all = texts_of(xml, element);
  return all.empty() ? "" : all.front();
}

}  // namespace rondo::detail
