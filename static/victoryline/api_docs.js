// Starts Swagger UI. In a file of its own, so that the page needs no inline script; everything comes from this server.
"use strict";

const place = document.getElementById("swagger-ui");
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function dress() {
  document.documentElement.classList.toggle("dark-mode", dark.matches);
}

dress();
dark.addEventListener("change", dress);
window.SwaggerUIBundle({
  url: place.dataset.schema,
  domNode: place,
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  filter: true,
  persistAuthorization: false, // a token stays in this tab
  validatorUrl: null, // or the description would be sent to a site of theirs
});
