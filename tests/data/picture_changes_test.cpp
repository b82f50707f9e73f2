#include "data/images/picture_changes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/data_files.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// A picture of 9 x 9 pixels.
struct Small {
  static constexpr int64_t kSide = 9;

  explicit Small(int64_t count, float value = 0.0F)
      : channels(count), values(static_cast<size_t>(count * kSide * kSide), value) {}

  float& at(int64_t y, int64_t x, int64_t c = 0) {
    return values[static_cast<size_t>((c * kSide + y) * kSide + x)];
  }

  Small changed(const PictureChanges& changes, uint64_t epoch = 0) const {
    Small other = *this;
    KeyedRandom random(1, epoch);
    const Pixels pixels{other.values.data(), channels, kSide, kSide};
    move_picture(draw_move(changes, random), pixels);
    change_colours(changes, random, pixels);
    return other;
  }

  int64_t channels;
  std::vector<float> values;
};

PictureChanges all_changes() {
  return {20.0, 2, 0.4, 0.4, 0.4, 0.2};
}

Small colourful() {
  Small picture(3);
  for (size_t i = 0; i < picture.values.size(); ++i) {
    picture.values[i] = static_cast<float>(i * 37 % 101) / 100.0F;
  }
  return picture;
}

bool is_near(float a, float b) {
  return std::abs(a - b) < 1e-5F;
}

}  // namespace

TEST_SUITE_BEGIN("data/picture_changes");

TEST_CASE("changes follow from the random numbers, and values stay in [0, 1]") {
  const Small picture = colourful();
  CHECK(picture.changed(all_changes()).values == picture.changed(all_changes()).values);
  CHECK(picture.changed(all_changes()).values != picture.changed(all_changes(), 1).values);
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    const Small changed = picture.changed(all_changes(), epoch);
    const auto [least, most] = std::minmax_element(changed.values.begin(), changed.values.end());
    CHECK(*least >= 0.0F);
    CHECK(*most <= 1.0F);
  }
}

TEST_CASE("no change leaves the picture and the random numbers alone") {
  Small picture = colourful();
  KeyedRandom random(1);
  const Pixels pixels{picture.values.data(), 3, Small::kSide, Small::kSide};
  CHECK(draw_move({}, random).is_none());
  move_picture({}, pixels);
  change_colours({}, random, pixels);
  CHECK(picture.values == colourful().values);
  CHECK(random.next() == KeyedRandom(1).next());
}

TEST_CASE("a turned ramp rises as steeply, in another direction, and its middle stays") {
  Small ramp(1);
  for (int64_t y = 0; y < Small::kSide; ++y) {
    for (int64_t x = 0; x < Small::kSide; ++x) {
      ramp.at(y, x) = static_cast<float>(x) / 10.0F;
    }
  }
  PictureChanges changes;
  changes.rotation = 180.0;
  for (uint64_t epoch = 0; epoch < 10; ++epoch) {
    Small turned = ramp.changed(changes, epoch);
    CHECK(is_near(turned.at(4, 4), 0.4F));
    const float right = turned.at(4, 5) - turned.at(4, 4);
    const float down = turned.at(5, 4) - turned.at(4, 4);
    CHECK(is_near(right * right + down * down, 0.01F));
    CHECK(is_near(turned.at(5, 5), 0.4F + right + down));
  }
}

TEST_CASE("a moved picture keeps its pixels, and black comes in") {
  Small dot(3);
  for (int64_t c = 0; c < 3; ++c) {
    dot.at(4, 4, c) = 1.0F;
  }
  Small white(1, 1.0F);
  PictureChanges changes;
  changes.padding = 2;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    Small moved = dot.changed(changes, epoch);
    const auto at =
        std::find(moved.values.begin(), moved.values.end(), 1.0F) - moved.values.begin();
    CHECK(std::abs(at / Small::kSide - 4) <= 2);
    CHECK(std::abs(at % Small::kSide - 4) <= 2);
    CHECK(std::count(moved.values.begin(), moved.values.end(), 1.0F) == 3);
    CHECK(moved.at(at / Small::kSide, at % Small::kSide, 2) == 1.0F);
    const Small edges = white.changed(changes, epoch);
    CHECK(std::count(edges.values.begin(), edges.values.end(), 1.0F) >= 7 * 7);
  }
  changes.padding = 100;
  const Small gone = white.changed(changes);
  CHECK(std::count(gone.values.begin(), gone.values.end(), 0.0F) == 9 * 9);
}

TEST_CASE("light changes by its share; contrast, saturation and hue leave plain grey alone") {
  const Small grey(3, 0.5F);
  PictureChanges changes;
  changes.brightness = 0.2;
  const Small bright = grey.changed(changes);
  CHECK(std::count(bright.values.begin(), bright.values.end(), bright.values.front()) == 3 * 81);
  CHECK(std::abs(bright.values.front() - 0.5F) <= 0.1F);
  CHECK(bright.values.front() != 0.5F);
  changes.brightness = 0;
  changes.contrast = changes.saturation = 0.9;
  changes.hue = 0.5;
  const Small same = grey.changed(changes);
  CHECK(std::all_of(
      same.values.begin(), same.values.end(), [](float v) { return is_near(v, 0.5F); }));
}

TEST_CASE("hues of all colours turn by the same angle") {
  Small picture(3);
  picture.at(0, 0, 0) = 0.8F;  // red
  picture.at(0, 1, 1) = 0.8F;  // green
  PictureChanges changes;
  changes.hue = 0.5;
  Small turned = picture.changed(changes);
  for (int64_t c = 0; c < 3; ++c) {
    CHECK(is_near(turned.at(0, 1, (c + 1) % 3), turned.at(0, 0, c)));
  }
  CHECK(is_near(std::max({turned.at(0, 0, 0), turned.at(0, 0, 1), turned.at(0, 0, 2)}), 0.8F));
  CHECK_FALSE(is_near(turned.at(0, 0, 0), 0.8F));
}

TEST_CASE("numbers out of range, and colours of grey pictures, are refused") {
  const auto refused = [](const PictureChanges& changes, int64_t channels = 3) {
    return message_of([&] { check_changes("ImageFolder", changes, channels); });
  };
  CHECK(refused(all_changes()).empty());
  CHECK(contains(refused({181.0}), "ImageFolder: rotation"));
  CHECK(contains(refused({0.0, -1}), "padding"));
  CHECK(contains(refused({0.0, 0, 1.5}), "brightness"));
  CHECK(contains(refused({0.0, 0, 0.0, 0.0, 0.0, 0.6}), "hue"));
  CHECK(contains(refused(all_changes(), 1), "saturation and hue"));
}

TEST_SUITE_END();
