#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "data/images/image_codecs.h"

namespace rondo::detail {

namespace {

/// libpng's state for one file. It reports errors by a jump back to `guarded`, over which no object
/// with a destructor may stand.
class Png {
 public:
  Png(const std::string& name, std::string_view bytes) : name_(name), bytes_(bytes) {
    state_.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    state_.info = state_.png != nullptr ? png_create_info_struct(state_.png) : nullptr;
    if (state_.info == nullptr) {
      fail_image(name_, 0, "libpng has no memory");
    }
    guarded([this] {
      png_set_read_fn(state_.png, this, read);
      png_set_user_limits(state_.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
      png_read_info(state_.png, state_.info);
    });
    require_size(name_, size().height, size().width);
    require_bytes(name_, size(), least_bytes(), bytes_.size());
  }

  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  ImageSize size() const {
    return {png_get_image_height(state_.png, state_.info),
            png_get_image_width(state_.png, state_.info)};
  }

  Image decode(int64_t channels) {
    guarded([this, channels] { ask_for(channels); });
    return pixels(channels);
  }

  /// The numbers that are stored: of a palette's colours, or greys.
  Image decode_numbers() {
    if ((kind() & PNG_COLOR_MASK_COLOR) != 0 && kind() != PNG_COLOR_TYPE_PALETTE) {
      fail_image(name_, 0, "this file has colours; a mask has greys or a palette");
    }
    guarded([this] {
      png_set_packing(state_.png);  // a byte for each number of fewer bits
      ask_for_plain_bytes();
    });
    return pixels(1);
  }

 private:
  struct State {
    png_structp png = nullptr;
    png_infop info = nullptr;

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    ~State() { png_destroy_read_struct(&png, &info, nullptr); }
  };

  static void on_error(png_structp png, png_const_charp message) {
    auto* self = static_cast<Png*>(png_get_error_ptr(png));
    std::strncpy(self->message_, message, sizeof(self->message_) - 1);
    std::longjmp(self->jump_, 1);
  }

  static void on_warning(png_structp, png_const_charp) {}

  static void read(png_structp png, png_bytep to, size_t size) {
    auto* self = static_cast<Png*>(png_get_io_ptr(png));
    if (size > self->bytes_.size() - self->at_) {
      png_error(png, "the file ends early");
    }
    std::memcpy(to, self->bytes_.data() + self->at_, size);
    self->at_ += size;
  }

  /// Deflate shortens rows of one value to a 1032nd, and nothing to less.
  int64_t least_bytes() const {
    constexpr int64_t kMostShortened = 1032;
    const auto row = static_cast<int64_t>(png_get_rowbytes(state_.png, state_.info));
    return size().height * row / kMostShortened;
  }

  template <class Call>
  void guarded(Call call) {
    if (setjmp(jump_) != 0) {
      fail_image(name_, at_, message_);
    }
    call();
  }

  int kind() const { return png_get_color_type(state_.png, state_.info); }

  bool is_wide() const { return png_get_bit_depth(state_.png, state_.info) == 16; }

  /// The transformations that give plain grey or coloured pixels.
  void ask_for(int64_t channels) {
    png_set_expand(state_.png);  // palettes and small greys
    const bool is_coloured = (kind() & PNG_COLOR_MASK_COLOR) != 0;
    if (channels == 3 && !is_coloured) {
      png_set_gray_to_rgb(state_.png);
    } else if (channels == 1 && is_coloured) {
      constexpr double kDefault = -1.0;  // the weights of ITU-R BT.709
      png_set_rgb_to_gray(state_.png, PNG_ERROR_ACTION_NONE, kDefault, kDefault);
    }
    ask_for_plain_bytes();
  }

  void ask_for_plain_bytes() {
    png_set_strip_alpha(state_.png);
    if (is_wide()) {
      png_set_swap(state_.png);  // files are big-endian
    }
    png_set_interlace_handling(state_.png);
    png_read_update_info(state_.png, state_.info);
  }

  Image pixels(int64_t channels) {
    Image image{size().height, size().width, channels, is_wide(), {}};
    const auto row = static_cast<size_t>(image.width * channels * (image.is_wide ? 2 : 1));
    if (png_get_rowbytes(state_.png, state_.info) != row) {
      fail_image(name_, at_, "libpng gives another number of channels");
    }
    image.bytes.resize(static_cast<size_t>(image.height) * row);
    std::vector<png_bytep> rows(static_cast<size_t>(image.height));
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = image.bytes.data() + i * row;
    }
    png_bytep* const lines = rows.data();
    guarded([this, lines] {
      png_read_image(state_.png, lines);
      png_read_end(state_.png, nullptr);
    });
    return image;
  }

  const std::string& name_;
  std::string_view bytes_;
  size_t at_ = 0;
  State state_;
  std::jmp_buf jump_{};
  char message_[256] = {};
};

}  // namespace

ImageSize png_size(const std::string& name, std::string_view bytes) {
  return Png(name, bytes).size();
}

Image decode_png(const std::string& name, std::string_view bytes, int64_t channels) {
  return Png(name, bytes).decode(channels);
}

Image decode_png_numbers(const std::string& name, std::string_view bytes) {
  return Png(name, bytes).decode_numbers();
}

}  // namespace rondo::detail
