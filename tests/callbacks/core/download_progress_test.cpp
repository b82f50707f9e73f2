#include "callbacks/core/download_progress.h"

#include <doctest/doctest.h>

#include <optional>

using namespace rondo;

TEST_SUITE_BEGIN("callbacks/core/download_progress");

TEST_CASE("the line of a download has its share, its size and a bar") {
  constexpr int64_t kMiB = 1 << 20;
  CHECK(download_line("s3://b/a.pt", 3 * kMiB, 12 * kMiB, 80) ==
        "downloading s3://b/a.pt  25 % of 12.0 MiB [=====               ]");
  CHECK(download_line("s3://b/a.pt", 12 * kMiB, 12 * kMiB, 80) ==
        "downloading s3://b/a.pt 100 % of 12.0 MiB [====================]");
  CHECK(download_line("s3://b/a.pt", 3 * kMiB, std::nullopt, 80) ==
        "downloading s3://b/a.pt 3.0 MiB");
}

TEST_CASE("the line of a download fits into the terminal") {
  CHECK(download_line("s3://b/a.pt", 1 << 20, 4 << 20, 50) ==
        "downloading s3://b/a.pt  25 % of 4.0 MiB");
  CHECK(download_line("s3://b/a.pt", 1 << 20, 4 << 20, 20).size() == 19);
  CHECK(download_line("s3://b/a.pt", 0, 0, 1).empty());
}

TEST_SUITE_END();
