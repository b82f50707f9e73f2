#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "configs/config_values.h"
#include "configs/overrides.h"
#include "configs/toml_file.h"
#include "core/error.h"
#include "core/random.h"
#include "support/campaign.h"

using namespace rondo;

namespace {

const char* const kSample = R"(plugins = ["libmine.so"]  # before the rest
[trainer.init]
model_dir  = "runs/glyphs"
seed       = 1
backend    = { mode = "traced", device = 'cpu' }
model      = { name = "Mlp", sizes = [784, 256, 10], "quoted key" = true }
loop       = { max_steps = 1_000, eval_frequency = 0.25, note = """two
lines \u00e9""" }
callbacks  = [{ GradNorm = true }, { KeepNCheckpoints = { n = 0x0a } }]
[trainer.init.optimizer.AdamW]
lr = 2e-3
params = [{ params = ["*.bias"], weight_decay = -0.0, tag = "no_decay" }]
[[trainer.init.schedulers]]
LinearLR.total_iters = 100
[[trainer.init.schedulers]]
LinearLR.total_iters = inf
[trainer.fit]
ckpt_path = false
)";

const std::vector<std::string> kFragments = {"true",
                                             "nan",
                                             "-inf",
                                             "99999999999999999999",
                                             "0b2",
                                             "1__0",
                                             "2026-01-02",
                                             "10:11:12.5",
                                             "[",
                                             "]",
                                             "{",
                                             "}",
                                             "[[",
                                             "]]",
                                             "\"",
                                             "\"\"\"",
                                             "'''",
                                             "#",
                                             "=",
                                             ",",
                                             ".",
                                             "\\",
                                             "\\u12",
                                             "\n",
                                             "\r",
                                             "\t",
                                             "\xff",
                                             "\xc3",
                                             "\xef\xbb\xbf",
                                             std::string(1, '\0'),
                                             "é",
                                             "[trainer.init]",
                                             "trainer = 1",
                                             "a.a.a.a.a.a.a.a",
                                             "[[[[[[[[",
                                             "{a={a={a={"};

/// Changes a text in one to four places.
class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string mutated(std::string text) {
    for (uint64_t i = 1 + random_.below(4); i > 0; --i) {
      change(text);
    }
    return text;
  }

  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[random_.below(choices.size())];
  }

 private:
  size_t offset(const std::string& text) { return random_.below(text.size() + 1); }

  void change(std::string& text) {
    const size_t begin = offset(text);
    const size_t length = std::min<size_t>(random_.below(30), text.size() - begin);
    switch (random_.below(6)) {
      case 0:  // a flipped bit
        if (begin < text.size()) {
          text[begin] = static_cast<char>(text[begin] ^ (1 << random_.below(8)));
        }
        break;
      case 1:
        text.erase(begin, length);
        break;
      case 2:  // a piece at another place
        text.insert(offset(text), text.substr(begin, length));
        break;
      case 3:
        text.insert(begin, one_of(kFragments));
        break;
      case 4:
        duplicate_line(text, begin);
        break;
      default:
        swap_value(text, begin);
        break;
    }
  }

  static void duplicate_line(std::string& text, size_t from) {
    const size_t begin = std::min(text.find('\n', from), text.size());
    const size_t end = std::min(text.find('\n', begin + 1), text.size());
    text.insert(begin, text.substr(begin, end - begin));
  }

  /// Another value after the next "=".
  void swap_value(std::string& text, size_t from) {
    const size_t equals = text.find('=', from);
    if (equals != std::string::npos) {
      const size_t end = std::min(text.find_first_of(",}\n", equals), text.size());
      text.replace(equals + 1, end - equals - 1, one_of(kFragments));
    }
  }

  KeyedRandom random_;
};

/// Runs `act` and looks that nothing but a ConfigError with a file and a message comes out.
template <class Act>
void check_only_config_errors(const Act& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    REQUIRE_FALSE(error.faults.empty());
    CHECK_FALSE(error.faults.front().position.file.empty());
    CHECK_FALSE(error.faults.front().message.empty());
  } catch (const std::exception& error) {
    FAIL("not a ConfigError: " << error.what());
  }
}

void check_reads_back(const ConfigValue& root) {
  const ConfigTable& table = *root.get_if<ConfigTable>();
  CHECK(test::same_table(table, *parse_toml(write_toml(table), "t.toml").get_if<ConfigTable>()));
}

}  // namespace

TEST_SUITE_BEGIN("configs/toml_fuzz");

TEST_CASE("a mutated file is read or refused with a ConfigError, and what is read can be written") {
  const int cases = 5000 * test::campaign_scale();
  int read = 0;
  for (int seed = 0; seed < cases; ++seed) {
    CAPTURE(seed);
    check_only_config_errors([&] {
      const ConfigValue root =
          parse_toml(Mutator(static_cast<uint64_t>(seed)).mutated(kSample), "t.toml");
      ++read;
      check_reads_back(root);
    });
  }
  MESSAGE(read << " of " << cases << " mutated files were still TOML");
  CHECK(read > cases / 50);  // else the mutations are too wild to reach anything but the tokenizer
}

TEST_CASE("a mutated override is applied or refused with a ConfigError") {
  const std::vector<std::string> overrides = {"trainer.init.model_dir=runs/a",
                                              "trainer.init.loop.max_steps=10",
                                              "trainer.init.callbacks[0].GradNorm={ n = 1 }",
                                              "trainer.init.schedulers.1.LinearLR=[1, \"x\"]",
                                              "new.table.of.mine=0.5"};
  const ConfigValue sample = parse_toml(kSample, "t.toml");
  const int cases = 5000 * test::campaign_scale();
  for (int seed = 0; seed < cases; ++seed) {
    CAPTURE(seed);
    Mutator mutator(static_cast<uint64_t>(seed));
    ConfigValue root = sample;
    check_only_config_errors(
        [&] { apply_override(root, mutator.mutated(mutator.one_of(overrides))); });
  }
}

TEST_SUITE_END();
