"""Words for keys and lists: our own and the haystack's, where RULER takes wonderwords and a list of English words."""

import random
import re
from collections.abc import Iterator, Sequence
from itertools import product

ADJECTIVES = (
    "amber ancient bitter bold brave bright broad busy calm careful cheerful clean clever cold cosy crisp curious "
    "damp dark deep dizzy dry dusty eager early easy faint famous fancy fierce fine fluffy fond fresh friendly "
    "frosty gentle giant glad golden grand green grumpy handy happy heavy hollow honest huge humble hungry icy "
    "jolly keen kind large lazy light lively lonely loud lucky mellow merry mild modern narrow neat noble odd old "
    "pale patient plain polite proud pure quick quiet rapid rare ready rough round royal rusty salty sharp shiny "
    "short shy silent silver simple sleepy slow small smooth soft solid sour spare steady stout strange strong "
    "sturdy sunny sweet swift tall tame tidy tiny tough vast vivid warm weary wild wise witty young"
).split()
NOUNS = (
    "acorn anchor apple arrow badge badger bakery balcony barrel basket beacon beaver bell bench blanket boat book "
    "bottle branch brick bridge broom bucket button cabin camel candle canyon carpet castle cellar chair cherry "
    "chimney circle clock cloud clover comet compass cottage cradle crane cricket crown cup curtain daisy desk "
    "donkey door dragon drum eagle elbow engine feather fence ferry field finger flag flute forest fossil fountain "
    "fox garden gate glacier glove goat guitar hammer harbour hat hedge heron hill honey horse island jacket jar "
    "kettle key kite ladder lake lamp lantern leaf lemon letter lighthouse lion lizard magnet map market meadow "
    "mirror mitten mountain mushroom napkin needle nest notebook oak ocean olive orchard otter oven owl paddle "
    "palace parcel path peach pebble pencil piano pigeon pillow planet plate pocket pond potato puddle puzzle quilt "
    "rabbit raft ribbon river robin rope saddle sail sandal school seed shell shoulder shovel spoon stable station "
    "stone stove string sunset swan table teapot thimble thread tiger tower trail tree trumpet tunnel turtle valley "
    "vase village violin wagon walnut wave whistle willow window winter wolf"
).split()
_PLAIN = re.compile(r"[a-z]{3,12}")
_SYLLABLES = [consonant + vowel for consonant, vowel in product("bdfgklmnprstvz", "aeiou")]


def key(rng: random.Random) -> str:
    """An adjective and a noun, as in "brave-otter"; there are about 27,000."""
    return f"{rng.choice(ADJECTIVES)}-{rng.choice(NOUNS)}"


def vocabulary(haystack: Sequence[str]) -> list[str]:
    """The plain lower-case words of a text and of the lists above, by alphabet."""
    return sorted({word for word in haystack if _PLAIN.fullmatch(word)} | {*ADJECTIVES, *NOUNS})


def different_words(known: Sequence[str], rng: random.Random) -> Iterator[str]:
    """Different words without end: all known ones in random order, then coined ones such as "talimo"."""
    yield from rng.sample(known, len(known))
    seen = set(known)
    while True:
        word = "".join(rng.choices(_SYLLABLES, k=3 if len(seen) < 100_000 else 4))
        if word not in seen:
            seen.add(word)
            yield word
