/* The site's script: sets the clearance cookie, then polls the API at the site's intervals. */
(function () {
  "use strict";
  var EVENT_MS = 17000, INCIDENTS_MS = 15000, INNINGS_MS = 60000, LIST_MS = 30000;
  var part = document.querySelector('meta[name="sf-part"]').content.split(" ");
  var SPORT = part[0], BASE = part[1], COOKIE = part[2], API = BASE + "/api/v1";

  function sum(text) {
    var value = 0x811c9dc5;
    for (var i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
    return ("0000000" + value.toString(16)).slice(-8);
  }

  function setCookie() {
    var meta = document.querySelector('meta[name="sf-n"]');
    if (meta) document.cookie = COOKIE + "=" + meta.content + "." + sum(meta.content) + "; path=" + BASE + "; SameSite=Lax";
  }

  function ask(path, then) {
    var request = new XMLHttpRequest();
    request.open("GET", API + path);
    request.onload = function () {
      if (request.status !== 200) return;
      try { then(JSON.parse(request.responseText)); } catch (error) { console.warn("unreadable answer", path); }
    };
    request.send();
  }

  function put(node, text) {
    if (node && node.textContent !== text) node.textContent = text;
  }

  function repeat(action, pause) {
    action();
    setInterval(action, pause);
  }

  function showEvent(answer) {
    var event = answer.event, shown = function (score) { return "display" in score ? String(score.display) : "-"; };
    put(document.querySelector(".match-header .home"), shown(event.homeScore));
    put(document.querySelector(".match-header .away"), shown(event.awayScore));
    put(document.querySelector(".match-header .status"), event.status.description);
  }

  function line(item) {
    if (item.incidentType === "ball") return item.over - 1 + "." + item.ball + " " + item.commentary;
    var player = item.player || item.playerIn, text = item.text || item.incidentClass || item.length + " min";
    return item.time + "' " + item.incidentType + " " + text + (player ? " " + player.name : "");
  }

  function showIncidents(answer) {
    var list = document.querySelector(".incidents");
    if (!list) return;
    list.replaceChildren.apply(list, answer.incidents.slice(0, 60).map(function (item) {
      var row = document.createElement("li");
      row.textContent = line(item);
      return row;
    }));
  }

  function watchMatch(id) {
    repeat(function () { ask("/event/" + id, showEvent); }, EVENT_MS);
    repeat(function () { ask("/event/" + id + "/incidents", showIncidents); }, INCIDENTS_MS);
    if (SPORT === "cricket") repeat(function () { ask("/event/" + id + "/innings", function () {}); }, INNINGS_MS);
  }

  function showEvents(answer) {
    answer.events.forEach(function (event) {
      var link = document.querySelector('.event-link[data-id="' + event.id + '"]');
      if (link && "display" in event.homeScore)
        put(link.querySelector(".score"), event.homeScore.display + " - " + event.awayScore.display);
    });
  }

  function watchList(page) {
    repeat(function () {
      ask("/sport/" + SPORT + "/events/live", showEvents);
      page.tournaments.forEach(function (id) {
        ask("/unique-tournament/" + id + "/scheduled-events/" + page.date, showEvents);
      });
    }, LIST_MS);
  }

  setCookie();
  var page = {};
  try { page = JSON.parse(document.getElementById("__NEXT_DATA__").textContent).props.pageProps; } catch (error) {
    console.warn("no data in the page");
  }
  var fragment = /id:(\d+)/.exec(location.hash);
  if (fragment || page.event) watchMatch(fragment ? fragment[1] : page.event.id);
  else if (page.date) watchList(page);
})();
