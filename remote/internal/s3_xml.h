#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rondo::detail {

/// The texts of all elements of a name in one of S3's answers, decoded, in their order. S3's
/// answers have no attributes on what is asked for, no comments and no CDATA.
std::vector<std::string> texts_of(std::string_view xml, std::string_view element);

/// The first of them; "" when there is none.
std::string text_of(std::string_view xml, std::string_view element);

}  // namespace rondo::detail
