/* Updates an open scoreboard with the markup that the server pushes. */
(function () {
  "use strict";
  var key = document.body.getAttribute("data-live"), wait = 500;
  if (!key) return;

  function listen() {
    var address = location.protocol.replace("http", "ws") + "//" + location.host + "/board/push/" + key;
    var socket = new WebSocket(address);
    socket.onmessage = function (message) {
      wait = 500;
      document.getElementById(message.data.charAt(0)).innerHTML = message.data.slice(1);
    };
    socket.onclose = function () {
      setTimeout(listen, wait);
      wait = Math.min(wait * 2, 8000);
    };
  }

  listen();
})();
