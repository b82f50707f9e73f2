#include "callbacks/builtin/verify_numerics.h"

#include <filesystem>
#include <string>

#include "core/registry.h"
#include "core/report_file.h"
#include "tracing/traced_backend.h"
#include "trainer/trainer.h"

namespace rondo {

Instruments VerifyNumerics::instruments() const {
  Instruments wanted;
  wanted.compares_operators = true;
  return wanted;
}

void VerifyNumerics::on_fit_end(Trainer& trainer, Loop&) {
  const auto* const backend = dynamic_cast<const TracedBackend*>(trainer.state().backend.get());
  if (backend == nullptr || backend->comparisons().empty()) {
    trainer.log().warning(
        "VerifyNumerics has nothing to write: it compares the second replay of recorded steps, and "
        "there was none");
    return;
  }
  const std::filesystem::path folder = trainer.state().artifact_dir / "numerics";
  for (const ComparedStep& step : backend->comparisons()) {
    const std::string text = to_text(step);
    write_report(trainer.log(), folder / (step.step + ".txt"), text);
    write_report(trainer.log(), folder / (step.step + ".json"), to_json(step));
    trainer.log().info(text.substr(0, text.find(" by operator\n")));
  }
}

void register_verify_numerics(Registry<Callback>& registry) {
  registry.add<VerifyNumerics>(
      "VerifyNumerics", "Compares replays with the steps as recorded, operator by operator.");
}

}  // namespace rondo
