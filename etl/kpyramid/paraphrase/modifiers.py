"""Words before a noun with which it is still what it is alone: `French city in`, `city in`.

Only known ones count. Any other may take the noun back (`fictional`, `proposed`, `rival`, `second`)
or name another office (`deputy`, `art director of`). In base form, as frames spell them.
"""

from collections.abc import Sequence

from kpyramid.paraphrase.words import PREPOSITIONS

_ORDINALS = frozenset("second third fourth fifth sixth seventh eighth ninth tenth".split())
_SUPERLATIVES = frozenset(
    "best biggest busiest deepest earliest easternmost eldest greatest highest largest latest "
    "longest lowest most newest northernmost oldest poorest richest shortest smallest "
    "southernmost strongest tallest wealthiest westernmost widest youngest".split()
)
_NATIONS = frozenset(
    "african albanian algerian american arab argentine argentinian armenian asian australian "
    "austrian bavarian belgian bengali bolivian bosnian brazilian british bulgarian cambodian "
    "canadian catalan chilean chinese colombian croatian cuban cypriot czech danish dutch "
    "egyptian english estonian ethiopian european finnish flemish french georgian german ghanaian "
    "greek hungarian icelandic indian indonesian iranian iraqi irish israeli italian jamaican "
    "japanese jewish jordanian kazakh kenyan korean kurdish latvian lebanese libyan lithuanian "
    "malaysian mexican mongolian moroccan nepali nigerian norwegian pakistani palestinian persian "
    "peruvian philippine polish portuguese prussian romanian russian saudi scottish serbian "
    "singaporean slovak slovene slovenian somali soviet spanish sudanese swedish swiss syrian "
    "taiwanese thai tibetan tunisian turkish ukrainian vietnamese welsh yugoslav".split()
)
_QUALITIES = frozenset(
    "active beautiful beloved brilliant busy cheap common dangerous devout effective expensive "
    "experience female hereditary influential lifelong local long loyal male modern "
    "native new only permanent poor popular populous powerful professional prolific proud rare "
    "rich safe senior short skill small sole strong successful talented tiny unique valuable "
    "wealthy young".split()
)
"""Whoever is a young member is a member."""
_KINDS = frozenset(
    "agricultural ancient aquatic army art baseball basketball beach bible border botanical "
    "boy business catholic christian church coal coastal college commercial community computer "
    "concert cotton country cricket day desert economic educational elementary family farm film "
    "fishing folk football forest freshwater game garden gas girl glacial golf government harbor "
    "health high historic history hockey holiday hospital industrial inland insurance island jazz "
    "jewelry judicial junior kindergarten lake language law legislative liberal library luxury "
    "manufacturing marine maritime market medical medieval metal metro metropolitan military "
    "mining mountain municipal music national natural naval news nonprofit nuclear nursing "
    "oil old opus orthodox park parliamentary passenger perform petroleum police political pop "
    "port primary prison private protestant provincial public punk radio rail railroad railway "
    "regional religious republican research residential resort retail river road rock royal rugby "
    "rural sandy school science scientific seaport secondary shop ski soccer soul sport steel "
    "studio suburban subway swim technical technology television tennis theater theological "
    "tourist town trade train transport tropical university urban volcanic wildlife wine winter "
    "woman zoological".split()
)
"""Fields, materials and kinds of places: only before a noun whose tail is its place or maker, for
`the cultural capital of` is no capital and `the art director of` did not direct."""
_PLACED = frozenset("in at on near by from along".split())


def keep_noun(modifiers: Sequence[str], noun: Sequence[str]) -> bool:
    """Whether what the words and the noun say together is a case of what the noun says.

    `noun` is the rest of the key, with its preposition: `city in`.
    """
    if not _SUPERLATIVES.isdisjoint(noun[:-1]):
        return False
    known = _SUPERLATIVES | _NATIONS | _QUALITIES
    if noun[-1] in _PLACED:
        known |= _KINDS
    following = [*modifiers, noun[0]][1:]
    return PREPOSITIONS.isdisjoint(modifiers) and all(
        word.casefold() in known or (word in _ORDINALS and after in _SUPERLATIVES)
        for word, after in zip(modifiers, following, strict=True)
    )
