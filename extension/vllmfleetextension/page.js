'use strict';
// The server renders the page; this keeps it current, sorts, filters and moves by keyboard.
const find = selector => document.querySelector(selector);
const main = find('main'), filter = find('#filter'), shown = find('#shown'), lost = find('#lost'), body = find('#rows');
const headers = [...document.querySelectorAll('#fleet thead th')];
const say = (element, text) => { if (element.textContent !== text) element.textContent = text; };

const names = new Intl.Collator('en', { numeric: true }); // gpu-2 before gpu-10

// What a person has chosen is still so when they come back from the page of an engine.
const storage = (() => { try { return sessionStorage; } catch { return null; } })(); // A browser can forbid it.
const chosen = { filter: '', column: 1, down: true, at: '', ...JSON.parse(storage?.getItem('chosen') ?? null) };
const keep = () => storage?.setItem('chosen', JSON.stringify(chosen));
// The server's order is the worst first; it decides between rows that are alike.
let order = new Map();
const learnOrder = tbody => { order = new Map([...tbody.children].map((row, i) => [row.dataset.key, i])); };

function valueOf(row) {
  const cell = row.children[chosen.column], text = cell.dataset.sort ?? cell.textContent;
  return text === '' ? null : headers[chosen.column].classList.contains('n') || chosen.column === 1 ? Number(text) : text;
}
// arrange hides what the filter does not have, and moves rows that are not in their place.
function arrange() {
  const words = chosen.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const all = [...body.children].map(row => ({ row, value: valueOf(row), place: order.get(row.dataset.key) }));
  let count = 0;
  for (const { row } of all) {
    const text = words.length ? row.textContent.toLowerCase() : '';
    row.hidden = !words.every(word => text.includes(word));
    count += !row.hidden;
  }
  say(shown, words.length ? `${count} of ${all.length}` : '');
  headers.forEach((header, i) => header.setAttribute('aria-sort', i !== chosen.column ? 'none' : chosen.down ? 'descending' : 'ascending'));
  const sign = chosen.down ? -1 : 1;
  all.sort((a, b) => (a.value === null) - (b.value === null) ||
    sign * (typeof a.value === 'string' ? names.compare(a.value, b.value) : a.value - b.value) || a.place - b.place);
  const focused = document.activeElement;
  let here = body.firstElementChild;
  for (const { row } of all) {
    // A row that goes down is moved itself, not all those below it: then what a person reads stays where it is.
    if (here?.nextElementSibling === row) { const down = here; here = row; body.append(down); }
    if (row === here) here = here.nextElementSibling; else body.insertBefore(row, here);
  }
  if (focused !== document.activeElement) focused.focus({ preventScroll: true }); // Its row was moved.
}

// replace changes only what differs, so that focus, selection and scrolling stay.
function replace(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.nodeName !== to.nodeName) { from.replaceWith(document.importNode(to, true)); return; }
  if (from.nodeType === Node.TEXT_NODE) { from.nodeValue = to.nodeValue; return; }
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && name !== 'hidden') from.removeAttribute(name);
  for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  if (from === body) { replaceRows(to); return; }
  const was = [...from.childNodes], is = [...to.childNodes];
  is.forEach((child, i) => i < was.length ? replace(was[i], child) : from.append(document.importNode(child, true)));
  was.slice(is.length).forEach(child => child.remove());
}
function replaceRows(to) {
  const known = new Map([...body.children].map(row => [row.dataset.key, row]));
  learnOrder(to);
  for (const row of [...to.children]) {
    const old = known.get(row.dataset.key);
    known.delete(row.dataset.key);
    if (old) replace(old, row); else body.append(document.importNode(row, true));
  }
  known.forEach(row => row.remove());
  arrange();
}

let timer, asking = false;
async function refresh() {
  clearTimeout(timer);
  if (asking || document.hidden) return; // A page that is shown again asks at once.
  asking = true;
  const began = performance.now();
  let wait = Number(main.dataset.refresh);
  try {
    const answer = await fetch(location.pathname, { cache: 'no-store', signal: AbortSignal.timeout(10000) });
    if (answer.status === 404) throw new Error('No processor knows this any more');
    if (!answer.ok) throw new Error(`The collector answers with status ${answer.status}`);
    const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
    for (const from of document.querySelectorAll('[data-live]')) {
      const to = next.getElementById(from.id);
      if (to) replace(from, to);
    }
    document.title = next.title;
    say(lost, '');
    wait = Math.max(wait, 5 * (performance.now() - began)); // A large fleet on a slow machine.
  } catch (error) {
    say(lost, `${error instanceof TypeError || error.name === 'TimeoutError' ? 'The collector does not answer' : error.message}. What is shown was so ${find('#state').textContent}.`);
  }
  main.classList.toggle('old', lost.textContent !== '');
  asking = false;
  timer = setTimeout(refresh, wait);
}

if (body) {
  filter.value = chosen.filter;
  learnOrder(body);
  arrange();
  [...body.querySelectorAll('a')].find(link => link.pathname === chosen.at)?.focus();
  filter.addEventListener('input', () => { chosen.filter = filter.value; keep(); arrange(); });
  body.addEventListener('focusin', event => { chosen.at = event.target.pathname; keep(); });
  headers.forEach((header, column) => header.firstElementChild.addEventListener('click', () => {
    // What is largest comes first, but names begin at A.
    chosen.down = chosen.column === column ? !chosen.down : column !== 0 && column !== 2;
    chosen.column = column;
    keep();
    arrange();
  }));
}
if (main.dataset.refresh) {
  timer = setTimeout(refresh, Number(main.dataset.refresh));
  document.addEventListener('visibilitychange', refresh);
}

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (!body) {
    if (event.key === 'Escape') location.href = '/';
    return;
  }
  const links = [...body.querySelectorAll('tr:not([hidden]) a')];
  const go = to => links[Math.min(Math.max(to, 0), links.length - 1)]?.focus();
  if (event.target === filter) {
    if (event.key === 'Escape') { filter.value = chosen.filter = ''; keep(); arrange(); filter.blur(); }
    if (event.key === 'Enter') go(0);
    return;
  }
  const at = links.indexOf(document.activeElement);
  if (event.key === '/') { filter.select(); event.preventDefault(); }
  if (event.key === 'j') go(at + 1);
  if (event.key === 'k') go(at - 1);
});
