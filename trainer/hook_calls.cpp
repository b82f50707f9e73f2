#include "trainer/hook_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <typeinfo>

#include "callbacks/global_callbacks.h"
#include "core/error.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

void call_one(Callback& callback,
              const std::string& class_name,
              const std::string& origin,
              const char* hook,
              const std::function<void(Callback&)>& call) {
  try {
    call(callback);
  } catch (const CaptureError&) {
    throw;
  } catch (const NonFiniteLossError&) {
    throw;
  } catch (...) {
    const std::string place = origin.empty() ? "" : " (" + origin + ")";
    std::throw_with_nested(
        HookError(fmt::format("error when calling {}.{}{}", class_name, hook, place)));
  }
}

}  // namespace

void HookCalls::call(const char* hook,
                     HookSite site,
                     bool BatchHooks::*in_batch,
                     const std::function<void(Callback&)>& call) {
  Backend* const backend = site == HookSite::Step ? trainer_.state().backend.get() : nullptr;
  for (const CallbackMap::Entry& entry : trainer_.callbacks().entries()) {
    if (in_batch != nullptr && !(entry.batch_hooks.*in_batch)) {
      continue;
    }
    if (backend != nullptr) {
      backend->set_location(entry.class_name, hook);
    }
    call_one(*entry.callback, entry.class_name, entry.origin, hook, call);
  }
  for (Callback* callback : heard_globals()) {
    const std::string name = class_name(typeid(*callback));
    if (backend != nullptr) {
      backend->set_location(name, hook);
    }
    call_one(*callback, name, "", hook, call);
  }
  if (backend != nullptr) {
    backend->set_location("", "");
  }
}

void HookCalls::call_custom(std::string_view hook, HookArgs& args) {
  const std::string name(hook);
  const bool is_optional = std::find(optional_.begin(), optional_.end(), name) != optional_.end();
  for (const CallbackMap::Entry& entry : trainer_.callbacks().entries()) {
    bool is_handled = false;
    const auto call_hook = [&](Callback& callback) {
      is_handled = callback.on_custom(trainer_, hook, args);
    };
    call_one(*entry.callback, entry.class_name, entry.origin, name.c_str(), call_hook);
    if (!is_handled && !is_optional) {
      throw UsageError(
          fmt::format("{} does not implement the hook \"{}\"; allow_hook makes it optional",
                      entry.class_name,
                      hook));
    }
  }
  for (Callback* callback : heard_globals()) {
    call_one(*callback, class_name(typeid(*callback)), "", name.c_str(), [&](Callback& heard) {
      heard.on_custom(trainer_, hook, args);
    });
  }
}

void HookCalls::disallow(const std::string& hook) {
  const auto at = std::find(optional_.begin(), optional_.end(), hook);
  if (at != optional_.end()) {
    optional_.erase(at);
  }
}

std::vector<Callback*> HookCalls::heard() const {
  std::vector<Callback*> heard;
  for (const CallbackMap::Entry& entry : trainer_.callbacks().entries()) {
    heard.push_back(entry.callback.get());
  }
  const std::vector<Callback*> globals = heard_globals();
  heard.insert(heard.end(), globals.begin(), globals.end());
  return heard;
}

std::vector<Callback*> HookCalls::heard_globals() const {
  std::vector<Callback*> globals = global_callbacks();
  if (const auto& leaves_out = trainer_.options().leaves_out; leaves_out != nullptr) {
    const auto is_left_out = [&](const Callback* callback) { return leaves_out(*callback); };
    globals.erase(std::remove_if(globals.begin(), globals.end(), is_left_out), globals.end());
  }
  return globals;
}

}  // namespace rondo
