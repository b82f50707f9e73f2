#include "core/out_of_memory.h"

#include <c10/util/Exception.h>

#include <new>
#include <string>

namespace rondo {

namespace {

/// LibTorch's allocator of the host throws a plain error.
bool is_of_allocator(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.find("can't allocate memory") != std::string::npos ||
         text.find("not enough memory") != std::string::npos ||
         text.find("out of memory") != std::string::npos;
}

}  // namespace

bool is_out_of_memory(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const c10::OutOfMemoryError&) {
    return true;
  } catch (const c10::Error& thrown) {
    return is_of_allocator(thrown);
  } catch (const std::nested_exception& nested) {
    return nested.nested_ptr() != nullptr && is_out_of_memory(nested.nested_ptr());
  } catch (...) {
    return false;
  }
}

}  // namespace rondo
