#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <iostream>

namespace {

unsigned cases_run = 0;

struct CaseCounter final : doctest::IReporter {
  explicit CaseCounter(const doctest::ContextOptions&) {}

  void test_run_end(const doctest::TestRunStats& stats) override {
    cases_run = stats.numTestCasesPassingFilters;
  }

  void report_query(const doctest::QueryData&) override {}

  void test_run_start() override {}

  void test_case_start(const doctest::TestCaseData&) override {}

  void test_case_reenter(const doctest::TestCaseData&) override {}

  void test_case_end(const doctest::CurrentTestCaseStats&) override {}

  void test_case_exception(const doctest::TestCaseException&) override {}

  void subcase_start(const doctest::SubcaseSignature&) override {}

  void subcase_end() override {}

  void log_assert(const doctest::AssertData&) override {}

  void log_message(const doctest::MessageData&) override {}

  void test_case_skipped(const doctest::TestCaseData&) override {}
};

}  // namespace

REGISTER_LISTENER("cases", 0, CaseCounter);

// A filter that no test case passes is a mistake in a name, not a success.
int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int code = context.run();
  if (context.shouldExit()) {
    return code;
  }
  if (cases_run == 0) {
    std::cerr << "no test case matches\n";
    return 1;
  }
  return code;
}

#ifdef __SANITIZE_ADDRESS__
// On a damaged file libhdf5 loses memory of its own.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libhdf5";
}
#endif
