/* The site's script: sets the script cookie, then updates the page from the JSON endpoints. */
(function () {
  "use strict";
  var POLL_MS = 2500;
  var SITE = "/" + location.pathname.split("/")[1];
  var pass = document.querySelector('meta[name="cx-t"]');

  function sum(text) {
    var value = 0x811c9dc5;
    for (var i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
    return ("0000000" + value.toString(16)).slice(-8);
  }

  function setCookie() {
    var meta = document.querySelector('meta[name="cx-n"]');
    if (meta) document.cookie = "cxjs=" + meta.content + "." + sum(meta.content) + "; path=" + SITE + "; SameSite=Lax";
  }

  function decode(text) {
    var codes = [["&g;", ">"], ["&l;", "<"], ["&s;", "'"], ["&q;", '"'], ["&a;", "&"]];
    codes.forEach(function (pair) { text = text.split(pair[0]).join(pair[1]); });
    return JSON.parse(text);
  }

  function ask(method, path, body, then) {
    var request = new XMLHttpRequest();
    request.open(method, path);
    request.setRequestHeader("Content-Type", "application/json");
    if (pass) request.setRequestHeader("Authorization", "Bearer " + pass.content);
    request.onload = function () {
      if (request.status !== 200) return;
      try { then(JSON.parse(request.responseText)); } catch (error) { console.warn("unreadable answer", path); }
    };
    request.send(body ? JSON.stringify(body) : null);
  }

  function put(selector, text) {
    var node = document.querySelector(selector);
    if (node && node.textContent.trim() !== text) node.textContent = text;
  }

  function split(score) {
    var parts = score.split("(");
    return { runs: parts[0].replace("/", "-"), overs: parts[1] ? "(" + parts[1] + ")" : "" };
  }

  function longResult(text, names) {
    var winner = Object.values(names).filter(function (team) { return text.indexOf(team.sn + " won") === 0; })[0];
    return winner ? text.replace(winner.sn, winner.n) + " \u{1F3C6}" : text;
  }

  /* The scorecard has the third and later innings: each side's last one is shown. */
  function latestScores(live, card) {
    var scores = [split(live.j), split(live.k)], keys = live.a.split(".");
    card.slice(2).forEach(function (innings) {
      var score = split(innings.d), count = score.overs.replace(/[()]/g, "");
      if (count.indexOf(".") < 0) score.overs = "(" + Math.floor(count / 6) + "." + count % 6 + ")";
      scores[keys.indexOf(innings.c)] = score;
    });
    return scores;
  }

  function isSecondBatting(live, card) {
    return card.length > 2 ? card[card.length - 1].c === live.a.split(".")[1] : live.h === "1";
  }

  function showHeader(live, names, toss, card) {
    var keys = live.a.split("."), scores = latestScores(live, card), order = isSecondBatting(live, card) ? [1, 0] : [0, 1];
    put(".team-name.team-1", (names[keys[order[0]]] || {}).sn || "");
    put(".team-name.team-2 div", (names[keys[order[1]]] || {}).sn || "");
    put(".f-runs span:nth-child(1)", scores[order[0]].runs);
    put(".f-runs span:nth-child(2)", scores[order[0]].overs);
    put(".second-innings span:nth-child(1)", scores[order[1]].overs);
    put(".second-innings span:nth-child(2)", scores[order[1]].runs);
    put(".result-box span", live.comment1 ? longResult(live.comment1, names) : live.B.replace(/^\^\d$/, "W"));
    put(".final-result", chaseText(live, names, scores) || toss);
  }

  function legalBalls(overs) {
    var parts = overs.replace(/[()]/g, "").split(".");
    return parts.length === 2 ? parts[0] * 6 + +parts[1] : 0;
  }

  function count(number, noun) {
    return number + " " + noun + (number === 1 ? "" : "s");
  }

  function chaseText(live, names, scores) {
    if (live.comment1) return live.comment1;
    if (/^[A-Z][a-z]{2}/.test(live.B)) return live.B;
    if (live.h !== "1" || !/^(ODI|T\d+)$/.test(live.fo) || live.C) return "";
    var needed = parseInt(scores[0].runs, 10) + 1 - parseInt(scores[1].runs, 10);
    var left = (live.fo === "ODI" ? 50 : +live.fo.slice(1)) * 6 - legalBalls(scores[1].overs);
    return needed > 0
      ? names[live.a.split(".")[1]].sn + " need " + count(needed, "run") + " in " + count(left, "ball") : "";
  }

  function ballCard(item) {
    var card = document.createElement("div");
    card.className = "cm-b-roundcard";
    [["cm-b-over", item.o], ["cm-b-ballupdate", item.b], ["cm-b-comment-c1", item.c1]].forEach(function (pair) {
      var span = document.createElement("span");
      span.className = pair[0];
      span.textContent = " " + pair[1] + " ";
      card.appendChild(span);
    });
    return card;
  }

  function showFeed(items, seen) {
    var list = document.querySelector("app-match-commentary");
    items.slice().reverse().forEach(function (item) {
      if (item.id <= seen.last) return;
      seen.last = item.id;
      if (list && item.type === "b") list.insertBefore(ballCard(item), list.firstChild);
    });
  }

  function find(state, ending) {
    var key = Object.keys(state).filter(function (name) { return name.endsWith(ending); })[0];
    return key ? state[key] : null;
  }

  function matchKey() {
    var old = location.pathname.match(/\/scoreboard\/(\w+)\//);
    return old ? old[1] : location.pathname.replace(/\/match-\w+$/, "").split("-").pop();
  }

  function watchMatch(state) {
    var key = matchKey(), names = {}, feed = find(state, "getBallFeeds") || [];
    (find(state, "getHomeMapDataliveparsing") || { t: [] }).t.forEach(function (team) { names[team.f_key] = team; });
    var toss = (document.querySelector(".toss-wrap p") || { textContent: "" }).textContent;
    var seen = { last: feed.length ? feed[0].id : 0 };
    function poll() {
      ask("GET", SITE + "/api/v3/getSV3?key=" + key, null, function (live) {
        if (+live.h < 2 && /^(ODI|T\d+)$/.test(live.fo)) return showHeader(live, names, toss, []);
        ask("GET", SITE + "/api/v3/getSC4?key=" + key, null, function (card) { showHeader(live, names, toss, card); });
      });
      ask("POST", SITE + "/commentary/v2/getBallFeeds", { matchKey: key, lastDocId: "", filters: [], lang: "en" },
        function (items) { showFeed(items, seen); });
    }
    poll();
    setInterval(poll, POLL_MS);
  }

  function watchList() {
    function poll() {
      ask("GET", SITE + "/api/v3/getLiveMatches", null, function (matches) {
        document.querySelectorAll(".live-card").forEach(function (card) {
          var match = matches[card.dataset.key];
          if (!match) return;
          [match.j, match.k].forEach(function (score, place) {
            var side = card.querySelectorAll(".team-score")[place], text = split(score);
            side.querySelectorAll("span")[1].textContent = " " + text.runs + " ";
            side.querySelector(".match-over").textContent = text.overs.replace(/[()]/g, "");
          });
          card.querySelector(".comment").textContent = match.res;
        });
      });
    }
    poll();
    setInterval(poll, POLL_MS);
  }

  setCookie();
  var blob = document.getElementById("app-root-state"), state = {};
  try { state = decode(blob.textContent); } catch (error) { console.warn("no state in the page"); }
  if (document.body.dataset.view === "match") watchMatch(state); else watchList();
})();
