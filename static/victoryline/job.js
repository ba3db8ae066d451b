// Updates the page of an open job: requests the page again and replaces its progress.
"use strict";

(() => {
  const EVERY_MS = 2000;

  async function renew() {
    const shown = document.getElementById("job-live");
    if (!shown || shown.dataset.open !== "yes") return;
    if (!document.hidden) {
      try {
        const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
        const fresh = answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("job-live");
        if (fresh) shown.replaceWith(document.adoptNode(fresh));
      } catch {
        // The server does not answer just now; what is shown stays until it does.
      }
    }
    setTimeout(renew, EVERY_MS);
  }

  document.addEventListener("DOMContentLoaded", () => setTimeout(renew, EVERY_MS));
})();
