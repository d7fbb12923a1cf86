"""The small words of English that change what a relation wording says, or do not."""

from kpyramid.extraction.normal import read_words

BE = frozenset("be am is are was were been being 's 're".split())
HAVE = frozenset("have has had having".split())
DO = frozenset("do does did".split())
MODALS = {
    **dict.fromkeys("can could may might".split(), "possible"),
    **dict.fromkeys("must ought should shall".split(), "duty"),
    **dict.fromkeys("will would".split(), "future"),
}
NEGATIONS = frozenset("not never n't neither nor no cannot none hardly scarcely".split())
DETERMINERS = frozenset(
    "a an the its his her their this that these those our my your some any every each".split()
)
PRONOUNS = frozenset("it he she they him them himself herself itself themselves".split())
PREPOSITIONS = frozenset(
    "of in at on to for with from by as into onto under over about against among between through "
    "during after before since until near off out up down across along around behind beside "
    "beyond upon within without toward towards like than per via inside outside above below "
    "throughout alongside amongst amid opposite and".split()
)
ALIKE = {
    "upon": "on",
    "within": "in",
    "inside": "in",
    "amongst": "among",
    "towards": "toward",
    "onto": "on",
    "whilst": "while",
    "alongside": "with",
    "mum": "mother",
    "mom": "mother",
    "dad": "father",
    "kid": "child",
    "kids": "child",
    "wives": "wife",
    "centre": "center",
    "headquarter": "headquarters",
    "programme": "program",
    "labour": "labor",
    "colour": "color",
    "honour": "honor",
    "neighbour": "neighbor",
    "neighbouring": "neighboring",
    "theatre": "theater",
    "defence": "defense",
    "offence": "offense",
    "licence": "license",
    "tumour": "tumor",
    "behaviour": "behavior",
    "catalogue": "catalog",
    "organisation": "organization",
    "organiser": "organizer",
    "organisers": "organizer",
    "favour": "favor",
}
"""Words of which one spelling or use stands for both."""

IRREGULAR = {"born": "bear", "lay": "lie", "founded": "found", "cofounded": "found", "dying": "die"}
"""Forms that a dictionary reads otherwise than relation wordings mean them."""
INVARIANT = frozenset(
    "set put cut hit run read spread split shut cast cost hurt let beat bet quit broadcast become "
    "overcome come burst rid shed forecast reset thrust upset".split()
)
"""Verbs whose past participle is the base form."""

HARMLESS = read_words(__file__, "words.toml")["harmless"]
"""Adverbs that leave the relation what it is."""
FORMER = frozenset("formerly previously once erstwhile".split())
FORMER_ADJECTIVES = frozenset("former ex erstwhile onetime one-time previous past late".split())
NEARLY = frozenset("almost nearly virtually practically roughly approximately".split())
PARTLY = frozenset("partly partially half barely rarely seldom sometimes occasionally".split())
POSSIBLY = frozenset(
    "possibly probably allegedly reportedly supposedly apparently perhaps maybe presumably "
    "purportedly ostensibly potentially likely seemingly arguably conceivably hypothetically "
    "alleged possible potential suspected reputed purported presumed probable supposed "
    "putative would-be aspiring".split()
)
JOINTLY = frozenset("jointly co".split())
GRADING = frozenset(
    "important significant prominent notable influential crucial eminent distinguished leading key "
    "major main primary principal chief central vital pivotal essential critical considerable "
    "substantial big large serious severe".split()
)
"""Adjectives that make a role greater: `a major cause of` says more than `a cause of`."""
EVALUATIVE = frozenset(
    "famous renowned celebrated noted current present incumbent well-known proud sitting dedicated "
    "acclaimed own very".split()
)
"""Adjectives before a noun that leave the relation what it is."""
SHARED_ROLES = frozenset(
    "founder creator author writer inventor developer designer owner organizer discoverer producer "
    "director composer builder architect editor".split()
)
"""Roles that several have together: `one of the founders of` says `a co-founder of`."""
SHARED_DEEDS = frozenset(
    "anchor author chair compose create design develop direct discover edit establish fund found "
    "headline host invent lead manage organize own produce publish sign sponsor star "
    "write".split()
)
"""What several do together: `coauthored`, but `coached` and `cooperated` are words of their own."""
PLACED_DEEDS = frozenset(
    "appear arrive base bear be bury crown die educate enrol enroll exhibit find graduate hold "
    "house keep land lecture live locate marry meet perform play practice rehearse reside sell "
    "serve settle show sign situate sleep spend stay stop store study teach train tutor work "
    "worship".split()
)
"""Deeds done in a place or at it: `studied in`, `studied at`, but not `laughed at`."""
HELD = frozenset("possession control charge care".split())
"""Nouns whose article turns the relation: `in possession of`, `in the possession of`."""
LATER = frozenset("later eventually subsequently ultimately".split())

RAISING = {
    **dict.fromkeys("continue proceed manage serve happen tend".split(), ""),
    **dict.fromkeys("seem appear".split(), "possible"),
    **dict.fromkeys(
        "plan intend want hope aim seek try attempt wish promise agree offer threaten "
        "propose prepare need".split(),
        "intended",
    ),
    **dict.fromkeys("help".split(), "helped"),
    **dict.fromkeys("fail refuse decline neglect".split(), "not"),
    **dict.fromkeys("cease stop".split(), "former"),
}
"""What a verb before `to` and a verb adds: `seems to cause`."""
RAISING_PASSIVE = {
    **dict.fromkeys(
        "say believe think suppose allege report rumour rumor consider assume suspect presume "
        "claim estimate".split(),
        "possible",
    ),
    **dict.fromkeys("know find show see prove demonstrate".split(), ""),
    **dict.fromkeys("expect schedule plan set project predict anticipate".split(), "future"),
}
"""The same of a passive or an adjective: `is believed to cause`."""
RAISING_ADJECTIVES = {
    **dict.fromkeys("likely thought".split(), "possible"),
    **dict.fromkeys("able".split(), "possible"),
    **dict.fromkeys("due about going".split(), "future"),
    **dict.fromkeys("unable unlikely".split(), "not"),
    **dict.fromkeys("obliged required".split(), "duty"),
}
COPULAS = frozenset("become remain".split())
ROLE_VERBS = frozenset("serve act function work double officiate count".split())
"""`serves as chair of` says `is the chair of`."""
APPOINT = frozenset(
    "appoint name elect choose select make crown install designate hire ordain".split()
)
"""`was appointed chair of` says that one became it."""
OFFICES = frozenset("office post position title role rank job".split())
"""`held the post of chair of` says `was the chair of`."""
LYING = frozenset(
    "located situated based found lying standing held set celebrated working serving".split()
)
"""Participles between a noun and its place: `is a mill located in`, `is a mill in`."""
LIGHT = frozenset(
    "make do take give have pay conduct carry perform provide undertake hold offer reach launch "
    "exert mount wage deliver bring lend express show render".split()
)
"""Verbs whose noun carries the meaning: `made a visit to`."""
LIGHT_PASSIVE = frozenset("undergo receive get obtain".split())
"""Verbs whose noun says what is done to the head: `underwent restoration`, `was restored`."""
SHOWING = frozenset("show exhibit display have demonstrate possess bear".split())
"""Verbs whose noun names a quality: `shows resistance to`, `is resistant to`."""
QUALITIES = (("ance", "ant"), ("ence", "ent"), ("ancy", "ant"), ("ency", "ent"), ("bility", "ble"))
"""Endings of such nouns and of their adjectives."""
JOINED = ("re", "pre", "un", "non", "anti", "sub", "over", "under", "inter", "multi", "out")
"""Prefixes that are written with the word: `re-elected`."""
