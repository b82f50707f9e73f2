#include "core/error.h"

#include <c10/util/Exception.h>
#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "core/factory.h"

namespace rondo {

namespace {

std::vector<Fault> in_file_order(std::vector<Fault> faults) {
  std::stable_sort(faults.begin(), faults.end(), [](const Fault& a, const Fault& b) {
    return std::tie(a.position.line, a.position.column) <
           std::tie(b.position.line, b.position.column);
  });
  return faults;
}

std::string joined(const std::vector<Fault>& faults) {
  std::string text;
  for (const Fault& fault : faults) {
    text += (text.empty() ? "" : "\n") + to_string(fault);
  }
  return text;
}

/// The exception nested directly inside `error`, or null.
std::exception_ptr nested_in(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::nested_exception& outer) {
    return outer.nested_ptr();
  } catch (...) {
    return nullptr;
  }
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();  // addresses of LibTorch's functions help nobody
  } catch (const std::exception& e) {
    return e.what();
  } catch (const std::string& text) {
    return fmt::format("\"{}\", thrown as a text, which is no std::exception", text);
  } catch (const char* text) {
    return fmt::format("\"{}\", thrown as a text, which is no std::exception", text);
  } catch (...) {
    const std::type_info* const type = abi::__cxa_current_exception_type();
    return fmt::format("an exception that is no std::exception, of type {}",
                       type != nullptr ? class_name(*type) : "unknown");
  }
}

}  // namespace

IoError::IoError(const std::string& what, int error)
    : Error(error == 0 ? what : fmt::format("{}: {}", what, std::strerror(error))),
      error_number(error) {}

std::string to_string(const SourcePosition& position) {
  if (position.line == 0) {
    return position.file;
  }
  return fmt::format(
      "{}{}{}:{}", position.file, position.file.empty() ? "" : ":", position.line, position.column);
}

std::string to_string(const Fault& fault) {
  std::string text = to_string(fault.position);
  if (!text.empty()) {
    text += ": ";
  }
  return fault.path.empty() ? text + fault.message : text + fault.path + ": " + fault.message;
}

ConfigError::ConfigError(std::vector<Fault> found)
    : Error(joined(in_file_order(found))), faults(in_file_order(std::move(found))) {}

ConfigError::ConfigError(Fault fault) : ConfigError(std::vector<Fault>(1, fault)) {}

std::exception_ptr root_cause(std::exception_ptr error) {
  while (error) {
    std::exception_ptr inner = nested_in(error);
    if (!inner) {
      break;
    }
    error = inner;
  }
  return error;
}

std::string describe(std::exception_ptr error) {
  std::string text;
  while (error) {
    text += (text.empty() ? "" : ": ") + message_of(error);
    error = nested_in(error);
  }
  return text;
}

}  // namespace rondo
