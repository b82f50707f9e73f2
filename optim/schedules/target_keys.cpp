#include "optim/schedules/target_keys.h"

namespace rondo {

const KeyTable<SchedulerTarget>& target_keys() {
  static const auto made = [] {
    using Target = SchedulerTarget;
    KeyTable<Target> keys;
    keys.key("param_group_key", &Target::param_group_key, "the optimizer's number that it drives")
        .key("param_group_tags", &Target::param_group_tags, "the groups that it drives; none: all")
        .key("optimizer",
             &Target::optimizer,
             "the name of the optimizer that it drives; empty: the only one")
        .key("relative",
             &Target::relative,
             "whether its values are factors of what each group has in the optimizer's options")
        .key("warmup", &Target::warmup, at_least(0), "length of a line from 0 at the beginning")
        .key("scale_warmup",
             &Target::scale_warmup,
             "whether loop.scale_schedule_ratio stretches the warm-up too");
    return keys;
  }();
  return made;
}

void add_target_keys(KeyList& keys, size_t offset) {
  for (OptionKey key : target_keys().keys()) {
    key.read = [read = key.read, offset](
                   const ConfigValue& value, void* options, FaultSink& faults) {
      read(value, &detail::field_at<SchedulerTarget>(options, offset), faults);
    };
    key.write = [write = key.write, offset](const void* options) {
      return write(&detail::field_at<SchedulerTarget>(options, offset));
    };
    keys.add(std::move(key));
  }
}

}  // namespace rondo
