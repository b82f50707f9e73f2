#!/usr/bin/env bash
# Builds, tests and times rondo on a machine with a GPU: PyTorch (in `python3`), CUDA, CMake and Ninja, none
# of rondo's other dependencies, no network. `tests/gpu/pack.sh` made tests/gpu/deps before.
#
#   tests/gpu/run.sh --out DIR [STAGE…]        (build equal resume bench-small)
#
# Stages, each ended after three minutes:
#   build        what the others need; going on where an earlier call was ended
#   equal        traced runs equal eager ones bit for bit: models, optimizers, precisions
#   resume       resumed runs equal uninterrupted ones, also after kills
#   sanitize     compute-sanitizer on a small traced run
#   bench-small  tiny, mlp and cnn: rondo beside a loop and a graph by hand
#   bench-gpt    gpt, gptbig and a GPT of 124 M parameters in bf16
#   peers        the same beside PyTorch (as written, as a CUDA graph, compiled), Lightning and JAX
#   cpu          the peers on the processor
#
# DIR gets log.txt, what all stages printed, and bench.jsonl, a line for each time that was taken.
#
# RONDO_BUILD_DIR  where to build (build-gpu/ in the repository)
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${RONDO_BUILD_DIR:-$root/build-gpu}
deps=$root/tests/gpu/deps/usr
limit=180
out=""
stages=()
while (($#)); do
  case $1 in
    --out) out=${2:-}; shift ;;
    build | equal | resume | sanitize | bench-small | bench-gpt | peers | cpu) stages+=("$1") ;;
    *) echo "run.sh: no stage \"$1\"" >&2; exit 2 ;;
  esac
  shift
done
[[ $out ]] || { echo "usage: tests/gpu/run.sh --out DIR [STAGE…]" >&2; exit 2; }
[[ ${#stages[@]} -gt 0 ]] || stages=(build equal resume bench-small)
mkdir -p "$out" || exit 1
log=$out/log.txt

torch_dir() { python3 -c 'import torch; print(torch.utils.cmake_prefix_path)'; }

# An rpath of the old kind is also searched for what the packed libraries need themselves.
configure() {
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$deps;$(torch_dir)" \
    -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags -DCMAKE_SHARED_LINKER_FLAGS=-Wl,--disable-new-dtags \
    -DRONDO_WITH_TENSORBOARD=OFF -DRONDO_BUILD_EXAMPLES=OFF
}

run_build() {
  [[ -f $build/build.ninja ]] || configure || return 1
  ninja -C "$build" gpu_tests step_bench rondo_cli rondo-engine
}

run_equal() { "$build/tests/gpu/gpu_tests" -tc='*equals the eager one*,*another device*,bf16*' -d; }

run_resume() {
  "$build/tests/gpu/gpu_tests" -tc='*is resumed*' -d || return 1
  "$build/bin/rondo" verify-resume "$root/configs/recipes/quickstart.toml" -o "$out/../verify-resume" --kills=5 \
    trainer.init.backend.device=cuda 'trainer.init.loggers=[{JsonlLogger=true}]'
}

run_sanitize() {
  if ! command -v compute-sanitizer >/dev/null; then
    echo "skipped: there is no compute-sanitizer"
    return
  fi
  compute-sanitizer --error-exitcode 9 "$build/tests/gpu/gpu_tests" -tc='*with its schedule' >"$out/sanitizer.txt" 2>&1
  local code=$?
  if grep -q 'Device not supported' "$out/sanitizer.txt"; then
    echo "skipped: compute-sanitizer does not support this device"
    return
  fi
  tail -n 20 "$out/sanitizer.txt"
  return $code
}

# bench STEPS PRECISION WORKLOAD…: all contenders in turns, then each alone for its memory (device_peak_bytes).
bench() {
  local steps=$1 precision=$2 workload contender
  shift 2
  for workload in "$@"; do
    "$build/bench/step_bench" --device=cuda --workload="$workload" --precision="$precision" --steps="$steps" \
      --rounds=5 --backend libtorch graph eager traced fit | tee -a "$out/bench.jsonl" || return 1
    for contender in graph traced; do
      "$build/bench/step_bench" --device=cuda --workload="$workload" --precision="$precision" --steps=20 \
        --rounds=1 --backend "$contender" | tee -a "$out/bench.jsonl" || return 1
    done
  done
}

run_bench-small() { bench 400 fp32 tiny mlp cnn; }

run_bench-gpt() { bench 100 fp32 gpt gptbig && bench 20 bf16 gpt124m; }

# Compiling is what takes long: kernels are chosen by time for two workloads only.
run_peers() {
  local workload more
  for workload in tiny mlp cnn gpt gptbig; do
    more=()
    [[ $workload == mlp || $workload == gpt ]] && more=(--peer=pytorch-autotune)
    [[ $workload == tiny || $workload == mlp ]] && more+=(--peer=jax --peer=lightning)
    python3 "$root/bench/peers/peers_bench.py" --device=cuda --workload="$workload" --steps=200 --rounds=2 \
      --step-bench="$build/bench/step_bench" --peer=pytorch --peer=pytorch-graph --peer=pytorch-compile \
      "${more[@]}" | tee -a "$out/bench.jsonl" || return 1
  done
}

run_cpu() {
  local workload
  for workload in mlp gpt cnn; do
    python3 "$root/bench/peers/peers_bench.py" --workload="$workload" --rounds=3 \
      --step-bench="$build/bench/step_bench" | tee -a "$out/bench.jsonl" || return 1
  done
}

export RONDO_TEST_DEVICES=cuda  # not the simulated one
export -f torch_dir configure bench
export root build deps out
status=0
{ nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; nproc; } 2>&1 | tee -a "$log"
for stage in "${stages[@]}"; do
  begin=$SECONDS
  export -f "run_$stage"
  timeout "$limit" bash -uo pipefail -c "run_$stage" 2>&1 | tee -a "$log"
  code=${PIPESTATUS[0]}
  ((code == 0)) || status=1
  echo "== $stage: $((SECONDS - begin)) s, exit code $code" | tee -a "$log"
done
exit $status
