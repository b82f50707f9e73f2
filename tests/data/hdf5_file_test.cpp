#include "data/arrays/hdf5_file.h"

#include <doctest/doctest.h>
#include <hdf5.h>
#include <torch/types.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/arrays/array_files.h"
#include "data/data_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Writes a variable; `is_packed` for chunks that are compressed.
void write(hid_t file,
           const char* name,
           hid_t type,
           hid_t in_memory,
           const std::vector<hsize_t>& shape,
           const void* values,
           bool is_packed = false) {
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
  if (is_packed) {
    H5Pset_chunk(how, static_cast<int>(shape.size()), shape.data());
    H5Pset_deflate(how, 9);
  }
  const hid_t data = H5Dcreate2(file, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
  H5Dwrite(data, in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  H5Dclose(data);
  H5Pclose(how);
  H5Sclose(space);
}

/// Gives a variable an attribute of one number.
void mark(hid_t file, const char* variable, const char* name, hid_t type, const void* value) {
  const hid_t data = H5Dopen2(file, variable, H5P_DEFAULT);
  const hid_t space = H5Screate(H5S_SCALAR);
  const hid_t attribute = H5Acreate2(data, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, type, value);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Dclose(data);
}

/// As libraries of NetCDF-4 write temperatures: packed, with a number for those that are missing.
void make_packed(const std::filesystem::path& path) {
  const int16_t packed[] = {0, 100, -32767, -250};
  const int32_t counts[] = {3, -1, 5};
  const float depths[] = {1.5F, 9.96921e36F};
  const int16_t fill = -32767;
  const int32_t none = -1;
  const float far = 9.96921e36F;
  const double scale = 0.01;
  const double offset = 273.15;
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  write(file, "t", H5T_STD_I16LE, H5T_NATIVE_INT16, {2, 2}, packed);
  mark(file, "t", "_FillValue", H5T_NATIVE_INT16, &fill);
  mark(file, "t", "scale_factor", H5T_NATIVE_DOUBLE, &scale);
  mark(file, "t", "add_offset", H5T_NATIVE_DOUBLE, &offset);
  write(file, "counts", H5T_STD_I32LE, H5T_NATIVE_INT32, {3}, counts);
  mark(file, "counts", "missing_value", H5T_NATIVE_INT32, &none);
  write(file, "label", H5T_STD_I32LE, H5T_NATIVE_INT32, {1}, counts);
  mark(file, "label", "_FillValue", H5T_NATIVE_INT32, &none);
  write(file, "depths", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {2}, depths);
  mark(file, "depths", "_FillValue", H5T_NATIVE_FLOAT, &far);
  H5Fclose(file);
}

void make(const std::filesystem::path& path) {
  const float x[] = {0, 1, 2, 3, 4, 5};
  const int32_t label[] = {1, -2, 300};
  const uint16_t shorts[] = {7, 65535, 0};
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t group = H5Gcreate2(file, "train", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  write(file, "train/x", H5T_IEEE_F64BE, H5T_NATIVE_FLOAT, {3, 2}, x, true);
  write(file, "label", H5T_STD_I32BE, H5T_NATIVE_INT32, {3}, label);
  write(file, "shorts", H5T_STD_U16LE, H5T_NATIVE_UINT16, {3}, shorts);
  H5Gclose(group);
  H5Fclose(file);
}

}  // namespace

TEST_SUITE_BEGIN("data/hdf5_file");

TEST_CASE("variables become tensors, whatever their width, byte order and compression") {
  const TempDir dir;
  make(dir / "a.h5");
  CHECK(equal_bytes(read_hdf5(dir / "a.h5", "train/x"),
                    torch::arange(6, torch::kDouble).reshape({3, 2})));
  CHECK(equal_bytes(read_hdf5(dir / "a.h5", "label"), torch::tensor({1, -2, 300}, torch::kInt)));
  CHECK(equal_bytes(read_hdf5(dir / "a.h5", "shorts"), torch::tensor({7, 65535, 0}, torch::kInt)));
  const std::string message = message_of([&] { read_hdf5(dir / "a.h5", "train/y"); });
  CHECK(contains(message, "a.h5"));
  CHECK(contains(message, "train/x"));
}

TEST_CASE("they are rows of a data set") {
  const TempDir dir;
  make(dir / "a.h5");
  ArrayFiles::Options options;
  options.data_dir = dir.path();
  options.arrays = {{"x", "a.h5", "train/x"}, {"label", "a.h5", "label"}};
  const ArrayFiles data(options);
  CHECK(data.size() == 3);
  CHECK(equal_bytes(data.get(1)["x"], torch::tensor({2.0F, 3.0F})));
}

TEST_CASE("fill values are NaN and packed numbers what they stand for, unless unpack is false") {
  const TempDir dir;
  make_packed(dir / "a.nc");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor t = read_hdf5(dir / "a.nc", "t");
  CHECK(t.sizes() == at::IntArrayRef({2, 2}));
  CHECK((t.scalar_type() == at::kFloat));
  CHECK(at::allclose(t.flatten(),
                     torch::tensor({273.15F, 274.15F, nan, 270.65F}),
                     1e-7,
                     1e-4,
                     /*equal_nan=*/true));
  CHECK(at::allclose(read_hdf5(dir / "a.nc", "counts"),
                     torch::tensor({3.0F, nan, 5.0F}).to(torch::kDouble),
                     0,
                     0,
                     /*equal_nan=*/true));
  CHECK(at::allclose(
      read_hdf5(dir / "a.nc", "depths"), torch::tensor({1.5F, nan}), 0, 0, /*equal_nan=*/true));
  CHECK(equal_bytes(read_hdf5(dir / "a.nc", "label"), torch::tensor({3}, torch::kInt)));

  ArrayFiles::Options options;
  options.data_dir = dir.path();
  options.arrays = {{"t", "a.nc", "t"}};
  CHECK(ArrayFiles(options).get(1)["t"][0].isnan().item<bool>());
  options.unpack = false;
  CHECK(equal_bytes(ArrayFiles(options).get(1)["t"], torch::tensor({-32767, -250}, torch::kShort)));
}

TEST_CASE("a fill value that a variable cannot have stands for none of its numbers") {
  const TempDir dir;
  const uint8_t bytes[] = {0, 7, 255};
  const int16_t shorts[] = {32767, 3};
  const int8_t minus = -1;
  const float far = 1e20F;
  const hid_t file = H5Fcreate((dir / "a.nc").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  write(file, "bytes", H5T_STD_U8LE, H5T_NATIVE_UINT8, {3}, bytes);
  mark(file, "bytes", "_FillValue", H5T_NATIVE_INT8, &minus);
  write(file, "shorts", H5T_STD_I16LE, H5T_NATIVE_INT16, {2}, shorts);
  mark(file, "shorts", "missing_value", H5T_NATIVE_FLOAT, &far);
  H5Fclose(file);
  CHECK(equal_bytes(read_hdf5(dir / "a.nc", "bytes"), torch::tensor({0, 7, 255}, torch::kByte)));
  CHECK(equal_bytes(read_hdf5(dir / "a.nc", "shorts"), torch::tensor({32767, 3}, torch::kShort)));
}

TEST_CASE("an attribute that says nothing of numbers is refused") {
  const TempDir dir;
  make_packed(dir / "a.nc");
  const hid_t file = H5Fopen((dir / "a.nc").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t text = H5Tcopy(H5T_C_S1);
  mark(file, "label", "scale_factor", text, "x");
  H5Tclose(text);
  H5Fclose(file);
  CHECK_THROWS_WITH_AS(
      read_hdf5(dir / "a.nc", "label"), doctest::Contains("attribute scale_factor"), DataError);
}

TEST_CASE("a chunk that unpacks to less than its variable says is refused") {
  const TempDir dir;
  const hid_t file = H5Fcreate((dir / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const double x[] = {0, 1, 2, 3, 4, 5};
  write(file, "x", H5T_NATIVE_DOUBLE, H5T_NATIVE_DOUBLE, {6}, x, true);
  const hid_t data = H5Dopen2(file, "x", H5P_DEFAULT);
  const hsize_t begin[] = {0};
  REQUIRE(H5Dwrite_chunk(data, H5P_DEFAULT, /*filters=*/1, begin, 35, x) >= 0);  // not packed
  H5Dclose(data);
  H5Fclose(file);
  CHECK_THROWS_WITH_AS(read_hdf5(dir / "a.h5", "x"),
                       doctest::Contains("unpacks to 35 bytes, expected 48"),
                       DataError);
}

TEST_CASE("a file that is cut anywhere, or has any byte changed, is read or refused") {
  const TempDir dir;
  make(dir / "a.h5");
  make_packed(dir / "packed.h5");
  const auto read_or_refuse = [&](const std::string& bytes) {
    write_file(dir / "b.h5", bytes);
    for (const char* name : {"train/x", "label", "t"}) {
      try {
        read_hdf5(dir / "b.h5", name);
      } catch (const DataError&) {
      }
    }
  };
  for (const char* file : {"a.h5", "packed.h5"}) {
    std::ifstream in(dir / file, std::ios::binary);
    const std::string good((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    for (size_t size = 0; size < good.size(); size += 37) {
      read_or_refuse(good.substr(0, size));
    }
    for (size_t at = 0; at < good.size(); at += 3) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(~bytes[at]);
      read_or_refuse(bytes);
    }
  }
}

TEST_SUITE_END();
