// Brings what changes up to date once a minute; the form, and what is being read in it, stays.
// It asks for times in the reader's time zone where the page has them in another one.
"use strict";

const EVERY_MS = 60_000;
// Minutes from UTC, now and in 30 days: clocks may be changed until then.
const OFFSETS = [0, 30].map((days) => -new Date(Date.now() + days * 86_400_000).getTimezoneOffset());
const ZONE = `${Intl.DateTimeFormat().resolvedOptions().timeZone},${OFFSETS[0]}`;

function isElsewhere() {
  return document.documentElement.dataset.offsets !== OFFSETS.join(" ");
}

function address() {
  const here = new URL(location.href);
  if (isElsewhere()) here.searchParams.set("zone", ZONE);
  return here;
}

// What the reader has opened stays open, and what is scrolled sideways stays where it is.
function keepAsRead(part, newer) {
  const opened = [...part.querySelectorAll("details[open] > summary")].map((each) => each.textContent);
  for (const summary of newer.querySelectorAll("details > summary")) {
    if (opened.includes(summary.textContent)) summary.parentElement.open = true;
  }
  const scrolled = [...part.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
  part.replaceWith(newer);
  newer.querySelectorAll(".scroll").forEach((each, place) => { each.scrollLeft = scrolled[place] ?? 0; });
}

async function refresh() {
  if (document.hidden) return;
  let text;
  try {
    const reply = await fetch(address(), { headers: { Accept: "text/html" } });
    text = await reply.text();
  } catch {
    return; // the daemon is away for a moment; the page says of when it is
  }
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const newer = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
    if (newer && !newer.isEqualNode(part) && !part.contains(document.activeElement)) keepAsRead(part, newer);
  }
}

// Empty fields are not asked with.
for (const form of document.forms) {
  form.addEventListener("formdata", ({ formData }) => {
    for (const [name, value] of [...formData]) if (!value) formData.delete(name);
    if (isElsewhere()) formData.set("zone", ZONE);
  });
}

setInterval(refresh, EVERY_MS);
document.addEventListener("visibilitychange", refresh);
if (isElsewhere()) refresh();
