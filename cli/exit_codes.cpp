#include "cli/exit_codes.h"

#include "core/error.h"

namespace rondo {

int exit_code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ConfigError&) {
    return 2;
  } catch (const UsageError&) {
    return 2;
  } catch (const HookError& outer) {
    const auto* nesting = dynamic_cast<const std::nested_exception*>(&outer);
    const bool has_cause = nesting != nullptr && nesting->nested_ptr() != nullptr;
    return has_cause ? exit_code_of(nesting->nested_ptr()) : 1;
  } catch (...) {
    return 1;
  }
}

}  // namespace rondo
