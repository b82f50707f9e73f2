#include "core/call_stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

namespace rondo {

namespace {

// Deeper than from an operator to the loop that trains.
constexpr int kMostFrames = 64;

/// A function, and where in it.
struct Place {
  std::string function;
  std::string file;  // "net.cpp:41", or "" when it is not known
};

bool begins_with(const std::string& text, const std::string& beginning) {
  return text.compare(0, beginning.size(), beginning) == 0;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

// "void f<int>(std::vector<int> const&)" without what a person skips: parameters.
std::string without_parameters(const std::string& function) {
  int depth = 0;
  for (size_t i = 0; i < function.size(); ++i) {
    depth += function[i] == '<' ? 1 : function[i] == '>' ? -1 : 0;
    const bool is_anonymous = function.compare(i, 21, "(anonymous namespace)") == 0;
    if (function[i] == '(' && depth == 0 && !is_anonymous && i > 0) {
      // A lambda's body stands in operator()(…).
      return begins_with(function.substr(i), "()(") ? function.substr(0, i + 2)
                                                    : function.substr(0, i);
    }
  }
  return function;
}

// The machinery that every stack holds: nobody's own code.
bool is_machinery(const std::string& function) {
  static const char* const kNames[] = {"at::",
                                       "c10::",
                                       "torch::",
                                       "std::",
                                       "__gnu_cxx::",
                                       "void at::",
                                       "void c10::",
                                       "void torch::",
                                       "void std::",
                                       "at::Tensor c10::",
                                       "at::Tensor std::",
                                       "at::Tensor at::",
                                       "at::Tensor torch::"};
  return std::any_of(std::begin(kNames), std::end(kNames), [&](const char* name) {
    return begins_with(function, name);
  });
}

bool is_library_of_others(const std::string& object) {
  const std::string name = std::filesystem::path(object).filename().string();
  return begins_with(name, "libtorch") || begins_with(name, "libc10") ||
         begins_with(name, "libc.") || begins_with(name, "libstdc++") ||
         begins_with(name, "libgomp");
}

// Programs that are not position independent are linked to their addresses.
uintptr_t address_in_file(void* address, const Dl_info& info) {
  const auto* header = static_cast<const Elf64_Ehdr*>(info.dli_fbase);
  const auto absolute = reinterpret_cast<uintptr_t>(address) - 1;  // the call, not what follows it
  return header->e_type == ET_EXEC ? absolute
                                   : absolute - reinterpret_cast<uintptr_t>(info.dli_fbase);
}

// What addr2line says, inlined calls included, innermost first; empty without symbols.
std::vector<Place> places_in_file(const std::string& object, uintptr_t address) {
  if (object.find('\'') != std::string::npos) {
    return {};
  }
  std::ostringstream command;
  command << "addr2line -f -C -i -e '" << object << "' 0x" << std::hex << address << " 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.str().c_str(), "r"), &::pclose);
  std::string text;
  char buffer[512];
  while (pipe != nullptr && std::fgets(buffer, sizeof buffer, pipe.get()) != nullptr) {
    text += buffer;
  }
  std::vector<Place> places;
  std::istringstream lines(text);
  std::string function;
  std::string file;
  while (std::getline(lines, function) && std::getline(lines, file)) {
    if (function == "??") {
      return {};
    }
    const bool has_line = !begins_with(file, "??") && file.back() != '?';
    places.push_back({function, has_line ? file.substr(0, file.find(" (discriminator")) : ""});
  }
  return places;
}

std::vector<Place> look_up(void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr ||
      is_library_of_others(info.dli_fname)) {
    return {};
  }
  std::vector<Place> places = places_in_file(info.dli_fname, address_in_file(address, info));
  if (places.empty() && info.dli_sname != nullptr) {
    places.push_back({demangled(info.dli_sname), ""});
  }
  return places;
}

// A step of thousands of instructions comes from some hundred places.
const std::vector<Place>& places_at(void* address) {
  static std::mutex mutex;
  static std::map<void*, std::vector<Place>> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(address);
  return found != known.end() ? found->second
                              : known.emplace(address, look_up(address)).first->second;
}

bool is_header_of_others(const std::string& file) {
  return file.find("/include/c++/") != std::string::npos ||
         file.find("/include/torch/") != std::string::npos ||
         file.find("/include/ATen/") != std::string::npos ||
         file.find("/include/c10/") != std::string::npos;
}

}  // namespace

CallStack call_stack() {
  void* addresses[kMostFrames];
  void** const end = addresses + ::backtrace(addresses, kMostFrames);
  // Sanitizers put a frame of their own in front.
  void** const caller = std::find(addresses, end, __builtin_return_address(0));
  return CallStack(caller, end);
}

std::string source_of(const CallStack& stack, const std::vector<std::string>& skip) {
  for (void* const address : stack) {
    for (const Place& place : places_at(address)) {
      const bool is_skipped = std::any_of(skip.begin(), skip.end(), [&](const std::string& name) {
        return begins_with(place.function, name);
      });
      if (is_skipped || is_machinery(place.function) || is_header_of_others(place.file)) {
        continue;
      }
      const std::string function = without_parameters(place.function);
      return place.file.empty()
                 ? function
                 : function + " (" + std::filesystem::path(place.file).filename().string() + ")";
    }
  }
  return "";
}

}  // namespace rondo
