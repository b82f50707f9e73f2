#include "loops/validation_hooks.h"

#include "trainer/trainer.h"

namespace rondo {

namespace {

constexpr const char* kSuffixes[] = {
    "_start", "_end", "_batch_start", "_batch_end", "_step_start", "_step_end"};

}  // namespace

template <class... Params, class... Args>
void ValidationHooks::call(const Hook<Params...>& validate,
                           const Hook<Params...>& predict,
                           Args&&... args) const {
  trainer_.call(family_ == "predict" ? predict : validate, args...);
}

void ValidationHooks::start(Model& model, const DataLoader& loader, Loop& loop) const {
  if (!is_custom()) {
    return call(hooks::on_validate_start, hooks::on_predict_start, model, loader, loop);
  }
  HookArgs args{{"model", &model}, {"loader", &loader}, {"loop", &loop}};
  trainer_.call(name("_start"), args);
}

void ValidationHooks::end(Model& model, Loop& loop) const {
  if (!is_custom()) {
    return call(hooks::on_validate_end, hooks::on_predict_end, model, loop);
  }
  HookArgs args{{"model", &model}, {"loop", &loop}};
  trainer_.call(name("_end"), args);
}

void ValidationHooks::batch_start(Model& model, const Batch& batch, int64_t batch_idx) const {
  if (!is_custom()) {
    return call(
        hooks::on_validate_batch_start, hooks::on_predict_batch_start, model, batch, batch_idx);
  }
  HookArgs args{{"model", &model}, {"batch", &batch}, {"batch_idx", batch_idx}};
  trainer_.call(name("_batch_start"), args);
}

void ValidationHooks::batch_end(Model& model,
                                const Outputs& outputs,
                                const Batch& batch,
                                int64_t batch_idx) const {
  if (!is_custom()) {
    return call(hooks::on_validate_batch_end,
                hooks::on_predict_batch_end,
                model,
                outputs,
                batch,
                batch_idx);
  }
  HookArgs args{
      {"model", &model}, {"outputs", &outputs}, {"batch", &batch}, {"batch_idx", batch_idx}};
  trainer_.call(name("_batch_end"), args);
}

void ValidationHooks::step_start(Model& model, const Batch& batch) const {
  if (!is_custom()) {
    return call(hooks::on_validate_step_start, hooks::on_predict_step_start, model, batch);
  }
  HookArgs args{{"model", &model}, {"batch", &batch}};
  trainer_.call(name("_step_start"), args);
}

void ValidationHooks::step_end(Model& model, const Outputs& outputs, const Batch& batch) const {
  if (!is_custom()) {
    return call(hooks::on_validate_step_end, hooks::on_predict_step_end, model, outputs, batch);
  }
  HookArgs args{{"model", &model}, {"outputs", &outputs}, {"batch", &batch}};
  trainer_.call(name("_step_end"), args);
}

void ValidationHooks::allow() const {
  if (is_custom()) {
    for (const char* suffix : kSuffixes) {
      trainer_.allow_hook(name(suffix));
    }
  }
}

void ValidationHooks::disallow() const {
  if (is_custom()) {
    for (const char* suffix : kSuffixes) {
      trainer_.disallow_hook(name(suffix));
    }
  }
}

}  // namespace rondo
