#pragma once

#include <functional>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "callbacks/core/checkpoint_options.h"
#include "callbacks/core/loop.h"
#include "callbacks/results.h"
#include "checkpoint/checkpoint_name.h"
#include "remote/remote_store.h"

namespace rondo {

/// Evaluates one loader, after loading a checkpoint where there is one.
/// \param own  a loop of the caller's; null for the Trainer's own
/// \return its metrics, with their scope; none when a stop left batches out
Metrics validate(Trainer& trainer,
                 const DataLoader& loader,
                 const LoadFrom& from,
                 ValidationLoop* own = nullptr);

/// Evaluates every loader with the newest checkpoint, and writes the table to validate_all.csv and
/// .json in the artifact directory. An empty table when a stop came before the end, and, with a
/// warning, when there is no loader.
/// \throws UsageError  when two loaders have one label
ValidationTable validate_all(Trainer& trainer, const Loaders& loaders);

/// Evaluates every loader with each of the checkpoints that `find` lists, while the next file is
/// read in the background. Rows go to `model_dir` as they come (ValidationResults), and those that
/// are known there are taken from there. A checkpoint that cannot be read, or does not fit, is
/// reported, and the rest go on.
/// \param find  asked again and again when new ones are waited for; an IoError then is none yet
/// \param own   a loop of the caller's, with which no row is taken from files; null for the
/// Trainer's \throws UsageError  for options out of range, and when two loaders have one label
ValidationTable validate_checkpoints(Trainer& trainer,
                                     const Loaders& loaders,
                                     const std::function<Paths()>& find,
                                     const ValidateAllOptions& options,
                                     ValidationLoop* own = nullptr);

/// The same for the checkpoints that match globs, of files and of the stores that the checkpoint
/// slot opens.
ValidationTable validate_matching(Trainer& trainer,
                                  const Loaders& loaders,
                                  const std::vector<std::string>& globs,
                                  ValidateAllOptions options,
                                  ValidationLoop* own = nullptr);

/// The files that match the globs, each once, by the number in their name, then by name. Wildcards
/// stand in the last component of a path only. A link is left out where its file matches as well.
/// \param run  how the run names its checkpoints
/// \throws IoError  naming the pattern that matches nothing
Paths matching_checkpoints(const std::vector<std::string>& globs,
                           const CheckpointName& run,
                           const OpenRemoteStore& open = open_remote_store);

/// The update that a file's name tells, as the run names its checkpoints; of another name the last
/// number before the extension; -1 when there is none.
int64_t step_in_name(const std::filesystem::path& path, const CheckpointName& run);

/// \name Parts of a `validate_all`
/// @{

/// True when there is a loader, or a callback that validates.
bool has_validations(const Trainer& trainer, const Loaders& loaders);

/// The scopes of the loaders' metrics, and of the callbacks' that validate.
std::vector<std::string> scopes_of(Trainer& trainer, const Loaders& loaders);

/// Evaluates every loader with the model as it is.
/// \param own  a loop of the caller's; null for the Trainer's own
ValidationRow evaluate_loaders(Trainer& trainer,
                               const Loaders& loaders,
                               ValidationLoop* own = nullptr);

/// What to load before an evaluation: nothing where the model comes from a fit of this Trainer and
/// no file is named.
LoadFrom to_evaluate(const Trainer& trainer, const LoadFrom& from);

/// Deals with weights that nobody trained, as `TrainerOptions::untrained` says; called after a
/// load. Weights count as trained when a file or a fit of this Trainer gave them. \param from  what
/// was loaded; nothing was asked for: any weights are meant \throws ConfigError  when they are
/// refused
void require_trained(const Trainer& trainer, const LoadFrom& from);

/// The hooks around `work`; what it throws leaves through their clean-ups.
void enter_validate_all(Trainer& trainer,
                        const Loaders& loaders,
                        const Paths& paths,
                        const std::function<void()>& work,
                        ValidationLoop* own = nullptr);

/// Writes the table into the artifact directory.
void write_table(const Trainer& trainer, const ValidationTable& table);

/// @}

}  // namespace rondo
