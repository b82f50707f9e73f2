# Writes the definition of board/page.h: cmake -Dfile=page.html -Dsource=page.cpp -P embed_page.cmake
file(READ ${file} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${source} "#include \"board/page.h\"\n\nnamespace rondo {\n\nnamespace {\n\n"
  "constexpr unsigned char kBytes[] = {\n${bytes}};\n\n}  // namespace\n\n"
  "std::string_view board_page() {\n  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};\n}\n\n}  // namespace rondo\n")
