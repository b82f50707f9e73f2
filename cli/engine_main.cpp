// The program `rondo-engine`, which `rondo` starts.

#include "cli/cli_main.h"

int main(int argc, char** argv) {
  return rondo::cli_main(argc, argv);
}
