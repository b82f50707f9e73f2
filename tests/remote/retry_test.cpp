#include "remote/retry.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "remote/remote_error.h"

TEST_SUITE_BEGIN("remote/retry");

namespace rondo {

TEST_CASE("what can be tried again is, with longer and longer waits") {
  std::vector<double> waits;
  RetryPolicy policy;
  policy.retries = 8;
  policy.wait = [&](double seconds) { waits.push_back(seconds); };
  int tried = 0;
  CHECK_THROWS_AS(with_retries(policy,
                               [&] {
                                 ++tried;
                                 throw RemoteError("busy", true);
                               }),
                  RemoteError);
  CHECK(tried == 9);
  CHECK(waits == std::vector<double>{1, 2, 4, 8, 16, 32, 60, 60});
}

TEST_CASE("a refusal is not tried again, nor anything after giving up") {
  RetryPolicy policy;
  policy.wait = [](double) { FAIL("waits"); };
  int tried = 0;
  CHECK_THROWS_AS(with_retries(policy,
                               [&] {
                                 ++tried;
                                 throw RemoteError("refused", false);
                               }),
                  RemoteError);
  policy.gives_up = std::make_shared<std::atomic<bool>>(true);
  CHECK_THROWS_AS(with_retries(policy,
                               [&] {
                                 ++tried;
                                 throw RemoteError("busy", true);
                               }),
                  RemoteError);
  CHECK(tried == 2);
}

}  // namespace rondo

TEST_SUITE_END();
