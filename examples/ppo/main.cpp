// rondo's command line with an agent that learns to swing up a pendulum.

#include "ppo.h"

#include <rondo/cli/cli_main.h>
#include <rondo/plugin.h>

int main(int argc, char** argv) {
  return rondo::cli_main(argc, argv, [](rondo::Registries& registry) {
    using Agent = ActorCritic::Options;
    registry.models.add<ActorCritic>("ActorCritic", "A policy, and an estimate of what it gains.")
        .key("observations", &Agent::observations, rondo::at_least(1), "numbers that are seen")
        .key("actions", &Agent::actions, rondo::at_least(1), "numbers that are done")
        .key("width", &Agent::width, rondo::at_least(1), "hidden units");
    using Data = Episodes::Options;
    registry.datasets.add<Episodes>("Episodes", "What the agent lives through in pendulums.")
        .key("environments", &Data::environments, rondo::at_least(1), "pendulums side by side")
        .key("steps", &Data::steps, rondo::at_least(1), "that are played in each of them")
        .key("repeats", &Data::repeats, rondo::at_least(1), "how often a step is learnt from")
        .key("discount", &Data::discount, rondo::between(0, 1), "of a reward one step later")
        .key("smoothing", &Data::smoothing, rondo::between(0, 1), "of advantages over steps")
        .key("reward_scale", &Data::reward_scale, rondo::greater_than(0), "factor of rewards")
        .key("seed", &Data::seed, "of the episodes");
    registry.callbacks.add<Player>("Player", "Has the agent play what it is trained on.");
    using Step = PpoStep::Options;
    registry.steps.add<PpoStep>("PpoStep", "Proximal policy optimization.")
        .key("clip", &Step::clip, rondo::greater_than(0), "how far an action's odds change at once")
        .key("value_weight", &Step::value_weight, rondo::at_least(0), "of the estimate's loss")
        .key("entropy_weight", &Step::entropy_weight, rondo::at_least(0), "of trying more");
  });
}
