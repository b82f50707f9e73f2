#include <doctest/doctest.h>

#include <string>

#include "core/dataset_facts.h"
#include "core/error.h"
#include "models/builtin/cnn.h"
#include "models/builtin/deep_resnet.h"
#include "models/builtin/gpt.h"
#include "models/builtin/lstm.h"
#include "models/builtin/mobile_net.h"
#include "models/builtin/resnet.h"
#include "models/builtin/u_net.h"
#include "models/builtin/vit.h"
#include "models/losses/share_losses.h"
#include "support/contains.h"

using namespace rondo;
using namespace rondo::test;

namespace {

DatasetFacts facts_of_pictures() {
  DatasetFacts facts;
  facts.image_shape = {2, 32, 32};
  facts.classes = 5;
  return facts;
}

DatasetFacts facts_of_text() {
  DatasetFacts facts;
  facts.vocabulary = 11;
  return facts;
}

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// \param name  of one of the options that are open
template <class T>
void check_open(typename T::Options options, const DatasetFacts& facts, const std::string& name) {
  T::check(options);
  CHECK(contains(error_of([&] { T{options}; }), name + " is \"auto\": give it"));
  CHECK(contains(error_of([&] { T::resolve(options, DatasetFacts()); }), "does not know its "));
  T::resolve(options, facts);
  CHECK(error_of([&] { T{options}; }).empty());
}

template <class Options>
Options of_pictures() {
  Options options;
  options.channels = {};
  options.classes = {};
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("models/auto_sizes");

TEST_CASE("sizes that are open come from the facts of the data, or are errors that name them") {
  auto cnn = of_pictures<Cnn::Options>();
  cnn.image_size = {};
  check_open<Cnn>(cnn, facts_of_pictures(), "channels");
  auto vit = of_pictures<Vit::Options>();
  vit.image_size = {};
  check_open<Vit>(vit, facts_of_pictures(), "image_size");
  check_open<DeepResNet>(of_pictures<DeepResNet::Options>(), facts_of_pictures(), "channels");
  check_open<MobileNet>(of_pictures<MobileNet::Options>(), facts_of_pictures(), "channels");
  check_open<UNet>(of_pictures<UNet::Options>(), facts_of_pictures(), "channels");
  Gpt::Options gpt;
  gpt.vocabulary = {};
  check_open<Gpt>(gpt, facts_of_text(), "vocabulary");
}

TEST_CASE("what is given stays, whatever the data says") {
  Cnn::Options options;
  options.channels = {};
  options.classes = 7;
  Cnn::resolve(options, facts_of_pictures());
  CHECK(*options.channels == 2);
  CHECK(*options.classes == 7);
  CHECK(*options.image_size == 28);
  RecurrentOptions recurrent;
  recurrent.vocabulary = {};
  Gru::resolve(recurrent, facts_of_text());
  CHECK(*recurrent.vocabulary == 11);
  ResNet::Options resnet;
  resnet.channels = {};
  ResNet::resolve(resnet, facts_of_pictures());
  CHECK(*resnet.channels == 2);
}

TEST_CASE("masks of two classes take one logit where the loss is binary") {
  DatasetFacts facts = facts_of_pictures();
  facts.classes = 2;
  auto options = of_pictures<UNet::Options>();
  UNet::resolve(options, facts);
  CHECK(*options.classes == 2);
  options.classes = {};
  options.loss = use<BinaryCrossEntropyLoss>();
  UNet::resolve(options, facts);
  CHECK(*options.classes == 1);
}

TEST_CASE("data of values has no classes") {
  DatasetFacts facts = facts_of_pictures();
  facts.classes = 0;
  auto options = of_pictures<Cnn::Options>();
  CHECK(contains(error_of([&] { Cnn::resolve(options, facts); }),
                 "the data does not know its classes"));
}

TEST_CASE("pictures that are no squares have no size") {
  DatasetFacts facts = facts_of_pictures();
  facts.image_shape = {3, 16, 32};
  CHECK(size_named("channels", facts) == 3);
  CHECK_FALSE(size_named("image_size", facts));
  CHECK_FALSE(size_named("widths", facts));
}

TEST_SUITE_END();
