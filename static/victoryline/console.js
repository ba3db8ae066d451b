// Says in a dialog why an action was not carried out: not permitted, failed, no answer, or a session that has ended.
"use strict";

(() => {
  const TEXTS = {
    403: "Not permitted: your account may not do this, or this page is too old. Nothing was changed. Reload the page, or ask an administrator for the permission.",
    404: "Not found: the row was deleted meanwhile. Nothing was changed.",
  };

  function show(target, text) {
    const alert = document.createElement("p");
    alert.setAttribute("role", "alert");
    alert.className = "console-refused mb-4 text-red-600 dark:text-red-500";
    alert.textContent = text;
    target.querySelectorAll(".console-refused").forEach((old) => old.remove());
    if (target.id === "modal-content") target.replaceChildren(alert);
    else target.prepend(alert);
  }

  function isDialog(target) {
    return target && (target.id === "modal-content" || target.id === "dialog-form");
  }

  document.addEventListener("htmx:responseError", ({ detail }) => {
    if (!isDialog(detail.target)) return;
    const request = detail.xhr.getResponseHeader("X-Request-Id");
    const failed = `The server failed (${detail.xhr.status}${request ? `, request ${request}` : ""}). See the audit for what was done before you try again.`;
    show(detail.target, TEXTS[detail.xhr.status] || failed);
  });

  document.addEventListener("htmx:sendError", ({ detail }) => {
    if (!isDialog(detail.target)) return;
    show(detail.target, "The server does not answer. See the audit for what was done before you try again.");
    detail.elt.dispatchEvent(new CustomEvent("htmx:after-on-load")); // opens the dialog, as an answer does
  });

  // The login page instead of a dialog: htmx would replace the dialog by nothing.
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (!isDialog(detail.target) || detail.isError || detail.serverResponse.includes('id="dialog-form"')) return;
    detail.shouldSwap = false;
    show(detail.target, "Your session has ended. Nothing was changed. Reload the page and log in.");
  });
})();
