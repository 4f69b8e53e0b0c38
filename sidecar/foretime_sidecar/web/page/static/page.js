// Brings what changes up to date once a minute; the form, and what is being read in it, stays.
"use strict";

const EVERY_MS = 60_000;

async function refresh() {
  if (document.hidden) return;
  let text;
  try {
    const reply = await fetch(location.href, { headers: { Accept: "text/html" } });
    text = await reply.text();
  } catch {
    return; // the daemon is away for a moment; the page says of when it is
  }
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const newer = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
    if (newer && !part.contains(document.activeElement)) part.replaceWith(newer);
  }
}

// Empty fields are not asked with.
for (const form of document.forms) {
  form.addEventListener("formdata", ({ formData }) => {
    for (const [name, value] of [...formData]) if (!value) formData.delete(name);
  });
}

setInterval(refresh, EVERY_MS);
document.addEventListener("visibilitychange", refresh);
