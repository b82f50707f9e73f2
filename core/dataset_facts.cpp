#include "core/dataset_facts.h"

#include <cmath>

namespace rondo {

double DatasetFacts::Target::original(double scaled) const {
  const double value = scaled * factor + shift;
  return is_log ? std::copysign(std::expm1(std::fabs(value)), value) : value;
}

namespace {

template <class T>
StateList list_of(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

std::vector<std::string> texts_of(const StateValue& list) {
  std::vector<std::string> texts;
  for (const StateValue& text : list.as_list()) {
    texts.push_back(text.as_string());
  }
  return texts;
}

std::vector<int64_t> integers_of(const StateValue& list) {
  std::vector<int64_t> integers;
  for (const StateValue& integer : list.as_list()) {
    integers.push_back(integer.as_int());
  }
  return integers;
}

void set_known(StateDict& state, const char* name, const std::optional<int64_t>& value) {
  if (value) {
    state.set(name, *value);
  }
}

std::optional<int64_t> known_in(const StateDict& state, const char* name) {
  const StateValue* value = state.find(name);
  return value != nullptr ? std::optional<int64_t>(value->as_int()) : std::nullopt;
}

}  // namespace

std::optional<int64_t> size_named(std::string_view option, const DatasetFacts& facts) {
  const std::vector<int64_t>& image = facts.image_shape;  // channels, height, width
  if (option == "channels" && image.size() == 3) {
    return image[0];
  }
  if (option == "image_size" && image.size() == 3 && image[1] == image[2]) {
    return image[1];
  }
  if (option == "classes" && facts.classes == 0) {  // values
    return std::nullopt;
  }
  return option == "features"     ? facts.features
         : option == "classes"    ? facts.classes
         : option == "vocabulary" ? facts.vocabulary
                                  : std::nullopt;
}

StateDict to_state(const DatasetFacts& facts) {
  StateList targets;
  for (const DatasetFacts::Target& target : facts.targets) {
    targets.emplace_back(StateDict{{"name", target.name},
                                   {"log", target.is_log},
                                   {"shift", target.shift},
                                   {"factor", target.factor}});
  }
  StateDict state{{"feature_names", list_of(facts.feature_names)},
                  {"categories", list_of(facts.categories)},
                  {"category_names", list_of(facts.category_names)},
                  {"class_names", list_of(facts.class_names)},
                  {"class_weights", list_of(facts.class_weights)},
                  {"targets", std::move(targets)},
                  {"image_shape", list_of(facts.image_shape)}};
  set_known(state, "features", facts.features);
  set_known(state, "classes", facts.classes);
  set_known(state, "vocabulary", facts.vocabulary);
  return state;
}

DatasetFacts facts_from(const StateDict& state) {
  DatasetFacts facts;
  facts.features = known_in(state, "features");
  facts.feature_names = texts_of(state.at("feature_names"));
  facts.categories = integers_of(state.at("categories"));
  facts.category_names = texts_of(state.at("category_names"));
  facts.classes = known_in(state, "classes");
  facts.class_names = texts_of(state.at("class_names"));
  for (const StateValue& weight : state.at("class_weights").as_list()) {
    facts.class_weights.push_back(weight.as_double());
  }
  for (const StateValue& value : state.at("targets").as_list()) {
    const StateDict& target = value.as_dict();
    facts.targets.push_back({target.at("name").as_string(),
                             target.at("log").as_bool(),
                             target.at("shift").as_double(),
                             target.at("factor").as_double()});
  }
  facts.image_shape = integers_of(state.at("image_shape"));
  facts.vocabulary = known_in(state, "vocabulary");
  return facts;
}

}  // namespace rondo
