#include <rondo/cli/cli_main.h>
#include <rondo/core/version.h>
#include <rondo/module.h>
#include <rondo/rondo.h>

#include <iostream>
#include <string_view>

// Prints the version through the library's own command line; fails when headers and library differ
// so much that they do not link, or when the command does not work.
int main() {
  std::cout << "built against rondo " << rondo::kVersion << std::endl;
  char program[] = "consumer";
  char command[] = "version";
  char* arguments[] = {program, command, nullptr};
  return rondo::cli_main(2, arguments);
}
