// rondo's command line with a model and a training step of one's own.

#include "gan.h"

#include <rondo/cli/cli_main.h>
#include <rondo/plugin.h>

int main(int argc, char** argv) {
  return rondo::cli_main(argc, argv, [](rondo::Registries& registry) {
    registry.models.add<Dcgan>("Dcgan", "A generator of pictures and a critic of them.")
        .key("image_size", &Dcgan::Options::image_size, rondo::at_least(4), "side, of 4 a multiple")
        .key("noise",
             &Dcgan::Options::noise,
             rondo::at_least(1),
             "numbers that a picture is made of")
        .key("width", &Dcgan::Options::width, rondo::at_least(1), "channels of the last layer");
    registry.steps.add<GanStep>("GanStep", "Trains a critic and a generator against each other.")
        .key("critic_updates",
             &GanStep::Options::critic_updates,
             rondo::at_least(1),
             "updates of the critic for one of the generator");
  });
}
