#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <memory>

#include "core/error.h"
#include "data/text/word_split.h"

namespace rondo::detail {

namespace {

constexpr const char* kPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }

  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

std::unique_ptr<pcre2_code, Free> compiled() {
  int error = 0;
  PCRE2_SIZE offset = 0;
  std::unique_ptr<pcre2_code, Free> code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(kPattern),
                                                       PCRE2_ZERO_TERMINATED,
                                                       PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED,
                                                       &error,
                                                       &offset,
                                                       nullptr));
  if (code == nullptr) {
    throw DataError(fmt::format("this PCRE2 cannot split words: error {}", error));
  }
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // where the machine can; else it interprets
  return code;
}

}  // namespace

void split_words(std::string_view text, const std::function<void(std::string_view)>& take) {
  static const std::unique_ptr<pcre2_code, Free> code = compiled();
  const std::unique_ptr<pcre2_match_data, Free> match(
      pcre2_match_data_create_from_pattern(code.get(), nullptr));
  size_t at = 0;
  while (at < text.size()) {
    // The whole text is checked once; then each match begins where the last one ended.
    const uint32_t options = at == 0 ? 0 : PCRE2_NO_UTF_CHECK;
    const int found = pcre2_match(code.get(),
                                  reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(),
                                  at,
                                  options,
                                  match.get(),
                                  nullptr);
    if (found < 0) {
      const PCRE2_SIZE where = at == 0 ? pcre2_get_startchar(match.get()) : at;
      throw DataError(
          fmt::format("offset {}: this is no UTF-8 text (PCRE2 says {})", where, found));
    }
    const size_t end = pcre2_get_ovector_pointer(match.get())[1];
    take(text.substr(at, end - at));
    at = end;
  }
}

}  // namespace rondo::detail
