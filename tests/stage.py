"""A made-up graph of theatres, with questions about it: nothing in the rules was written for it."""

TURTLE = """
@prefix : <http://example.org/stage/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .

:Person a owl:Class ; rdfs:label "person" .
:Actor a owl:Class ; rdfs:subClassOf :Person ; rdfs:label "actor" .
:Director a owl:Class ; rdfs:subClassOf :Person ; rdfs:label "director" .
:Play a owl:Class ; rdfs:label "play" ; rdfs:comment "What is performed on a stage." .
:Genre a owl:Class ; rdfs:label "genre" .
:Theatre a owl:Class ; rdfs:label "theatre" .
:City a owl:Class ; rdfs:label "city" .

:directedBy a owl:ObjectProperty ; rdfs:label "directed by" ;
    rdfs:domain :Play ; rdfs:range :Director .
:performsIn a owl:ObjectProperty ; rdfs:label "performs in" ;
    rdfs:domain :Actor ; rdfs:range :Play .
:genre a owl:ObjectProperty ; rdfs:label "genre" ; rdfs:domain :Play ; rdfs:range :Genre .
:stagedAt a owl:ObjectProperty ; rdfs:label "staged at" ;
    rdfs:domain :Play ; rdfs:range :Theatre .
:locatedIn a owl:ObjectProperty ; rdfs:label "located in" ;
    rdfs:domain :Theatre ; rdfs:range :City .
:mentor a owl:ObjectProperty ; rdfs:label "mentor" ; rdfs:domain :Person ; rdfs:range :Person .
:seats a owl:DatatypeProperty ; rdfs:label "seats" ;
    rdfs:domain :Theatre ; rdfs:range xsd:integer .
:premiere a owl:DatatypeProperty ; rdfs:label "premiere date" ;
    rdfs:domain :Play ; rdfs:range xsd:date .
:ticketPrice a owl:DatatypeProperty ; rdfs:label "ticket price (EUR)" ;
    rdfs:domain :Play ; rdfs:range xsd:decimal .
:runningTime a owl:DatatypeProperty ; rdfs:label "running time (min)" ;
    rdfs:domain :Play ; rdfs:range xsd:integer .
:email a owl:DatatypeProperty ; rdfs:label "e-mail" ; rdfs:domain :Person ; rdfs:range xsd:string .

:tragedy a :Genre ; rdfs:label "Tragedy" .
:comedy a :Genre ; rdfs:label "Comedy" .
:arno a :City ; rdfs:label "Arnoport" .
:veld a :City ; rdfs:label "Veldstadt" .
:globe a :Theatre ; rdfs:label "Lantern House" ; :locatedIn :arno ; :seats 420 .
:mill a :Theatre ; rdfs:label "Mill Stage" ; :locatedIn :veld ; :seats 150 .
:opal a :Theatre ; rdfs:label "Opal Hall" ; :locatedIn :veld ; :seats 900 .
:ines a :Director ; rdfs:label "Ines Calder" ; :email "ines@example.org" .
:otto a :Director ; rdfs:label "Otto Brandt" ; :email "otto@example.org" ; :mentor :ines .
:lia a :Actor ; rdfs:label "Lia Moreno" ; :performsIn :storm, :harbour ; :mentor :otto .
:piet a :Actor ; rdfs:label "Piet Vos" ; :performsIn :storm ; :email "piet@example.org" .
:nora a :Actor ; rdfs:label "Nora Quill" ; :performsIn :clerk, :harbour, :salt .
:storm a :Play ; rdfs:label "The Glass Storm" ; :genre :tragedy ; :directedBy :ines ;
    :stagedAt :globe ; :premiere "2019-03-02"^^xsd:date ; :ticketPrice 40.0 ; :runningTime 150 .
:harbour a :Play ; rdfs:label "Harbour of Salt" ; :genre :tragedy ; :directedBy :otto ;
    :stagedAt :opal ; :premiere "2021-11-20"^^xsd:date ; :ticketPrice 25.5 ; :runningTime 95 .
:clerk a :Play ; rdfs:label "The Merry Clerk" ; :genre :comedy ; :directedBy :otto ;
    :stagedAt :mill ; :premiere "2020-06-14"^^xsd:date ; :ticketPrice 18.0 ; :runningTime 80 .
:salt a :Play ; rdfs:label "Two Umbrellas" ; :genre :comedy ; :directedBy :ines ;
    :stagedAt :opal ; :premiere "2022-01-09"^^xsd:date ; :ticketPrice 32.0 ; :runningTime 110 .
"""

ANSWERED: dict[str, set[str]] = {
    "Who directed The Glass Storm?": {"Ines Calder"},
    "Which plays were directed by Otto Brandt?": {"Harbour of Salt", "The Merry Clerk"},
    "Which actors perform in The Glass Storm?": {"Lia Moreno", "Piet Vos"},
    "In which city is Opal Hall located?": {"Veldstadt"},
    "Where is the Mill Stage located?": {"Veldstadt"},
    "How many seats does the Lantern House have?": {"420"},
    "How many plays are staged at Opal Hall?": {"2"},
    "What is the genre of Two Umbrellas?": {"Comedy"},
    "What is the e-mail of Piet Vos?": {"piet@example.org"},
    "Who is the mentor of Lia Moreno?": {"Otto Brandt"},
    "When did Harbour of Salt premiere?": {"2021-11-20"},
    "What is the premiere date of The Merry Clerk?": {"2020-06-14"},
    "Which theatre has the most seats?": {"Opal Hall"},
    "What is the longest play?": {"The Glass Storm"},
    "Which comedies are staged in Veldstadt?": {"The Merry Clerk", "Two Umbrellas"},
    "Which tragedies does Nora Quill perform in?": {"Harbour of Salt"},
    "How many comedies are there?": {"2"},
    "Which directors have plays at Opal Hall?": {"Ines Calder", "Otto Brandt"},
    "Which actors perform in plays directed by Ines Calder?": {
        "Lia Moreno", "Piet Vos", "Nora Quill",
    },
    "Are there any theatres in Arnoport?": {"true"},
    "What is the cheapest comedy?": {"The Merry Clerk"},
    "Which plays cost more than 30 EUR?": {"The Glass Storm", "Two Umbrellas"},
    "Which plays have a running time under 100 minutes?": {"Harbour of Salt", "The Merry Clerk"},
    "What is the average ticket price of tragedies?": {"32.75"},
    "Which actor performs in more than 2 plays?": {"Nora Quill"},
    "List all theatres in Veldstadt.": {"Mill Stage", "Opal Hall"},
    "In which city is The Glass Storm staged?": {"Arnoport"},
    "What is Otto's e-mail?": {"otto@example.org"},
    "What is the running time of Two Umbrellas?": {"110"},
    "Who is Otto Brandt's mentor?": {"Ines Calder"},
    "Is Otto Brandt's mentor Ines Calder?": {"true"},
    "Is Ines Calder's mentor Otto Brandt?": {"false"},
    "Does Nora Quill perform in Two Umbrellas?": {"true"},
    "Does Nora Quill perform in The Glass Storm?": {"false"},
    "What is the average running time of plays with Lia Moreno and Piet Vos?": {"150"},
    "What is the total running time of plays at Opal Hall?": {"205"},
    "What are the top 2 theatres with the most seats?": {"Opal Hall", "Lantern House"},
    "Which theatres have more than 1 play and more than 200 seats?": {"Opal Hall"},
}  # fmt: skip
"""Questions that have one reading, with the labels or literals of their answers."""

REFUSED = (
    "Which plays are not staged at Opal Hall?",
    "Who wrote The Glass Storm?",
    "Which play has the best reviews?",
    "How many tickets were sold for Two Umbrellas?",
    "What is the weather in Veldstadt?",
    "Which actors live in Arnoport?",
    "Who is the youngest actor?",
    "Is Opal Hall bigger than the Mill Stage?",
    "What percentage of plays are comedies?",
    "Which director and which actor worked together most often?",
    "When was Lia Moreno born?",
    "Who owns the Lantern House?",
    # One query cannot say these: a yes to less than was asked would be another answer.
    "Does Lia Moreno perform in more than five plays?",
    "Does the Mill Stage have the most seats?",
    "How many theatres have the most seats?",
    "Which actor performs in more than 2 plays with the most seats?",
    "Which actor performs in the most plays with the longest running time?",
    # Who mentors whom: `mentor` may be a verb, or the person asked for.
    "Did Otto Brandt mentor Ines Calder?",
    "Did Ines Calder mentor Otto Brandt?",
    "Who does Otto Brandt mentor?",
    "Who mentored Lia Moreno?",
    "Whose mentor is Otto Brandt?",
    "Who is Otto Brandt the mentor of?",
    "Who has Otto Brandt as mentor?",
    # That they share a mentor is no yes.
    "Is Piet Vos the mentor of Lia Moreno?",
    # Neither a name nor an odd number is a class or a number of rows.
    "What is the capital of France?",
    "Which plays are staged in Paris?",
    "What are the top nan plays?",
    "What are the top 1e999 plays?",
    "What are the top inf longest plays?",
)
"""Questions that the graph cannot answer, or the rules cannot read."""
