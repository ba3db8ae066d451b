// Updates the page: requests /status every second while the page is visible. Sets text as text, never as HTML.
"use strict";

(() => {
  const EVERY_MS = 1000;
  const PATIENCE_MS = 5000;
  const main = document.getElementById("matches");
  const template = document.getElementById("card");
  const cards = new Map();
  let heard = performance.now();
  let heardAt = new Date();
  let isLost = false;
  let lastGrade = document.getElementById("grade").dataset.grade;

  for (const card of main.querySelectorAll(".card")) cards.set(card.dataset.key, { node: card, match: null });

  const field = (root, name) => root.querySelector(`[data-field="${name}"]`);

  function write(node, text) {
    const next = text == null ? "" : String(text);
    if (node && node.textContent !== next) {
      node.textContent = next;
      return true;
    }
    return false;
  }

  function say(text) {
    write(document.getElementById("announcements"), text);
  }

  function span(seconds) {
    if (seconds < 60) return `${Math.floor(seconds)} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
    if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
    return `${Math.floor(seconds / 86400)} days`;
  }

  function brief(seconds) {
    return seconds < 100 ? `${seconds.toFixed(1)} s` : span(seconds);
  }

  // The card of one match

  // Start times are shown in the reader's time zone, which only the browser has.
  function moment(match) {
    if (match.group !== "upcoming" || match.phase_text || !match.start_time) return match.moment;
    const start = new Date(match.start_time);
    const sameDay = start.toDateString() === new Date().toDateString();
    const clock = start.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    return sameDay ? clock : `${start.toLocaleDateString([], { day: "numeric", month: "short" })}, ${clock}`;
  }

  function pauseText(match, age) {
    const clock = { hour: "2-digit", minute: "2-digit" };
    const end = match.paused_until ? ` until ${new Date(match.paused_until).toLocaleTimeString([], clock)}` : "";
    if (age == null) return `paused${end}, not read yet`;
    return `paused${end}, read ${age < 1 ? "just now" : `${span(age)} ago`}`;
  }

  function ageText(match, age) {
    if (match.state === "paused") return pauseText(match, age);
    if (match.group === "finished") return "final";
    if (match.group === "upcoming" && match.start_time) {
      const left = (new Date(match.start_time) - Date.now()) / 1000;
      return left > 0 ? `in ${span(left)}` : "about to start";
    }
    if (age == null) return "not read yet";
    return age < 1 ? "just now" : `${span(age)} ago`;
  }

  function fillTeam(row, team, flash) {
    row.dataset.batting = team.is_batting ? "yes" : "no";
    const crest = field(row, "crest");
    crest.dataset.hue = team.hue;
    write(crest, team.short_name);
    write(field(row, "name"), team.name);
    write(field(row, "detail"), team.score_detail);
    if (write(field(row, "main"), team.score_main) && flash) {
      const score = row.querySelector(".team__score");
      score.classList.remove("is-changed");
      void score.offsetWidth; // restarts the animation
      score.classList.add("is-changed");
    }
  }

  function fill(node, match, isNew) {
    node.dataset.key = match.key;
    node.dataset.group = match.group;
    node.dataset.state = match.state;
    node.dataset.play = match.is_play ? "yes" : "no";
    const sport = field(node, "sport");
    sport.dataset.sport = match.sport;
    sport.setAttribute("aria-label", match.sport);
    write(field(node, "series"), match.heading);
    write(field(node, "title"), match.title);
    write(field(node, "moment"), moment(match));
    write(field(node, "event"), match.story);
    write(field(node, "source"), match.source);
    write(field(node, "care"), match.care || "");
    field(node, "link").setAttribute("href", `match/${encodeURIComponent(match.key)}`);
    field(node, "age").title = match.updated_at || "";
    const rows = node.querySelectorAll(".team");
    match.teams.forEach((team, index) => fillTeam(rows[index], team, !isNew));
  }

  function place(match) {
    let held = cards.get(match.key);
    const isNew = !held;
    if (isNew) {
      held = { node: template.content.firstElementChild.cloneNode(true) };
      cards.set(match.key, held);
    }
    fill(held.node, match, isNew);
    held.match = match;
    return held.node;
  }

  function arrange(group, nodes) {
    const section = document.getElementById(`group-${group}`);
    const grid = section.querySelector(".cards");
    nodes.forEach((node, index) => {
      if (grid.children[index] !== node) grid.insertBefore(node, grid.children[index] || null);
    });
    section.hidden = nodes.length === 0;
    write(field(section, "count"), nodes.length);
  }

  // Filters: kept in the address, so that a filtered page can be shared

  const filters = document.getElementById("filters");

  function accepts(match) {
    const chosen = filters ? Object.fromEntries(new FormData(filters)) : {};
    return ["sport", "status"].every((name) => !chosen[name] || match[name] === chosen[name]) && (!chosen.source || match.source.split(", ").includes(chosen.source));
  }

  function offer(matches) {
    for (const select of filters?.elements ?? []) {
      if (select === document.activeElement) continue;
      const known = new Set([...select.options].map((option) => option.value));
      const values = matches.flatMap((match) => (select.name === "source" ? match.source.split(", ") : [match[select.name]]));
      for (const value of values) if (value && !known.has(value)) known.add(value) && select.add(new Option(value, value));
    }
  }

  filters?.addEventListener("change", () => {
    const chosen = new URLSearchParams([...new FormData(filters)].filter(([, value]) => value));
    history.replaceState(null, "", `${location.pathname}${chosen.size ? `?${chosen}` : ""}`);
    run();
  });

  // The whole page

  function showMatches(matches) {
    const groups = { live: [], upcoming: [], finished: [] };
    const seen = new Set();
    offer(matches);
    for (const match of matches.filter(accepts)) {
      seen.add(match.key);
      groups[match.group].push(place(match));
    }
    for (const [key, held] of cards) {
      if (!seen.has(key)) {
        held.node.remove();
        cards.delete(key);
      }
    }
    for (const [group, nodes] of Object.entries(groups)) arrange(group, nodes);
    document.getElementById("empty").hidden = matches.length > 0; // filters may leave none of them
  }

  function showGrade(grade, reason) {
    const node = document.getElementById("grade");
    node.dataset.grade = grade;
    const word = grade.charAt(0) + grade.slice(1).toLowerCase();
    write(field(node, "grade"), word);
    write(field(node, "reason"), grade === "HEALTHY" ? "" : reason);
    if (grade !== lastGrade) say(`The system is ${word.toLowerCase()}. ${reason}`);
    lastGrade = grade;
  }

  function showFigures(status) {
    const fresh = status.freshness_stats || {};
    write(field(document, "live"), fresh.count ?? 0);
    write(field(document, "median"), brief(fresh.median ?? 0));
    write(field(document, "oldest"), brief(fresh.max ?? 0));
    write(field(document, "polls"), status.updates_per_minute ?? 0);
    write(field(document, "workers"), (status.workers || []).length);
    write(field(document, "failures"), `${((status.failure_ratio ?? 0) * 100).toFixed(1)} %`);
  }

  function showAlerts(alerts) {
    const list = document.getElementById("alerts");
    const text = JSON.stringify(alerts);
    if (list.dataset.shown === text) return;
    list.dataset.shown = text;
    list.replaceChildren(
      ...alerts.map((alert) => {
        const item = document.createElement("li");
        item.className = "alert";
        item.dataset.severity = alert.severity;
        item.textContent = alert.summary;
        return item;
      }),
    );
    list.hidden = alerts.length === 0;
  }

  function tick() {
    const since = (performance.now() - heard) / 1000;
    for (const { node, match } of cards.values()) {
      if (!match) continue;
      const age = match.age_seconds == null ? null : match.age_seconds + since;
      write(field(node, "age"), ageText(match, age));
      if (isLost && match.group === "live") node.dataset.state = "unknown";
      const whole = (match.age_seconds ?? 0) + (match.next_update_in ?? 0);
      const isMoving = match.group === "live" && match.state === "fresh" && !isLost && match.next_update_in != null && whole > 0;
      field(node, "fuse").style.transform = `scaleX(${isMoving ? Math.min(1, (age ?? 0) / whole) : 0})`;
    }
    if (isLost) write(field(document, "lost"), `The last data is from ${heardAt.toLocaleTimeString()} (${span(since)} ago).`);
  }

  function lose() {
    if (!isLost) say("Connection lost.");
    isLost = true;
    document.body.classList.add("is-lost");
    document.getElementById("lost").hidden = false;
    showGrade("UNKNOWN", "the server does not answer");
  }

  function show(status) {
    if (isLost) say("Connection restored.");
    isLost = false;
    heard = performance.now();
    heardAt = new Date();
    document.body.classList.remove("is-lost");
    document.getElementById("lost").hidden = true;
    showGrade(status.grade, status.reason);
    showFigures(status);
    showAlerts(status.alerts || []);
    // Without its database the server has no matches: keep the ones on the page.
    if (status.freshness_stats && !status.scores_are_hidden) showMatches(status.matches);
  }

  async function ask() {
    try {
      const answer = await fetch(document.body.dataset.statusUrl, {
        cache: "no-store",
        credentials: "omit",
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      if (!answer.ok) throw new Error(String(answer.status));
      show(await answer.json());
    } catch {
      lose();
    }
    tick();
  }

  let timer = null;
  async function run() {
    clearTimeout(timer);
    if (document.hidden) return;
    const started = performance.now();
    await ask();
    clearTimeout(timer);
    timer = setTimeout(run, Math.max(100, EVERY_MS - (performance.now() - started)));
  }

  document.addEventListener("visibilitychange", run);
  setInterval(tick, EVERY_MS);
  run();
})();
