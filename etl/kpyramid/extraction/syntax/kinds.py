"""Kind nouns: what "X is a <noun>" tells about X, and which nouns call the same thing back."""

from __future__ import annotations

# Nouns of people that end in none of the agent suffixes: kin, rank and office, callings.
PERSON_NOUNS = frozenset(
    (
        "person man woman boy girl child kid baby infant adult teenager youth lady gentleman guy "
        "son daughter brother sister father mother wife husband uncle aunt cousin nephew "
        "niece twin sibling grandson granddaughter grandfather grandmother widow widower bride "
        "friend colleague rival enemy ally partner spouse heir heiress orphan "
        "king queen prince princess duke duchess earl count countess baron baroness lord knight "
        "noble nobleman noblewoman monarch sultan shah tsar pharaoh chief chieftain regent "
        "president vice-president premier minister chancellor mayor sheriff judge magistrate "
        "diplomat politician statesman official deputy delegate attorney advocate clerk secretary "
        "pope cardinal bishop archbishop abbot abbess priest monk nun saint rabbi imam prophet "
        "apostle deacon cleric martyr mystic hermit theologian "
        "general colonel major captain lieutenant sergeant admiral marshal soldier guard veteran "
        "spy pilot astronaut cosmonaut sniper pirate outlaw criminal thief fugitive convict "
        "poet novelist artist musician singer-songwriter guitarist soprano tenor baritone bassist "
        "rapper dj deejay virtuoso cellist actress comic comedian comedienne star celebrity model "
        "playwright screenwriter dramatist essayist journalist columnist critic scribe bard "
        "athlete coach goalkeeper goaltender quarterback linebacker cornerback forward midfielder "
        "centre-back full-back winger striker champion medalist medallist swordsman gymnast jockey "
        "mathematician physicist chemist scholar academic scientist student pupil graduate "
        "alumnus alumna professor lecturer teacher physician surgeon nurse dentist architect "
        "mechanic technician magician chef cook butcher peasant serf slave hero heroine villain "
        "merchant businessman businesswoman tycoon magnate entrepreneur philanthropist activist "
        "native citizen resident immigrant refugee emigrant ambassador envoy witness patriot "
        "hostess stewardess sculptress poetess governess seamstress priestess "
        "founder pioneer polymath genius sage laureate recipient nominee member"
    ).split()
)
_PERSON_ENDINGS = ("er", "or", "ist", "ian", "man", "woman", "eer")
# Words with an agent suffix that name no person.
_NOT_PERSON_NOUNS = frozenset(
    (
        "river number order chapter letter paper tower center centre border water power theater "
        "theatre newspaper computer sector factor motor layer corner "
        "fiber laser lever timer toner tumor wafer wager vigor valor rumor rotor sewer joker ether "
        "metre litre diner caper alder adder ember arbor other minor favor favour odour rigor "
        "quarter charter cluster thriller winter summer december november october "
        "september disorder cancer fever chamber transfer matter manner register container "
        "crater glacier border header folder cover offer error mirror vector tensor reactor "
        " processor monitor sensor color colour flavor flavour harbor harbour floor "
        "door manor anchor armor honor labor labour vapor humor terror horror tremor interior "
        "exterior corridor indicator generator elevator equator creditor "
        " career frontier pier tier tanker "
        "bomber freighter cruiser destroyer fighter steamer trawler schooner helicopter starter "
        "trailer poster banner counter meter parameter diameter thermometer filter shelter "
        "shoulder finger liver bladder feather leather weather copper silver timber rubber "
        "amber fiber fibre spider tiger panther badger hamster lobster oyster flower clover cedar "
        "juniper pepper ginger butter dinner supper burger cider litter gender answer wonder "
        "anger danger hunger murder encounter semester trimester "
        " reminder remainder cylinder ladder rudder powder "
        "quaver opener roadster scooter dragster mixer amplifier "
        "identifier modifier barrier carrier terrier soccer poker "
        "snooker shooter sampler retainer headquarter "
        "median asterisk checklist tracklist playlist shortlist mist twist "
        "list waist wrist fist heist consist resist assist talisman roman german "
        "ottoman meridian obsidian amphibian reptilian canyon"
    ).split()
)

LABEL_NOUNS: dict[str, frozenset[str]] = {
    "GPE": frozenset(
        (
            "town village city hamlet municipality community commune borough suburb country state "
            "nation province county district settlement locality capital township parish "
            "prefecture republic kingdom empire neighborhood neighbourhood arrondissement canton "
            "governorate oblast raion territory colony metropolis"
        ).split()
    ),
    "LOC": frozenset(
        (
            "river lake stream creek brook waterfall falls tributary reservoir sea ocean bay gulf "
            "strait lagoon fjord mountain mount peak hill volcano ridge range plateau valley "
            "canyon glacier desert forest island islet archipelago peninsula cape continent region "
            "headland beach reef crater moon planet asteroid galaxy swamp marsh basin"
        ).split()
    ),
    "FAC": frozenset(
        (
            "building bridge tower castle palace church cathedral chapel abbey mosque temple "
            "stadium arena airport airfield station railway highway road street avenue motorway "
            "tunnel canal dam museum library theatre theater hospital prison cemetery house "
            "mansion hotel skyscraper lighthouse fort fortress monument park garden mill"
        ).split()
    ),
    "ORG": frozenset(
        (
            "company corporation firm business organization organisation "
            "institution agency association charity foundation bank airline university college "
            "school academy institute band group duo trio quartet orchestra choir club team side "
            "league party union federation committee council ministry department bureau brand "
            "label network channel newspaper regiment "
            "battalion squadron brigade government studio subsidiary"
        ).split()
    ),
    "WORK_OF_ART": frozenset(
        (
            "film movie documentary comedy drama sitcom thriller western musical series show "
            "episode album ep single song track ballad compilation soundtrack novel novella book "
            "play opera operetta ballet symphony concerto poem sonnet painting sculpture story "
            "anthology memoir autobiography trilogy sequel game video-game videogame manga anime "
            "magazine journal "
        ).split()
    ),
    "EVENT": frozenset(
        (
            "battle war siege tournament championship competition festival election "
            "olympics ceremony conference riot rebellion revolt revolution earthquake hurricane "
            "storm flood massacre bombing race season match"
        ).split()
    ),
}
"""Nouns by the entity type of what they name, in spaCy's labels."""

LABEL_BY_NOUN = {noun: label for label, nouns in LABEL_NOUNS.items() for noun in sorted(nouns)}

_ANY_PLACE = frozenset({"GPE", "LOC", "FAC"})
GENERIC_NOUNS: dict[str, frozenset[str]] = {
    **dict.fromkeys("area place feature site location spot landmark".split(), _ANY_PLACE),
    **dict.fromkeys(
        "work piece publication production picture title".split(), frozenset({"WORK_OF_ART"})
    ),
    **dict.fromkeys("outfit body entity".split(), frozenset({"ORG"})),
}
"""Nouns that can call back anything of some types: "this area"."""

# Words by which a text calls its subject back, by the kind it was said to be.
_SYNONYMS = (
    frozenset(
        "town village hamlet municipality community commune settlement locality suburb".split()
    ),
    frozenset("city town municipality metropolis capital".split()),
    frozenset("country state nation republic kingdom".split()),
    frozenset("film movie drama comedy thriller documentary western musical picture".split()),
    frozenset("series show sitcom drama comedy program programme".split()),
    frozenset("album record ep release compilation soundtrack".split()),
    frozenset("song single track ballad".split()),
    frozenset("company firm corporation business manufacturer airline bank".split()),
    frozenset("band group ensemble duo trio quartet".split()),
    frozenset("club team side".split()),
    frozenset("novel book novella memoir autobiography anthology biography textbook".split()),
    frozenset("waterfall falls cascade".split()),
    frozenset("castle palace fortress fort".split()),
    frozenset("airport airfield".split()),
    frozenset("hotel inn".split()),
    frozenset("school university college academy institution".split()),
    frozenset("organization organisation association charity foundation".split()),
    frozenset("river stream creek tributary".split()),
    frozenset("mountain peak summit".split()),
    frozenset("building structure house church".split()),
    frozenset("game video-game videogame title".split()),
    frozenset("magazine journal newspaper publication periodical paper".split()),
)
_ALIKE: dict[str, frozenset[str]] = {
    word: frozenset().union(*(s for s in _SYNONYMS if word in s))
    for word in sorted(frozenset().union(*_SYNONYMS))
}

_FEMALE = frozenset(
    (
        "woman girl lady daughter sister mother wife aunt niece granddaughter grandmother widow "
        "bride heiress queen princess duchess countess baroness noblewoman abbess nun actress "
        "comedienne heroine businesswoman alumna empress goddess waitress soprano mrs ms miss "
        "madame dame sportswoman"
    ).split()
)
_MALE = frozenset(
    (
        "man boy gentleman son brother father husband uncle nephew grandson grandfather widower "
        "king prince duke earl baron lord nobleman sultan shah tsar pope abbot monk priest "
        "businessman alumnus emperor god waiter baritone tenor mr sir swordsman statesman "
        "sportsman"
    ).split()
)


def is_person_noun(word: str) -> bool:
    """Whether a common noun denotes a person, by list and by agent suffix."""
    if word in PERSON_NOUNS:
        return True
    return (
        len(word) > 4
        and word.endswith(_PERSON_ENDINGS)
        and word not in _NOT_PERSON_NOUNS
        and word not in LABEL_BY_NOUN
    )


def find_kind_label(word: str) -> str | None:
    """The entity type of what a kind noun names, in spaCy's labels; None when it is open."""
    label = LABEL_BY_NOUN.get(word)
    return label if label is not None else "PERSON" if is_person_noun(word) else None


def list_alike(word: str) -> frozenset[str]:
    """The kind nouns by which `word` may call a thing back, itself among them."""
    return _ALIKE.get(word, frozenset()) | {word}


def find_gender(word: str) -> str | None:
    """The gender, "f" or "m", of a noun or title that tells, else None."""
    return "f" if word in _FEMALE else "m" if word in _MALE else None
