"use strict";
// All that the page shows comes from `ask` (data.js), and is written as text, never as markup:
// names and sentences of a corpus may hold anything.

const MOST_DRAWN = 12;
const COMMON = new Set(
  "also does from have that they this were what when where which with your".split(" "),
);
const main = document.getElementById("main");
const field = document.getElementById("question");
let turn = 0;

/** An element: attributes, then children, which are elements or texts. */
function make(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "circle", "text", "g"].includes(name) || attributes.svg;
  const element = svg
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key !== "svg" && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const address = (view, value) => `#${view}=${encodeURIComponent(value)}`;
const link = (view, value, words) => make("a", { href: address(view, value) }, words);
const soft = (words) => make("span", { class: "soft" }, words);
const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
const percent = (chance) => `${Math.round(chance * 100)} %`;

/** The name of an entity as a link, a value as text. */
const end = (id, name) => (id ? link("entity", id, name) : name);

/** The last part of an IRI, for what has no label. */
const shorten = (iri) => iri.replace(/^.*[#/]/, "");

function quote(place, words = []) {
  const text = make("blockquote", {}, ...highlight(place.text, words));
  const where = [place.title, place.section, place.source].filter(Boolean).join(" › ");
  text.append(make("div", { class: "small" }, `${where}, ${place.start}–${place.end}`));
  return text;
}

/** The text in parts, with these words marked. */
function highlight(text, words) {
  const wanted = words
    .filter((word) => word.length > 3 && !COMMON.has(word))
    .map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!wanted.length) return [text];
  const pattern = new RegExp(`(${wanted.join("|")})`, "gi");
  return text.split(pattern).map((part, at) => (at % 2 ? make("mark", {}, part) : part));
}

function sources(places, words) {
  if (!places.length) return null;
  const shown = make(
    "details",
    {},
    make("summary", { class: "small soft" }, count(places.length, "sentence")),
  );
  shown.addEventListener("toggle", () => {
    if (shown.children.length === 1) shown.append(...places.map((place) => quote(place, words)));
  });
  return shown;
}

function layer(kind, title, about, ...children) {
  return make(
    "section",
    { class: `layer ${kind}`, "aria-label": title },
    make("h2", {}, title),
    make("p", { class: "soft small" }, about),
    ...children,
  );
}

// What there is.

async function showOverview() {
  const found = await ask("overview", { things: 24 });
  const names = {
    documents: "documents",
    chunks: "passages",
    entities: "things",
    condensed: "facts",
    instances: "statements of the ontology",
  };
  const tiles = Object.entries(names).map(([key, noun]) =>
    make("li", {}, make("b", {}, (found.counts[key] || 0).toLocaleString("en")), noun),
  );
  const things = found.things.map((one) =>
    make("li", {}, link("entity", one.id, one.name), " ", soft(count(one.facts, "fact"))),
  );
  const classes = found.classes
    .filter((one) => one.count)
    .sort((a, b) => b.count - a.count)
    .slice(0, 12);
  return [
    make("h1", {}, "What is in it"),
    make("ul", { class: "tiles" }, tiles),
    layer(
      "ontology",
      "Ontology",
      "Classes with most members.",
      make(
        "ul",
        {},
        classes.map((one) =>
          make(
            "li",
            {},
            link("class", one.iri, one.label),
            " ",
            soft(one.count.toLocaleString("en")),
          ),
        ),
      ),
      make("p", {}, make("a", { href: "#ontology" }, "The whole ontology")),
    ),
    layer("graph", "Graph", "Things with most facts.", make("ul", {}, things)),
  ];
}

async function showOntology() {
  const found = await ask("overview", { things: 0 });
  const below = new Map();
  const known = new Set(found.classes.map((one) => one.iri));
  for (const one of found.classes) {
    const parents = one.parents.filter((iri) => known.has(iri));
    for (const parent of parents.length ? parents : [""])
      below.set(parent, [...(below.get(parent) || []), one]);
  }
  const total = (one, seen = new Set()) => {
    if (seen.has(one.iri)) return 0;
    seen.add(one.iri);
    return (
      one.count + (below.get(one.iri) || []).reduce((sum, child) => sum + total(child, seen), 0)
    );
  };
  const branch = (iri, path = []) =>
    make(
      "ul",
      {},
      (below.get(iri) || [])
        .filter((one) => !path.includes(one.iri))
        .sort((a, b) => a.label.localeCompare(b.label))
        .map((one) => {
          const line = [
            link("class", one.iri, one.label),
            " ",
            soft(total(one).toLocaleString("en")),
            one.comment ? make("div", { class: "soft small" }, one.comment) : null,
          ];
          return make(
            "li",
            {},
            ...line,
            below.has(one.iri) ? branch(one.iri, [...path, one.iri]) : null,
          );
        }),
    );
  const label = new Map(found.classes.map((one) => [one.iri, one.label]));
  const rows = [...found.properties]
    .sort((a, b) => b.count - a.count)
    .map((one) =>
      make(
        "tr",
        {},
        make("td", {}, one.label),
        make("td", {}, label.get(one.domain) || shorten(one.domain)),
        make("td", {}, label.get(one.range) || shorten(one.range)),
        make("td", { class: "number" }, one.count.toLocaleString("en")),
      ),
    );
  return [
    make("h1", {}, "Ontology"),
    layer("ontology", "Classes", "With the number of members, subclasses included.", branch("")),
    layer(
      "ontology",
      "Properties",
      "With the number of values.",
      make(
        "div",
        { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of properties" },
        make(
          "table",
          {},
          make(
            "thead",
            {},
            make(
              "tr",
              {},
              ...["Property", "Of", "Value"].map((name) => make("th", { scope: "col" }, name)),
              make("th", { scope: "col", class: "number" }, "Values"),
            ),
          ),
          make("tbody", {}, rows),
        ),
      ),
    ),
  ];
}

async function showClass(iri) {
  const [found, all] = await Promise.all([
    ask("find", { class_name: iri, limit: 500 }),
    ask("overview", { things: 0 }),
  ]);
  const label = all.classes.find((one) => one.iri === iri)?.label || shorten(iri);
  const members = found.members.map((one) => make("li", {}, link("entity", one.id, one.name)));
  const shown = members.length < found.count.at_least ? `, the first ${members.length}` : "";
  const about = `At least ${count(found.count.at_least, "member")}${shown}`;
  return [make("h1", {}, label), make("p", { class: "soft" }, about), make("ul", {}, members)];
}

// A question: what each layer has for it.

async function showQuestion(question) {
  const words = question.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
  const [found, answered] = await Promise.all([
    ask("retrieve", { question, facts: 12, passages: 6 }),
    ask("ask", { question }).catch(() => ({ text: "" })),
  ]);
  const named = await Promise.all(
    found.names.slice(0, 5).map((name) => ask("entity", { name, facts: 0 }).catch(() => [])),
  );
  const things = named
    .flat()
    .map((one) =>
      make(
        "li",
        {},
        link("entity", one.individual.entity_id, one.individual.name),
        " ",
        soft(count(one.count, "fact")),
      ),
    );
  const judged = found.facts.some((fact) => fact.score !== null);
  const sure = found.facts.filter((fact) => !judged || fact.score >= 0.05);
  const order = judged
    ? "Nearest to the question first, with the chance that each answers it."
    : "Of the things above, those with most words of the question first.";
  return [
    make("h1", {}, question),
    answered.text
      ? make(
          "p",
          {},
          make("b", {}, answered.text),
          " ",
          soft(`from the ${answered.layer}, ${percent(answered.confidence)} sure`),
          ...answered.evidence.slice(0, 2).map((place) => quote(place, words)),
        )
      : null,
    layer(
      "ontology",
      "Things it names",
      things.length ? "Linked to the graph." : "None that the graph knows.",
      make("ul", { class: "plain" }, things),
    ),
    layer(
      "graph",
      "Facts",
      sure.length ? order : "None is near.",
      make(
        "ol",
        {},
        sure.map((fact) =>
          make(
            "li",
            {},
            fact.text,
            judged ? soft(` ${percent(fact.score)}`) : null,
            sources(fact.evidence, words),
          ),
        ),
      ),
    ),
    layer(
      "text",
      "Passages",
      "Best first.",
      make(
        "ol",
        {},
        found.passages.map((item) =>
          make(
            "li",
            {},
            quote(
              {
                ...item.evidence[0],
                text: item.text,
                title: found.titles[item.key] || item.evidence[0].title,
              },
              words,
            ),
          ),
        ),
      ),
    ),
  ];
}

// A thing: classes, values, facts, neighbours.

async function showEntity(id) {
  const found = await ask("entity", { name: id, facts: 200 });
  return found.flatMap((one) => describeThing(one));
}

function describeThing(thing) {
  const own = thing.individual;
  const others = own.surface_forms.filter((form) => form !== own.name);
  const value = (one) =>
    make(
      "li",
      {},
      make("b", {}, one.label),
      " ",
      one.of ? `of ${one.of}` : one.value || "",
      " ",
      soft(percent(one.confidence)),
      sources(one.sentences, [own.name]),
    );
  const facts = thing.facts.map((fact) =>
    make(
      "li",
      {},
      end(fact.head_id, fact.head),
      ` ${fact.relation} `,
      end(fact.tail_id, fact.tail),
      fact.qualifiers.length ? soft(` (${fact.qualifiers.join("; ")})`) : null,
      sources(fact.evidence, [fact.head, fact.tail]),
    ),
  );
  const stated = [...own.values, ...own.value_of].map(value);
  return [
    make("h1", {}, own.name),
    make(
      "p",
      { class: "soft" },
      [
        own.classes.map((one) => one.label).join(", ") || thing.type,
        others.length ? `also ${others.slice(0, 8).join(", ")}` : "",
      ]
        .filter(Boolean)
        .join(" · "),
    ),
    draw(thing),
    stated.length
      ? layer(
          "ontology",
          "Ontology",
          "Values with the chance that they are right.",
          make("ul", {}, stated),
        )
      : null,
    layer(
      "graph",
      "Facts",
      thing.count > facts.length
        ? `The ${facts.length} best supported of ${thing.count.toLocaleString("en")}.`
        : "Those of most documents first.",
      make("ul", {}, facts),
    ),
  ];
}

/** The things next to one: left what leads to it, right where it leads; a list says the same below. */
function draw(thing) {
  const own = thing.individual.entity_id;
  const sides = [new Map(), new Map()];
  for (const fact of thing.facts) {
    const leads = fact.head_id === own;
    const [id, name] = leads ? [fact.tail_id, fact.tail] : [fact.head_id, fact.head];
    const side = sides[leads ? 1 : 0];
    if (id && id !== own && !side.has(id) && side.size < MOST_DRAWN)
      side.set(id, { id, name, relation: fact.relation });
  }
  const rows = Math.max(...sides.map((side) => side.size));
  if (!rows) return null;
  const [width, step] = [900, 44];
  const height = rows * step + 40;
  const middle = height / 2;
  const cut = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);
  const nodes = sides.flatMap((side, right) =>
    [...side.values()].map((one, at) => {
      const x = right ? 600 : 300;
      const y = middle + (at - (side.size - 1) / 2) * step;
      const [text, anchor] = right ? [x + 14, "start"] : [x - 14, "end"];
      const from = right ? width / 2 + 10 : width / 2 - 10;
      const bend = (from + x) / 2;
      return [
        make("path", { d: `M${from} ${middle} C${bend} ${middle} ${bend} ${y} ${x} ${y}` }),
        make(
          "a",
          { svg: true, href: address("entity", one.id) },
          make("circle", { cx: x, cy: y, r: 7 }),
          make("text", { x: text, y: y + 1, "text-anchor": anchor }, cut(one.name, 36)),
          make(
            "text",
            { class: "relation", x: text, y: y + 15, "text-anchor": anchor },
            cut(one.relation, 40),
          ),
        ),
      ];
    }),
  );
  const name = cut(thing.individual.name, 28);
  const centre = make(
    "g",
    { class: "centre" },
    make("circle", { cx: width / 2, cy: middle, r: 10 }),
    make("text", { x: width / 2, y: middle - 18, "text-anchor": "middle" }, name),
  );
  const about = `What ${thing.individual.name} is connected with`;
  const shape = { class: "near", viewBox: `0 0 ${width} ${height}`, role: "group" };
  return make("svg", { ...shape, "aria-label": about }, ...nodes.flat(), centre);
}

async function showChanges() {
  const parts = ["facts", "documents"];
  const found = await Promise.all(parts.map((table) => ask("diff", { table, limit: 100 })));
  const counts = Object.entries(found[0].tables).map(([name, one]) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, name),
      ...["added", "changed", "removed"].map((kind) =>
        make("td", { class: "number" }, one[kind].toLocaleString("en")),
      ),
    ),
  );
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "Table"),
    ...["Added", "Changed", "Removed"].map((name) =>
      make("th", { scope: "col", class: "number" }, name),
    ),
  );
  if (!found[0].before)
    return [make("h1", {}, "Changes"), make("p", {}, "There is no snapshot before this one.")];
  return [
    make("h1", {}, "Changes"),
    make("p", { class: "soft" }, `From snapshot ${found[0].before} to ${found[0].after}.`),
    make(
      "div",
      { class: "wide", tabindex: "0", role: "region", "aria-label": "Counts" },
      make("table", {}, make("thead", {}, head), make("tbody", {}, counts)),
    ),
    ...parts.map((name, at) =>
      layer(
        "graph",
        name[0].toUpperCase() + name.slice(1),
        found[at].rows.length ? "" : "None changed.",
        make(
          "ul",
          {},
          found[at].rows.map((row) => make("li", {}, soft(`${row.change} `), row.words)),
        ),
      ),
    ),
  ];
}

const VIEWS = {
  q: showQuestion,
  entity: showEntity,
  class: showClass,
  ontology: showOntology,
  changes: showChanges,
};

async function show() {
  const mine = ++turn;
  const [, view, value] = /^#(\w*)=?(.*)$/.exec(location.hash || "#");
  main.setAttribute("aria-busy", "true");
  let [parts, given] = [[], value];
  try {
    given = decodeURIComponent(value);
    parts = await (VIEWS[view] || showOverview)(given);
  } catch (error) {
    parts = [
      make("h1", {}, "This could not be shown"),
      make("p", { class: "problem", role: "alert" }, error.message),
    ];
  }
  if (mine !== turn) return;
  if (view === "q") field.value = given;
  main.replaceChildren(...parts.filter(Boolean));
  main.setAttribute("aria-busy", "false");
  document.title = `${main.querySelector("h1").textContent} – Knowledge Pyramid`;
  if (location.hash) main.focus({ preventScroll: true });
  scrollTo(0, 0);
}

document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  if (field.value.trim()) location.hash = address("q", field.value.trim());
});
window.addEventListener("hashchange", show);
show();
