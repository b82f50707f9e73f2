#include "plugin.h"

// What no plugin should do, and a program must survive: it throws what is no std::exception.
RONDO_PLUGIN(/*registry*/) {
  throw 42;
}
