"use strict";
// SPDX-License-Identifier: Apache-2.0
// Draws the map.  Names in it are anybody's choice: they become text, never markup.
const map = JSON.parse(document.getElementById("map").textContent);
const byId = (id) => document.getElementById(id);
const root = document.documentElement;
const COLORS = 4;
const STEP = 12;
const LINE = 20;
const GAP = 14;
const PADDING = 20;
const NARROWEST = 300;
const LEVELS = ["failure", "warning", "unknown", "note"];

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value !== false) { made.setAttribute(key, value === true ? "" : value); }
  }
  made.append(...children);
  return made;
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

// "0-3,8" as a list of numbers.
function cpus(text) {
  const found = [];
  for (const part of text ? text.split(",") : []) {
    const [first, last] = part.split("-").map(Number);
    for (let cpu = first; cpu <= (last ?? first); cpu += 1) { found.push(cpu); }
  }
  return found;
}

function age(milliseconds) {
  const minutes = Math.max(0, Math.round(milliseconds / 60000));
  if (minutes < 120) { return `${minutes} min ago`; }
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h ago` : `${Math.round(hours / 24)} days ago`;
}

const className = (number) => (number < 0 ? "no class" : map.classes[number][0]);
const colour = (number) => (number < 0 ? "var(--none)" : `var(--c${number % COLORS})`);

// --- what there is, worked out when it is first asked for

const servers = (host) => host.objects ??= host.servers.map(
  ([id, name, number, flavor, vcpus, memoryMB, status, project, pins, nodes]) => ({
    id, name, number, flavor, vcpus, memoryMB, pins, nodes, status, project,
    text: [id, name, className(number), flavor, project].join(" ").toLowerCase(),
  }));
const level = (host) => Math.min(LEVELS.length,
  ...findings(host).map((finding) => LEVELS.indexOf(finding[0])));
const findings = (host) => host.findings.map((number) => map.findings[number]);
const hostText = (host) => host.text ??= [
  host.name, host.state, host.mode, host.zone, ...host.aggregates, ...host.classes,
  ...findings(host).map((finding) => finding[1])].join(" ").toLowerCase();
const sum = (host, index) => host.slots.reduce((n, slots) => n + slots[index], 0);
const unfit = ([, total, used, free]) => Math.max(0, total - used - free);
const unfitOf = (host) => host.slots.reduce((n, slots) => n + unfit(slots), 0);

const STATES = {
  free: ["with free slots", (host) => sum(host, 3) > 0],
  unfit: ["with unfit slots", (host) => unfitOf(host) > 0],
  findings: ["with findings", (host) => host.findings.length > 0],
  ...Object.fromEntries(LEVELS.map((word) => [word, [`with ${word} findings`,
    (host) => findings(host).some((finding) => finding[0] === word)]])),
  empty: ["without servers", (host) => host.servers.length === 0],
  out: ["down or disabled", (host) => host.state !== "up"],
};

// --- what is asked for

const asked = { words: [], state: "", mode: "", aggregate: "", flavor: -1, reason: "" };
let shown = [];
let active = 0;

map.hosts.forEach((host, index) => { host.index = index; });
const verdictOf = (host) => map.verdicts[asked.flavor]?.hosts[host.index];
const reasonOf = (number) => (number ? map.texts[number - 1][0] : "accepted");

function found(host) {
  const text = hostText(host);
  if (asked.words.every((word) => text.includes(word))) { return { }; }
  return servers(host).find((server) => asked.words.every(
    (word) => text.includes(word) || server.text.includes(word)));
}

function choose() {
  shown = map.hosts.filter((host) =>
    (!asked.state || STATES[asked.state][1](host))
    && (!asked.mode || host.mode === asked.mode)
    && (!asked.aggregate || host.aggregates.includes(asked.aggregate))
    && (!asked.reason || reasonOf(verdictOf(host)) === asked.reason)
    && (!asked.words.length || found(host)));
  // Those with faults first, the worst of all at the top.
  shown.sort((one, other) => level(one) - level(other));
  active = 0;
  const servers = shown.reduce((count, host) => count + host.servers.length, 0);
  byId("shown").textContent =
    `${shown.length.toLocaleString("en")} of ${plural(map.hosts.length, "host")} shown, `
    + plural(servers, "server");
  layOut();
}

// --- where each host is: rows as high as the highest in it

let columns = 1;
let space = 0;
let width = NARROWEST;
let perLine = 20;
let tops = [];

function cellHeight(cell) {
  const count = new Set([...cpus(cell[1]), ...cpus(cell[2])]).size;
  return LINE + Math.ceil(count / perLine) * STEP + 4;
}

function height(host) {
  const lines = 1 + slotLines(host).length + (host.findings.length > 0)
    + (asked.flavor >= 0) + (asked.words.length > 0) + (nodeless(host).length > 0);
  return PADDING + lines * LINE
    + host.cells.reduce((total, cell) => total + cellHeight(cell), 0);
}

function layOut() {
  space = byId("hosts").clientWidth;
  columns = Math.max(1, Math.floor((space + GAP) / (NARROWEST + GAP)));
  width = Math.floor((space - GAP * (columns - 1)) / columns);
  const most = Math.floor((width - 24) / STEP);
  perLine = most >= 10 ? most - (most % 10) : most;
  tops = [0];
  for (let first = 0; first < shown.length; first += columns) {
    const row = shown.slice(first, first + columns).map(height);
    tops.push(tops.at(-1) + Math.max(...row) + GAP);
  }
  byId("hosts").style.height = `${tops.at(-1)}px`;
  for (const card of cards.values()) { card.remove(); }
  cards.clear();
  draw();
}

// The row that a height is in, by bisection.
function rowAt(y) {
  let low = 0;
  let high = tops.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle] <= y) { low = middle; } else { high = middle - 1; }
  }
  return Math.max(0, low);
}

// --- only what is to be seen is drawn

const cards = new Map();
const OVERSCAN = 200;
// Milliseconds of a frame: what is not drawn by then is drawn in the next one.
const BUDGET = 5;

function range(margin) {
  const above = -byId("hosts").getBoundingClientRect().top;
  const first = rowAt(above - margin) * columns;
  const last = (rowAt(above + window.innerHeight + margin) + 1) * columns;
  return [first, Math.min(last, shown.length)];
}

function draw() {
  const begun = performance.now();
  const hosts = byId("hosts");
  const [first, last] = range(OVERSCAN);
  const seen = range(0);
  for (const [number, card] of cards) {
    if (number < first || number >= last) {
      card.remove();
      cards.delete(number);
    }
  }
  // First what is to be seen, then what is near it.
  const wanted = [];
  for (let number = first; number < last; number += 1) {
    if (!cards.has(number)) { wanted.push(number); }
  }
  const hidden = (number) => number < seen[0] || number >= seen[1];
  wanted.sort((a, b) => hidden(a) - hidden(b) || a - b);
  const made = [];
  for (const number of wanted) {
    if (made.length && performance.now() - begun > BUDGET) { break; }
    const card = cardOf(number);
    cards.set(number, card);
    made.push(card);
  }
  hosts.append(...made);
  mark();
  root.dataset.drawn = String(cards.size);
  if (made.length < wanted.length) { soon(); }
}

function mark() {
  const hosts = byId("hosts");
  for (const [number, card] of cards) {
    card.classList.toggle("active", number === active);
    card.setAttribute("aria-selected", String(number === active));
  }
  if (cards.has(active)) {
    hosts.setAttribute("aria-activedescendant", `host${active}`);
  } else {
    hosts.removeAttribute("aria-activedescendant");
  }
}

let waiting = false;
let before = 0;
function soon() {
  if (waiting) { return; }
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    // Nobody reads what flies past: it is drawn when the scroll bar gets slower.
    const flies = Math.abs(window.scrollY - before) > window.innerHeight;
    before = window.scrollY;
    if (flies) { soon(); } else { draw(); }
  });
}

// --- one host

// Those that are named with no NUMA node; with none known that is all.
const nodeless = (host) => servers(host).filter(
  (server) => !server.pins || !host.cells.length);

function nodelessWords(host) {
  const some = nodeless(host);
  const said = plural(some.length, "server");
  if (!host.cells.length) { return `NUMA nodes unknown, ${said}: ${byClass(some)}`; }
  return `${said} ${some.length === 1 ? "owns" : "own"} no CPU: ${byClass(some)}`;
}

const several = map.classes.filter(([, pinned]) => pinned).length > 1;

// The mode and the slots: of several classes a line each.
function slotLines(host) {
  const said = host.slots.map((slots) =>
    (several ? `${className(slots[0])}: ` : "")
    + `${plural(slots[1], "slot")}, ${slots[2]} used, ${slots[3]} free`
    + (unfit(slots) ? `, ${unfit(slots)} unfit` : ""));
  if (!said.length) { return [`${host.mode}, no slots`]; }
  return several ? [host.mode, ...said] : [`${host.mode}, ${said[0]}`];
}

function findingWords(host) {
  const counts = LEVELS.map((level) => [level,
    findings(host).filter((finding) => finding[0] === level).length]);
  return counts.filter(([, count]) => count)
    .map(([level, count]) => `${count} ${level}`).join(", ");
}

function byClass(some) {
  const counts = new Map();
  for (const server of some) {
    const name = className(server.number);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => `${count} of ${name}`).join(", ");
}

function verdictWords(host) {
  const number = verdictOf(host);
  if (number === undefined) { return ["unknown", "not judged"]; }
  return number ? ["refused", reasonOf(number)] : ["taken", "would take it"];
}

function line(kind, text) { return element("div", { class: kind, title: text }, text); }

function cardOf(number) {
  const host = shown[number];
  const row = Math.floor(number / columns);
  const card = element("div", { class: "card", id: `host${number}`, role: "option",
    "aria-setsize": shown.length, "aria-posinset": number + 1 });
  card.style.left = `${(number % columns) * (width + GAP)}px`;
  card.style.top = `${tops[row]}px`;
  card.style.width = `${width}px`;
  card.style.height = `${tops[row + 1] - tops[row] - GAP}px`;
  const state = host.state === "up" ? "" : ` (${host.state})`;
  card.append(line("name", host.name + state),
    ...slotLines(host).map((text) => line("", text)));
  if (asked.flavor >= 0) {
    const [kind, said] = verdictWords(host);
    const sign = { taken: "✓ ", refused: "✗ ", unknown: "? " }[kind];
    card.append(line(kind === "taken" ? "ok" : "warning", sign + said));
  }
  if (asked.words.length) {
    const server = found(host);
    card.append(line("found", `found: ${server?.name ?? "this host"}`));
  }
  if (host.findings.length) {
    const worst = findings(host)[0][0];
    card.append(line(worst, `! findings: ${findingWords(host)}`));
  }
  for (const cell of host.cells) { card.append(...cellOf(host, cell)); }
  if (nodeless(host).length) { card.append(line("", nodelessWords(host))); }
  return card;
}

const SHAPES = {
  owned: (x, y) => `M${x} ${y}h10v10h-10z`,
  stranger: (x, y) => `M${x + 5} ${y}l5 5l-5 5l-5 -5z`,
  free: (x, y) => `M${x + 1} ${y + 1}h8v8h-8z`,
  left: (x, y) => `M${x + 1} ${y + 1}l8 8m0 -8l-8 8`,
  shared: (x, y) => `M${x + 1} ${y + 5}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z`,
};

// A class is told by its shape, too: a hole in each second one, wider or narrower.
function ownedShape(number) {
  if (number < 0) { return SHAPES.stranger; }
  const hole = [0, 2, 4, 6][number % COLORS];
  const side = (10 - hole) / 2;
  return (x, y) => SHAPES.owned(x, y)
    + (hole ? `M${x + side} ${y + side}v${hole}h${hole}v-${hole}z` : "");
}

function picture(kinds, count) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("width", String(Math.min(count, perLine) * STEP));
  svg.setAttribute("height", String(Math.ceil(count / perLine) * STEP + 4));
  svg.setAttribute("aria-hidden", "true");
  for (const { kind, fill, path } of kinds) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "path");
    made.setAttribute("d", path);
    made.setAttribute("class", kind);
    if (fill) { made.style.fill = fill; made.style.fillRule = "evenodd"; }
    svg.append(made);
  }
  return svg;
}

function owners(host, cell) {
  const mine = new Set([...cpus(cell[1]), ...cpus(cell[2])]);
  return servers(host).filter((server) => server.pins
    && (server.nodes.length ? server.nodes.includes(cell[0])
      : cpus(server.pins).some((cpu) => mine.has(cpu))));
}

function cellOf(host, cell) {
  const [id, shared, dedicated, pinned] = cell;
  const all = [...new Set([...cpus(shared), ...cpus(dedicated)])].sort((a, b) => a - b);
  const here = owners(host, cell);
  const owner = new Map();
  for (const server of here) {
    for (const cpu of cpus(server.pins)) { owner.set(cpu, server.number); }
  }
  const free = new Set(host.slots.flatMap((slots) => slots[4].flatMap(cpus)));
  const taken = new Set(cpus(pinned));
  const own = new Set(cpus(dedicated));
  const floats = new Set(cpus(shared));
  const kinds = new Map();
  const put = (key, kind, fill, shape, index) => {
    const made = kinds.get(key) ?? { kind, fill, path: "" };
    made.path += shape((index % perLine) * STEP, Math.floor(index / perLine) * STEP);
    kinds.set(key, made);
  };
  all.forEach((cpu, index) => {
    if (owner.has(cpu) || taken.has(cpu)) {
      const number = owner.get(cpu) ?? -1;
      put(`owned${number}`, "owned", colour(number), ownedShape(number), index);
    } else if (free.has(cpu)) {
      put("free", "free", "", SHAPES.free, index);
    } else if (own.has(cpu) && !floats.has(cpu)) {
      put("left", "left", "", SHAPES.left, index);
    } else {
      put("shared", "shared", "", SHAPES.shared, index);
    }
  });
  const names = here.map((server) => server.name).join(", ");
  const count = all.filter((cpu) => owner.has(cpu) || taken.has(cpu)).length;
  const said = `node ${id}: ${count} of ${plural(all.length, "CPU")} owned`
    + (names ? `, ${names}` : "");
  return [line("", said), picture([...kinds.values()], all.length)];
}

// --- all about one host

function table(label, head, rows) {
  const titles = head.map((title) => element("th", { scope: "col" }, title));
  const body = rows.map((row) => element("tr", {},
    ...row.map((text) => element("td", {}, String(text)))));
  return element("div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    element("table", {}, element("thead", {}, element("tr", {}, ...titles)),
      element("tbody", {}, ...body)));
}

function article([level, code, subject, observed, remedy]) {
  return element("article", { class: level },
    element("p", { class: "code" }, `${level}: ${code}`),
    element("p", {}, element("b", {}, subject)), element("p", {}, observed),
    element("pre", {}, remedy));
}

const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text)
  ? text : `'${text.replaceAll("'", "'\\''")}'`);

function whyNot(host) {
  const flavor = map.verdicts[asked.flavor];
  const number = verdictOf(host);
  const command = "openstack perfvm explain "
    + `--flavor ${quoted(flavor.name)} --host ${quoted(host.host)} --long`;
  const parts = [element("h2", {}, `A new server of ${flavor.name}`)];
  if (number === undefined) {
    parts.push(element("p", { class: "unknown" }, `not judged: ${flavor.note}`));
  } else if (number === 0) {
    parts.push(element("p", { class: "ok" }, "✓ The host would take it."));
  } else {
    const [code, ...said] = map.texts[number - 1];
    parts.push(element("p", { class: "warning" }, `✗ refused: ${code}`),
      element("ul", {}, ...said.map((text) => element("li", {}, text))),
      element("p", {}, "With the arithmetic of the NUMA nodes, and what would help:"),
      element("pre", {}, command));
  }
  return parts;
}

function open(number) {
  const host = shown[number];
  if (!host) { return; }
  active = number;
  mark();
  const dialog = byId("details");
  const about = [`${host.state}${host.why ? `: ${host.why}` : ""}`, `mode ${host.mode}`,
    host.shape && `shape ${host.shape}`, host.zone && `zone ${host.zone}`,
    `aggregates: ${host.aggregates.join(", ") || "none"}`,
    `serves: ${host.classes.join(", ") || "no class"}`, `NUMA nodes: ${host.source}`];
  const parts = [element("h2", { id: "title" }, host.name),
    element("p", { class: "facts" }, about.filter(Boolean).join("; "))];
  if (asked.flavor >= 0) { parts.push(...whyNot(host)); }
  if (host.slots.length) {
    parts.push(element("h2", {}, "Slots"), table("Slots",
      ["Class", "Slots", "Used", "Free", "Unfit", "CPUs of the free ones"],
      host.slots.map((slots) => [className(slots[0]), slots[1], slots[2], slots[3],
        unfit(slots), slots[4].join("; ")])));
  }
  if (host.cells.length) {
    parts.push(element("h2", {}, "NUMA nodes"), table("NUMA nodes",
      ["Node", "CPUs for pinned servers", "Of these owned", "Shared CPUs",
        "MiB of memory", "MiB of pinned servers"],
      host.cells.map(([id, shared, own, pinned, memoryMB, usedMB]) =>
        [id, own || "none", pinned || "none", shared || "none", memoryMB, usedMB])));
  }
  if (host.servers.length) {
    parts.push(element("h2", {}, "Servers"), table("Servers",
      ["Name", "ID", "Class", "Flavor", "vCPUs", "Own CPUs", "NUMA nodes", "Status",
        "Project"],
      servers(host).map((server) => [server.name, server.id, className(server.number),
        server.flavor, server.vcpus, server.pins || "none", server.nodes.join(", "),
        server.status, server.project])));
  }
  if (host.findings.length) {
    parts.push(element("h2", {}, "Findings of the audit"),
      ...findings(host).map(article));
  }
  byId("about").replaceChildren(...parts);
  dialog.showModal();
  dialog.scrollTop = 0;
}

// --- the keyboard

function go(number) {
  active = Math.max(0, Math.min(shown.length - 1, number));
  const row = Math.floor(active / columns);
  const hosts = byId("hosts").getBoundingClientRect();
  const bar = byId("controls");
  const covered = getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0;
  const top = hosts.top + tops[row] - covered - GAP;
  const bottom = hosts.top + tops[row + 1] + GAP - window.innerHeight;
  if (top < 0) { window.scrollBy(0, top); } else if (bottom > 0) {
    window.scrollBy(0, Math.min(bottom, top));
  }
  draw();
}

function pressed(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) { return; }
  const page = columns * Math.max(1,
    Math.floor(window.innerHeight / Math.max(1, tops.at(-1) / (tops.length - 1 || 1))));
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns,
    PageDown: page, PageUp: -page, Home: -shown.length, End: shown.length };
  if (event.key in steps) {
    go(active + steps[event.key]);
  } else if (event.key === "Enter" || event.key === " ") {
    open(active);
  } else {
    return;
  }
  event.preventDefault();
}

// --- what can be chosen

function options(select, first, rest) {
  select.append(element("option", { value: "" }, first),
    ...rest.map(([value, text]) => element("option", { value }, text)));
}

function reasons() {
  const flavor = map.verdicts[asked.flavor];
  asked.reason = "";
  const list = byId("reasons");
  list.replaceChildren();
  byId("note").textContent = flavor?.note ?? "";
  if (!flavor) { return; }
  const counts = new Map();
  for (const number of flavor.hosts) {
    const reason = reasonOf(number);
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  const ordered = [...counts].sort(([a, n], [b, m]) =>
    (b === "accepted") - (a === "accepted") || m - n);
  for (const [reason, count] of ordered) {
    const text = reason === "accepted" ? "✓ would take it" : `✗ ${reason}`;
    const button = element("button", { type: "button", "aria-pressed": "false" },
      `${text}: ${plural(count, "host")}`);
    button.addEventListener("click", () => {
      asked.reason = asked.reason === reason ? "" : reason;
      for (const other of list.querySelectorAll("button")) {
        other.setAttribute("aria-pressed",
          String(other === button && asked.reason !== ""));
      }
      choose();
    });
    list.append(element("li", {}, button));
  }
}

function legend() {
  const one = (kind, fill, shape, text) => byId("legend").append(element("li", {},
    picture([{ kind, fill, path: shape(0, 2) }], 1), text));
  map.classes.forEach(([name, pinned], number) => {
    if (pinned) {
      one("owned", colour(number), ownedShape(number), `CPU owned by a server of ${name}`);
    }
  });
  one("owned", colour(-1), ownedShape(-1), "CPU owned by a server of no class");
  one("free", "", SHAPES.free, "CPU of a free slot");
  one("left", "", SHAPES.left, "CPU for pinned servers, in no free slot");
  one("shared", "", SHAPES.shared, "shared CPU");
}

function setUp() {
  const names = (values) => [...new Set(values)].sort().map((name) => [name, name]);
  options(byId("state"), "all", Object.entries(STATES).map(([k, [text]]) => [k, text]));
  options(byId("mode"), "any", names(map.hosts.map((host) => host.mode)));
  options(byId("aggregate"), "any", names(map.hosts.flatMap((h) => h.aggregates)));
  options(byId("flavor"), "not asked",
    map.verdicts.map((flavor, number) => [number, flavor.name]));
  for (const name of ["state", "mode", "aggregate"]) {
    byId(name).addEventListener("change", (event) => {
      asked[name] = event.target.value;
      choose();
    });
  }
  byId("flavor").addEventListener("change", (event) => {
    asked.flavor = event.target.value === "" ? -1 : Number(event.target.value);
    reasons();
    choose();
  });
  let later;
  byId("search").addEventListener("input", (event) => {
    clearTimeout(later);
    later = setTimeout(() => {
      asked.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      choose();
    }, 120);
  });
  for (const button of document.querySelectorAll(".counts button")) {
    button.addEventListener("click", () => {
      byId("state").value = button.dataset.state;
      byId("state").dispatchEvent(new Event("change"));
    });
  }
  for (const time of document.querySelectorAll("time")) {
    time.append(` (${age(Date.now() - Date.parse(time.dateTime))})`);
  }
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  const hosts = byId("hosts");
  hosts.addEventListener("keydown", pressed);
  hosts.addEventListener("click", (event) => {
    const card = event.target.closest(".card");
    if (card) { open(Number(card.id.slice("host".length))); }
  });
  window.addEventListener("scroll", soon, { passive: true });
  new ResizeObserver(() => {
    if (hosts.clientWidth !== space) { layOut(); }
  }).observe(hosts);
  byId("others").addEventListener("toggle", () => {
    const found = map.elsewhere.map((number) => map.findings[number]);
    byId("elsewhere").replaceChildren(...found.slice(0, 200).map(article));
    if (found.length > 200) {
      byId("elsewhere").append(element("p", {},
        `and ${found.length - 200} more: openstack perfvm audit`));
    }
  });
  legend();
  choose();
}

setUp();
