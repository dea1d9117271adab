import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tasks.errors import ParameterError
from tasks.params import load_params
from tests.conftest import CHECKOUT

TINY = CHECKOUT / "infra/profiles/tiny.yaml"
ACTIVE = CHECKOUT / "params.yaml"
PROFILES = sorted((CHECKOUT / "infra/profiles").glob("*.yaml"))


@pytest.mark.parametrize("path", [ACTIVE, *PROFILES], ids=lambda path: path.name)
def test_every_shipped_profile_parses_and_names_itself(path: Path) -> None:
    profile = load_params(path).profile
    assert path == ACTIVE or profile == path.stem


def test_the_active_profile_equals_tiny() -> None:
    assert load_params(ACTIVE) == load_params(TINY)


def test_the_papers_numbers() -> None:
    paper = load_params(CHECKOUT / "infra/profiles/qwen3-30b-a3b.yaml")
    limits = [
        (paper.rl.stages[name].max_input_tokens, paper.rl.stages[name].max_output_tokens)
        for name in ("stage1", "stage2", "stage3", "stage4")
    ]
    assert limits == [(32768, 12288), (61440, 20480), (122880, 51200), (122880, 51200)]
    assert paper.rl.stages["memory"].max_input_tokens == 131072
    assert (paper.memory.chunk_tokens, paper.memory.memory_tokens) == (32768, 15360)
    assert (paper.rl.batch_prompts, paper.rl.group_size, paper.rl.learning_rate) == (128, 8, 2e-6)
    assert (paper.rl.sampling.temperature, paper.rl.sampling.top_p) == (0.7, 0.95)


def test_every_number_of_the_paper_profile_has_a_comment() -> None:
    lines = (CHECKOUT / "infra/profiles/qwen3-30b-a3b.yaml").read_text("utf-8").splitlines()
    inside_commented_section = (
        "multiple_choice",
        "multi_hop",
        "reading_compre",
        "dialogue",
        "corpus_numeric",
        "stage",
    )
    bare = [
        line
        for line in lines
        if any(character.isdigit() for character in line)
        and "#" not in line
        and not line.strip().startswith(inside_commented_section)
    ]
    assert bare == ["profile: qwen3-30b-a3b"]


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("rl.group_size=8.5", ["rl.group_size = 8.5", "integer"]),
        ("rl.group_size=true", ["rl.group_size = True", "integer"]),
        ("rl.group_size='8'", ["rl.group_size = '8'", "integer"]),
        ("rl.group_size=1", ["rl.group_size = 1", "greater than or equal to 2"]),
        ("rl.learning_rate=fast", ["rl.learning_rate = 'fast'", "number"]),
        ("rl.learning_rate=true", ["rl.learning_rate = True", "write a number"]),
        ("rl.learning_rate=.inf", ["rl.learning_rate = inf", "finite"]),
        ("rl.learning_rate=.nan", ["rl.learning_rate = nan", "finite"]),
        ("rl.learning_rate=0", ["rl.learning_rate = 0", "greater than 0"]),
        ("rl.sampling.top_p=1.1", ["rl.sampling.top_p = 1.1", "less than or equal to 1"]),
        ("rl.entropy_control={low: 0.3, high: 0.3}", ["low = 0.3 must be below high = 0.3", "raise high"]),
        (
            "rl.entropy_control={low: 0.3, high: 0.2}",
            ["rl.entropy_control", "low = 0.3 must be below high = 0.2"],
        ),
        ("rl.clipping={type: sometimes}", ["rl.clipping", "'none', 'absolute', 'quantile'"]),
        ("rl.engine=trl", ["rl.engine = 'trl'", "'local' or 'verl'"]),
        ("rl.stages={}", ["rl", "stage1, stage2, stage3, memory, stage4", "needs its limits"]),
        ("rl.stages.stage1.max_input_tokens=4096", ["[4096, 256, 512]", "must not shrink"]),
        ("rl.domain_weights={poetry: 1.0}", ["rl.domain_weights", "'poetry'", "'multi_hop'"]),
        ("rl.domain_weights={multi_hop: 0.0}", ["domain_weights are all 0"]),
        ("rl.domain_weights={multi_hop: -1.0}", ["rl.domain_weights.multi_hop = -1.0"]),
        ("synthesis.min_documents=4", ["synthesis", "min_documents = 4 exceeds max_hops = 3", "raise max_hops"]),
        ("synthesis.writer={type: telepathy}", ["synthesis.writer", "'grammar', 'openai', 'transformers', 'vllm'"]),
        (
            "synthesis.writer={type: vllm, model: m, context_tokens: 1024, max_output_tokens: 600}",
            ["max_output_tokens = 600 takes more than half of context_tokens = 1024", "the prompt needs room"],
        ),
        ("synthesis.writer={type: openai, base_url: 'http://user:pw@host/v1'}", ["synthesis.writer", "base_url"]),
        ("execution.workers=4", ["unknown key 'workers'"]),
        (
            "execution={type: ray, sampler: vllm, address: null, workers: 0, gpus_per_worker: 1}",
            ["execution", "workers"],
        ),
        ("filtering.contamination_ngram=2", ["filtering.contamination_ngram = 2", "greater than or equal to 4"]),
        ("memory.window=200", ["memory", "= 240 exceeds window = 200", "shrink the chunk"]),
        ("memory.chunk_tokens=0", ["memory.chunk_tokens = 0", "greater than or equal to 1"]),
        ("corpus.test_share=0.9", ["development_share + test_share = 1.0", "lower one"]),
        ("seed=-1", ["seed = -1", "greater than or equal to 0"]),
        ("tracking.experiment=''", ["tracking.experiment", "at least 1 character"]),
        ("rl={}", ["rl.engine is missing", "infra/profiles/"]),
        ("rl=null", ["rl = None"]),
    ],
)
def test_a_wrong_value_is_refused_by_name_and_rule(override: str, named: list[str]) -> None:
    with pytest.raises(ParameterError) as caught:
        load_params(TINY, (override,))
    for part in named:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("rl.group_sise=4", ["unknown key 'group_sise'", "group_size"]),
        ("reinforcement.group_size=4", ["'reinforcement' is no section", "rl"]),
        ("seed.value=1", ["'seed' is no section"]),
        ("rl.group_size", ["not of the form key.sub=value"]),
        ("=4", ["not of the form key.sub=value"]),
        ("rl.sampling={temperature: 1", ["not YAML"]),
        (
            "rl.sampling={temperature: 1.0, top_p: 1.0, top_k: 5}",
            ["rl.sampling.top_k is no parameter", "top_p"],
        ),
    ],
)
def test_a_bad_override_is_refused(override: str, named: list[str]) -> None:
    with pytest.raises(ParameterError) as caught:
        load_params(TINY, (override,))
    for part in named:
        assert part in str(caught.value)


def test_overrides_apply_in_order_and_read_yaml() -> None:
    changed = load_params(TINY, ("rl.group_size=4", "rl.group_size=6", "rl.learning_rate=2e-6", "corpus.folder=mine"))
    assert (changed.rl.group_size, changed.rl.learning_rate, changed.corpus.folder) == (6, 2e-6, "mine")
    assert load_params(TINY, ("rl.entropy_control=null",)).rl.entropy_control is None


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (None, ["does not exist", "--params FILE"]),
        (b"", ["holds NoneType"]),
        (b"- a\n- b\n", ["holds list"]),
        (b"profile: [\n", ["not readable YAML"]),
        (b"profile: caf\xe9\n", ["not readable YAML", "utf-8"]),
        (b"profile: a\x00b\n", ["not readable YAML"]),
        (b"seed: 1\nseed: 2\n", ["'seed' is given twice"]),
        (b"profile: !!python/name:os.system x\n", ["not readable YAML"]),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, content: bytes | None, named: list[str]) -> None:
    path = tmp_path / "params.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ParameterError) as caught:
        load_params(path)
    for part in (str(path), *named):
        assert part in str(caught.value)


def test_a_folder_is_no_parameter_file(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="not readable YAML"):
        load_params(tmp_path)


@pytest.mark.parametrize(
    ("section", "key", "named"),
    [
        ("rl", "group_sise", "rl.group_sise is no parameter here; did you mean group_size?"),
        ("rl", "chunk_tokens", "rl.chunk_tokens is no parameter here"),
        ("memory", "zzz", "memory.zzz is no parameter here; remove it"),
    ],
)
def test_an_unknown_key_in_a_file_is_refused(tmp_path: Path, section: str, key: str, named: str) -> None:
    tree = yaml.safe_load(TINY.read_text("utf-8"))
    tree[section][key] = 1
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(tree), "utf-8")
    with pytest.raises(ParameterError) as caught:
        load_params(tmp_path / "params.yaml")
    assert named in str(caught.value)


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(ParameterError) as caught:
        load_params(TINY, ("seed=-1", "threads=0"))
    assert "seed = -1" in str(caught.value)
    assert "threads = 0" in str(caught.value)


def test_parameters_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_params(TINY).seed = 1  # type: ignore[misc]


def test_parameters_load_without_heavy_libraries() -> None:
    code = (
        "import sys; from pathlib import Path; from tasks.params import load_params; "
        "load_params(Path('params.yaml')); "
        "print(sorted({'torch', 'mlflow', 'transformers', 'prefect', 'pyarrow'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_a_rule_over_the_whole_file_is_named_without_an_empty_key():
    overrides = ("rl.engine=verl", "cluster.gpus_per_node=4", "rl.batch_prompts=5", "rl.group_size=3")
    with pytest.raises(ParameterError, match=r"params\.yaml: rl\.batch_prompts × rl\.group_size = 15 rows") as caught:
        load_params(CHECKOUT / "params.yaml", overrides)
    assert "4 data-parallel groups" in str(caught.value)


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("cluster.nodes=2", "set nodes to 1"),
        ("cluster.rollout_tensor_parallel=2", "not divisible by rollout_tensor_parallel = 2"),
        ("cluster.backend.sequence_parallel=3", "parallel sizes = 3"),
        ("cluster.checkpoint_uri=bucket/prefix", "cluster.checkpoint_uri"),
        ("cluster.backend.type=megatron", "cluster.backend"),
        ("cluster.rollout_memory_share=1.0", "less than 1"),
    ],
)
def test_a_cluster_that_does_not_divide_is_refused(override, complaint):
    with pytest.raises(ParameterError, match=complaint):
        load_params(CHECKOUT / "params.yaml", (override,))


def test_a_password_in_the_tracking_address_is_refused_without_repeating_it():
    with pytest.raises(ParameterError, match="MLFLOW_TRACKING_PASSWORD") as caught:
        load_params(CHECKOUT / "params.yaml", ("tracking.uri=http://user:geheim@host:5000",))
    assert "geheim" not in str(caught.value)
