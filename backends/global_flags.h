#pragma once

namespace rondo {

class Fingerprint;

/// Adds LibTorch's switches that change which operators the same code calls, or the bits that
/// operators give: autocast, grad mode, deterministic algorithms, default dtype, threads,
/// libraries.
void add_global_flags(Fingerprint& fingerprint);

}  // namespace rondo
