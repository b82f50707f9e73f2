// jpeglib.h uses what these declare.
#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include <algorithm>
#include <vector>

#include "data/images/image_codecs.h"

namespace rondo::detail {

namespace {

/// Frees what libjpeg allocated, also when the constructor of what holds it throws.
struct JpegState : jpeg_decompress_struct {
  JpegState() : jpeg_decompress_struct{} {}

  JpegState(const JpegState&) = delete;
  JpegState& operator=(const JpegState&) = delete;

  ~JpegState() { jpeg_destroy_decompress(this); }
};

/// libjpeg's state for one file. It reports errors by a jump back to `guarded`, over which no
/// object with a destructor may stand.
class Jpeg {
 public:
  Jpeg(const std::string& name, std::string_view bytes) : name_(name), bytes_(bytes) {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr info) {
      auto* self = static_cast<Jpeg*>(info->client_data);
      info->err->format_message(info, self->message_);
      std::longjmp(self->jump_, 1);
    };
    errors_.output_message = [](j_common_ptr) {};  // warnings are counted, not printed
    info_.client_data = this;
    guarded([this] {
      jpeg_create_decompress(&info_);
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
      jpeg_read_header(&info_, TRUE);
    });
    require_size(name_, info_.image_height, info_.image_width);
    require_bytes(name_, size(), least_bytes(), bytes_.size());
  }

  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  ImageSize size() const { return {info_.image_height, info_.image_width}; }

  Image decode(int64_t channels, int64_t shrink) {
    const bool is_print = has_inks();
    info_.out_color_space = is_print ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(shrink);
    guarded([this] { jpeg_start_decompress(&info_); });
    Image image{info_.output_height, info_.output_width, channels, false, {}};
    const auto row = static_cast<size_t>(image.width * channels);
    image.bytes.resize(static_cast<size_t>(image.height) * row);
    std::vector<unsigned char> inks(is_print ? static_cast<size_t>(image.width) * 4 : 0);
    unsigned char* const pixels = image.bytes.data();
    unsigned char* const four = inks.data();
    guarded([this, pixels, row, four, channels] {
      while (info_.output_scanline < info_.output_height) {
        unsigned char* const to = pixels + info_.output_scanline * row;
        JSAMPROW line = four != nullptr ? four : to;
        jpeg_read_scanlines(&info_, &line, 1);
        if (four != nullptr) {
          take_inks(four, channels, to);
        }
      }
      jpeg_finish_decompress(&info_);
    });
    if (errors_.num_warnings > 0) {  // grey stands where data is missing
      fail_image(name_, offset(), "the picture is damaged or cut off");
    }
    return image;
  }

 private:
  /// Pictures for print: cyan, magenta, yellow and black.
  bool has_inks() const {
    return info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
  }

  /// A row of inks as colours or greys. Adobe's programs, which mark their files, write what is not
  /// inked. Source: Adobe Technical Note 5116, 18; grey as libjpeg makes it, ITU-R BT.601.
  void take_inks(const unsigned char* inks, int64_t channels, unsigned char* to) const {
    const bool is_inverted = info_.saw_Adobe_marker != 0;
    for (JDIMENSION x = 0; x < info_.output_width; ++x) {
      int light[4];
      for (int i = 0; i < 4; ++i) {
        light[i] = is_inverted ? inks[4 * x + i] : 255 - inks[4 * x + i];
      }
      unsigned char colour[3];
      for (int c = 0; c < 3; ++c) {
        colour[c] = static_cast<unsigned char>((light[c] * light[3] + 127) / 255);
      }
      if (channels == 1) {
        *to++ = static_cast<unsigned char>(
            (299 * colour[0] + 587 * colour[1] + 114 * colour[2] + 500) / 1000);
      } else {
        to = std::copy(colour, colour + 3, to);
      }
    }
  }

  /// A block of 8 x 8 values has a code of at least a bit, and two in a file of one pass. Nothing
  /// can be said of arithmetic coding, which takes less.
  int64_t least_bytes() const {
    int64_t blocks = 0;
    for (int i = 0; i < info_.num_components; ++i) {
      blocks += int64_t{info_.comp_info[i].width_in_blocks} * info_.comp_info[i].height_in_blocks;
    }
    return info_.arith_code != 0 ? 0 : blocks * (info_.progressive_mode != 0 ? 1 : 2) / 8;
  }

  template <class Call>
  void guarded(Call call) {
    if (setjmp(jump_) != 0) {
      fail_image(name_, offset(), message_);
    }
    call();
  }

  size_t offset() const {
    return info_.src != nullptr ? bytes_.size() - info_.src->bytes_in_buffer : 0;
  }

  const std::string& name_;
  std::string_view bytes_;
  JpegState info_;
  jpeg_error_mgr errors_{};
  std::jmp_buf jump_{};
  char message_[JMSG_LENGTH_MAX] = {};
};

}  // namespace

ImageSize jpeg_size(const std::string& name, std::string_view bytes) {
  return Jpeg(name, bytes).size();
}

Image decode_jpeg(const std::string& name,
                  std::string_view bytes,
                  int64_t channels,
                  int64_t shrink) {
  return Jpeg(name, bytes).decode(channels, shrink);
}

}  // namespace rondo::detail
