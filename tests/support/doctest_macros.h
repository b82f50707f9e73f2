#pragma once

// LibTorch's logging has macros CHECK, CHECK_EQ and so on that end the program. Tests mean those of
// doctest: they are defined last. Every test is compiled as if this were its first line.

#include <c10/util/Logging.h>

#include <doctest/doctest.h>
