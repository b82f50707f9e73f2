#pragma once

#include "trainer/registries.h"

/// Makes a shared library a plugin, which a config names in `plugins = ["libmine.so"]`:
///
///     RONDO_PLUGIN(registry) {
///       registry.callbacks.add<GradNorm>("GradNorm", "Logs the gradient norm.");
///     }
///
/// Build it with `rondo_add_plugin(mine mine.cpp)`.
#define RONDO_PLUGIN(registry) extern "C" void rondo_register_plugin(rondo::Registries& registry)
