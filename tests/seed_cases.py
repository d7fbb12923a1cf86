"""What the checks and shapes of the seed ontologies are for, and what their samples answer."""

from collections.abc import Mapping

PLANTED: Mapping[str, str] = {
    "academic-born-after-death": ":a kpa:birthYear 1900 ; kpa:deathYear 1890 .",
    "academic-cites-itself": ":w kpa:cites :w .",
    "academic-founded-before-founder-born": (
        ":f kpa:birthYear 1900 . :f kpa:founded :o . :o kpa:foundingYear 1899 ."
    ),
    "academic-graduated-after-death": ":a kpa:deathYear 1950 ; kpa:graduationYear 1951 .",
    "academic-graduated-too-young": ":a kpa:birthYear 1950 ; kpa:graduationYear 1956 .",
    "academic-own-advisor": ":a kpa:advisor :b . :a kpa:advised :b .",
    "academic-part-of-itself": ":a kpa:partOf :b . :a kpa:hasPart :b .",
    "academic-published-before-author-born": (
        ":a kpa:birthYear 1900 ; kpa:wrote :w . :w kpa:publicationYear 1890 ."
    ),
    "finance-buys-itself": ":a kpf:acquired :a .",
    "finance-founded-after-listing": ":a kpf:foundingYear 1990 ; kpf:listingYear 1980 .",
    "finance-lends-to-itself": ":l kpf:lender :a . :a kpf:owes :l .",
    "finance-owns-itself": ":a kpf:owns :b . :b kpf:owns :c . :a kpf:owner :c .",
    "finance-profit-is-loss": ":a kpf:profit 5.0 ; kpf:loss 5.0 .",
    "finance-regulated-by-the-regulated": ":a kpf:regulates :b . :a kpf:regulatedBy :b .",
    "finance-spun-off-in-a-circle": ":a kpf:spunOffFrom :b . :b kpf:spunOffFrom :a .",
    "general-born-after-death": ":a kpg:birthYear 1900 ; kpg:deathYear 1890 .",
    "general-date-and-year-differ": (
        ":a kpg:birthDate '1900-01-01'^^xsd:date ; kpg:birthYear 1901 ."
    ),
    "general-died-before-taking-part": (
        ":a kpg:deathYear 1900 ; kpg:participatedIn :e . :e kpg:startYear 1901 ."
    ),
    "general-directed-before-director-born": (
        ":w kpg:director :a ; kpg:publicationYear 1950 . :a kpg:birthYear 1951 ."
    ),
    "general-ended-before-it-began": ":e kpg:startYear 1945 ; kpg:endYear 1939 .",
    "general-founded-before-founder-born": (
        ":o kpg:founder :f ; kpg:foundingYear 1899 . :f kpg:birthYear 1900 ."
    ),
    "general-older-than-parent": ":p kpg:child :c ; kpg:birthYear 1900 . :c kpg:birthYear 1900 .",
    "general-own-ancestor": ":a kpg:child :b . :b kpg:child :c . :a kpg:parent :c .",
    "general-own-spouse-or-sibling": ":a kpg:sibling :a .",
    "general-part-of-itself": ":a kpg:locatedIn :b . :b kpg:partOf :c . :a kpg:hasPart :c .",
    "general-published-before-author-born": (
        ":w kpg:author :a ; kpg:publicationYear 1890 . :a kpg:birthYear 1900 ."
    ),
    "medical-developed-its-treatment": ":p kpm:develops :x . :x kpm:receivedBy :p .",
    "medical-related-to-itself": ":a kpm:causes :a .",
    "medical-studied-before-described": (
        ":s kpm:investigates :c ; kpm:startYear 1950 . :c kpm:firstDescribedYear 1960 ."
    ),
    "medical-symptom-both-ways": ":a kpm:hasSymptom :b . :a kpm:symptomOf :b .",
}
"""By check: what it must find. Bare numbers take the datatypes of their properties."""

INNOCENT: Mapping[str, str] = {
    "academic": (
        ":a kpa:birthYear 1900 ; kpa:deathYear 1950 ; kpa:graduationYear 1922 ; kpa:advised :b . "
        ":b kpa:advised :c . :a kpa:founded :o ; kpa:wrote :w . :o kpa:foundingYear 1930 ; "
        "kpa:hasPart :p . :p kpa:hasPart :q . :w kpa:publicationYear 1930 ; kpa:cites :v ."
    ),
    "finance": (
        ":a kpf:foundingYear 1950 ; kpf:listingYear 1980 ; kpf:profit 5.0 ; kpf:loss 6.0 ; "
        "kpf:owns :b ; kpf:acquired :b ; kpf:regulatedBy :r . "
        ":b kpf:owns :c ; kpf:spunOffFrom :d . "
        ":l kpf:lender :a ; kpf:borrower :b ."
    ),
    "general": (
        ":a kpg:birthYear 1900 ; kpg:birthDate '1900-01-01'^^xsd:date ; kpg:deathYear 1950 ; "
        "kpg:participatedIn :e ; kpg:child :b ; kpg:spouse :s ; kpg:founded :o ; kpg:wrote :w . "
        ":b kpg:birthYear 1930 . :e kpg:startYear 1939 ; kpg:endYear 1945 . "
        ":o kpg:foundingYear 1930 . "
        ":w kpg:publicationYear 1930 ; kpg:director :a . "
        ":x kpg:locatedIn :y . :y kpg:partOf :z . :z kpg:hasPart :y ."
    ),
    "medical": (
        ":p kpm:develops :x ; kpm:receives :y . :a kpm:causes :b ; kpm:hasSymptom :c . "
        ":s kpm:investigates :c ; kpm:startYear 1970 . :c kpm:firstDescribedYear 1960 ."
    ),
}
"""By seed: what no check may find anything in."""

RUBBISH: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "academic": (
        ("Person", "rdfs:label", ")"),
        ("Organisation", "rdfs:label", "S"),
        ("Person", "kpa:degree", "Brandle Medal"),
        ("Person", "kpa:degree", "Ph"),
        ("Person", "kpa:award", "bachelor's degree"),
        ("Person", "kpa:award", "medal"),
        ("Person", "kpa:position", "peer-reviewed journal"),
        ("Person", "kpa:position", "elder brother"),
        ("Person", "kpa:researchArea", "in 1950"),
        ("Person", "kpa:graduationYear", "9999"),
        ("Organisation", "kpa:foundingYear", "0000"),
        ("University", "kpa:studentCount", "0"),
    ),
    "finance": (
        ("Company", "rdfs:label", "&"),
        ("Company", "kpf:makes", "profit of 18 million euros"),
        ("Company", "kpf:employeeCount", "99999999"),
        ("Company", "kpf:tickerSymbol", "the symbol"),
        ("Company", "kpf:creditRating", "well"),
        ("Company", "kpf:revenue", "-5"),
        ("Person", "kpf:position", "accounting firm"),
        ("Bond", "kpf:interestRate", "450"),
        ("Bond", "kpf:maturityYear", "2999"),
        ("Bond", "kpf:denominatedIn", "200 million"),
    ),
    "general": (
        ("Person", "rdfs:label", "B"),
        ("Work", "rdfs:label", "("),
        ("Person", "kpg:birthYear", "9999"),
        ("Person", "kpg:birthDate", "2150-01-01"),
        ("Person", "kpg:occupation", "2014 film"),
        ("Person", "kpg:occupation", "younger brother"),
        ("Person", "kpg:award", "degrees"),
        ("Organisation", "kpg:foundingYear", "0000"),
        ("PopulatedPlace", "kpg:population", "0"),
        ("Place", "kpg:area", "0"),
        ("Place", "kpg:elevation", "200000"),
    ),
    "medical": (
        ("Condition", "rdfs:label", "A"),
        ("ClinicalStudy", "kpm:startYear", "0079"),
        ("Condition", "kpm:incidence", "-3"),
        ("Drug", "kpm:dose", "a small dose"),
        ("Chemical", "kpm:halfLife", "0"),
        ("Gene", "kpm:chromosome", "the long arm"),
        ("Disease", "kpm:abbreviation", "5"),
    ),
}
"""By seed: values that its own shapes must refuse, as class, property and value."""

HONEST: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "academic": (
        ("Person", "kpa:degree", "PhD in chemistry"),
        ("Person", "kpa:degree", "bachelor's degree"),
        ("Person", "kpa:award", "Brandle Medal"),
        ("Person", "kpa:position", "postdoctoral researcher"),
        ("Person", "kpa:position", "rector of Kestrel University"),
        ("Person", "kpa:position", "editor of the journal"),
        ("Person", "kpa:graduationYear", "1989"),
        ("University", "kpa:studentCount", "14200"),
    ),
    "finance": (
        ("Company", "kpf:makes", "cardboard boxes"),
        ("Company", "kpf:tickerSymbol", "BRK.A"),
        ("Company", "kpf:creditRating", "BBB-"),
        ("Company", "kpf:loss", "0.5"),
        ("Person", "kpf:position", "chief executive"),
        ("Bond", "kpf:interestRate", "-0.25"),
        ("Bond", "kpf:denominatedIn", "Swiss francs"),
    ),
    "general": (
        ("Person", "kpg:birthYear", "0079"),
        ("Person", "kpg:birthDate", "1900-02-28"),
        ("Person", "kpg:occupation", "author of the book"),
        ("Person", "kpg:award", "Nobel Prize in Physics"),
        ("Organisation", "rdfs:label", "U2"),
        ("PopulatedPlace", "kpg:population", "1957200"),
        ("Place", "kpg:elevation", "-430"),
    ),
    "medical": (
        ("Condition", "rdfs:label", "flu"),
        ("ClinicalStudy", "kpm:startYear", "1999"),
        ("Disease", "kpm:firstDescribedYear", "1817"),
        ("Condition", "kpm:incidence", "2.5"),
        ("Drug", "kpm:dose", "20 mg/kg"),
        ("Gene", "kpm:chromosome", "17q21.31"),
        ("Gene", "kpm:chromosome", "X"),
        ("Chemical", "kpm:halfLife", "0.5"),
        ("Disease", "kpm:abbreviation", "PD"),
    ),
}
"""By seed: values beside them that must pass."""

KNOWN: Mapping[str, tuple[tuple[str, set[str]], ...]] = {
    "academic": (
        ("Who heads <Organisation>?", {"Petra Lindqvist", "Northgate Institute of Technology"}),
        ("Who supervised the studies of <Person>?", {"Tobias Renn", "Oskar Brandle"}),
        ("Which award did <Agent> receive?", {"Ines Calloway", "Brandle Medal"}),
    ),
    "finance": (
        ("What did <Agent> acquire?", {"Vellmark Holdings", "Ostrel Ferries"}),
        ("How is <Agent> rated?", {"Tarrow Energy", "BBB"}),
        (
            "With which organisation did <Organisation> merge?",
            {"Corvane Bank", "Sterling Quay Bank"},
        ),
    ),
    "medical": (
        ("What causes which condition?", {"Nephrolithiasis", "acetazolamide"}),
        ("Which condition occurred in <Population>?", {"Liver enlargement", "Wistar rats"}),
        (
            "Of what is <Chemical> a metabolite?",
            {"chloroacetaldehyde", "oxazaphosphorine cytostatics"},
        ),
    ),
}
"""What a reader of the samples knows: a question, and words of one row of its answer."""
