"use strict";
// Where the page's data come from: the service, or the files of a site that was exported, which
// are scripts, as a browser lets no page from a disk read other files.

async function askService(tool, given) {
  const reply = await fetch(`v1/${tool}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(given),
  });
  const value = await reply.json();
  if (!reply.ok) throw new Error(value.detail || `the service says ${reply.status}`);
  showVersion(reply.headers.get("X-Snapshot"));
  return value;
}

function showVersion(snapshot) {
  document.getElementById("version").textContent = `Snapshot ${snapshot}`;
}

const loaded = new Map();

/** What each file of the site calls with its name and its value. */
function put(name, value) {
  loaded.get(name).resolve(value);
}

function load(name) {
  if (!loaded.has(name)) {
    const entry = {};
    entry.value = new Promise((resolve, reject) => {
      entry.resolve = resolve;
      const script = document.createElement("script");
      script.src = `data/${name}.js`;
      script.onload = () => script.remove();
      script.onerror = () => {
        loaded.delete(name);
        reject(new Error(`data/${name}.js is missing: copy the whole folder, or export it again`));
      };
      document.head.append(script);
    });
    loaded.set(name, entry);
  }
  return loaded.get(name).value;
}

/** The place of the last start that is not after a value; of starts in ascending order. */
function findPiece(starts, value) {
  let [low, high] = [0, starts.length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= value) low = middle;
    else high = middle;
  }
  return low;
}

/** The words of a text without case and accents, as the exported index has them. */
function splitWords(text) {
  const plain = text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  return [...new Set(plain.match(/[\p{L}\p{N}]+/gu) || [])];
}

/** The posting of a word, or of the first that begins with it: word, things, passages with counts. */
async function lookUp(site, word) {
  if (!site.words.length) return null;
  const piece = await load(`words/${findPiece(site.words, word)}`);
  return piece.find((row) => row[0] === word) || piece.find((row) => row[0].startsWith(word));
}

const best = (scores, most) =>
  [...scores].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, most);

async function readThing(site, number) {
  const piece = await load(`things/${Math.floor(number / site.things_each)}`);
  return piece[number % site.things_each];
}

async function findThings(site, words, postings) {
  const scores = new Map();
  for (const [, things] of postings)
    for (const number of things)
      scores.set(number, (scores.get(number) || 0) + 1 / Math.log(2 + things.length));
  const asked = new Set(words);
  const ranked = await Promise.all(
    best(scores, 12).map(async ([number]) => {
      const thing = await readThing(site, number);
      const named = thing.individual.surface_forms
        .map(splitWords)
        .filter((form) => form.length && form.every((word) => asked.has(word)));
      return { thing, named: Math.max(0, ...named.map((form) => form.length)) };
    }),
  );
  ranked.sort((a, b) => b.named - a.named || b.thing.count - a.thing.count);
  const named = ranked.filter((one) => one.named);
  return (named.length ? named : ranked).slice(0, 5).map((one) => one.thing);
}

/** The facts of things that share most words with the question, beside the things' own names. */
function rankFacts(things, words, most) {
  const rows = new Map();
  for (const thing of things) {
    const own = new Set(thing.individual.surface_forms.flatMap(splitWords));
    const asked = words.filter((word) => word.length > 2 && !own.has(word));
    for (const fact of thing.facts) {
      const more = fact.qualifiers.length ? ` (${fact.qualifiers.join("; ")})` : "";
      const text = `${fact.head} ${fact.relation} ${fact.tail}${more}`;
      const stated = splitWords(`${text} ${fact.standard}`);
      const shared = asked.filter((word) => stated.some((other) => isAlike(word, other))).length;
      const known = rows.get(fact.fact_id);
      if (!known || known.shared < shared) rows.set(fact.fact_id, { ...fact, text, shared });
    }
  }
  const ranked = [...rows.values()].sort((a, b) => b.shared - a.shared || b.support - a.support);
  return ranked.slice(0, most).map((fact) => ({ ...fact, score: null }));
}

/** Whether two words are the same but for an ending: "founder" and "founded". */
function isAlike(one, other) {
  const least = Math.max(4, Math.min(one.length, other.length) - 2);
  return one === other || (one.length >= least && one.slice(0, least) === other.slice(0, least));
}

async function findPassages(site, postings, most) {
  const scores = new Map();
  for (const [, , passages] of postings) {
    const rarity = Math.log(1 + (2 * site.passages) / (passages.length + 1));
    for (let at = 0; at < passages.length; at += 2) {
      const [number, times] = [passages[at], passages[at + 1]];
      scores.set(number, (scores.get(number) || 0) + (rarity * times) / (times + 1));
    }
  }
  return Promise.all(
    best(scores, most).map(async ([number]) => {
      const piece = await load(`passages/${Math.floor(number / site.passages_each)}`);
      const place = piece[number % site.passages_each];
      return { key: String(number), text: place.text, evidence: [place] };
    }),
  );
}

const FILES = {
  overview: () => load("overview"),
  async find(site, { class_name }) {
    const { classes } = await load("overview");
    const at = classes.findIndex((one) => one.iri === class_name);
    if (at < 0) throw new Error(`there is no class ${class_name}`);
    return load(`classes/${at}`);
  },
  async entity(site, { name }) {
    if (site.things.length && name.startsWith("entity-")) {
      const piece = await load(`things/${findPiece(site.things, name)}`);
      const thing = piece.find((one) => one.individual.entity_id === name);
      if (thing) return [thing];
    }
    const words = splitWords(name);
    const postings = await Promise.all(words.map((word) => lookUp(site, word)));
    const found = await findThings(site, words, postings.filter(Boolean));
    const said = words.join(" ");
    const same = (thing) =>
      thing.individual.surface_forms.some((form) => splitWords(form).join(" ") === said);
    if (!found.some(same)) throw new Error(`there is nothing named ${name}`);
    return found.filter(same);
  },
  async retrieve(site, { question, facts, passages }) {
    const words = splitWords(question);
    const postings = (await Promise.all(words.map((word) => lookUp(site, word)))).filter(Boolean);
    const things = await findThings(site, words, postings);
    return {
      names: things.map((thing) => thing.individual.entity_id),
      facts: rankFacts(things, words, facts),
      passages: await findPassages(site, postings, passages),
      titles: {},
    };
  },
  ask: async () => ({ text: "" }),
  async diff(site, { table }) {
    const { rows, ...found } = await load("diff");
    return { ...found, rows: rows[table] || [] };
  },
};

async function askFiles(tool, given) {
  const site = await load("site");
  showVersion(site.snapshot);
  return FILES[tool](site, given);
}

const ask = document.documentElement.dataset.source === "files" ? askFiles : askService;
