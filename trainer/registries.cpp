#include "trainer/registries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <exception>

#include "callbacks/algorithms/register.h"
#include "callbacks/builtin/register.h"
#include "core/error.h"
#include "data/register.h"
#include "loggers/register.h"
#include "loops/steps/register.h"
#include "metrics/register.h"
#include "models/losses/register.h"
#include "models/register.h"
#include "optim/register.h"
#include "sparsity/register.h"

namespace rondo {

void register_builtins(Registries& registries) {
  register_builtin_losses(registries.losses);
  register_builtin_models(registries.models, registries.losses);
  register_builtin_datasets(registries.datasets);
  register_builtin_optimizers(registries.optimizers);
  register_builtin_schedulers(registries.schedulers);
  register_builtin_sparsity_algorithms(registries.sparsity_algorithms);
  register_builtin_steps(registries.steps, registries.models);
  register_builtin_metrics(registries.metrics);
  register_builtin_algorithms(registries.algorithms);
  register_builtin_callbacks(registries.callbacks, registries.metrics);
  register_builtin_loggers(registries.loggers);
}

void load_plugin(const std::filesystem::path& library, Registries& registries) {
  // A name without a slash would be looked for in the system's own folders.
  const std::filesystem::path path = library.has_parent_path() ? library : "." / library;
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw UsageError(fmt::format("cannot open the plugin {}: {}", library.string(), ::dlerror()));
  }
  using Register = void (*)(Registries&);
  const auto add = reinterpret_cast<Register>(::dlsym(handle, "rondo_register_plugin"));
  if (add == nullptr) {
    ::dlclose(handle);
    throw UsageError(
        fmt::format("{} is not a rondo plugin: it has no RONDO_PLUGIN", library.string()));
  }
  try {
    add(registries);
  } catch (const std::exception&) {
    throw;
  } catch (...) {
    std::throw_with_nested(
        Error(fmt::format("the plugin {} failed to register its components", library.string())));
  }
}

}  // namespace rondo
