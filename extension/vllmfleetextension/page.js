'use strict';
// The server renders the page; this keeps it current, sorts, filters and moves by keyboard.
const main = document.querySelector('main');
const filter = document.querySelector('#filter');
const state = document.querySelector('#state');
const headers = [...document.querySelectorAll('#fleet thead th')];
const rows = () => [...document.querySelectorAll('#fleet tbody tr')];
let sorted = { column: 1, order: 0 }; // order 0 is the server's: the worst first

function keyOf(row, column) {
  const cell = row.children[column];
  const text = cell.dataset.sort ?? cell.textContent.trim();
  return text === '' ? null : (isNaN(text) ? text : Number(text));
}
function arrange() {
  if (!filter) return;
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = rows();
  for (const row of all) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
  }
  if (sorted.order === 0) return;
  all.sort((a, b) => {
    const x = keyOf(a, sorted.column), y = keyOf(b, sorted.column);
    if (x === null || y === null) return (x === null) - (y === null);
    return (x < y ? -1 : x > y ? 1 : 0) * sorted.order;
  });
  document.querySelector('#rows').append(...all);
}
headers.forEach((header, column) => header.firstElementChild.addEventListener('click', () => {
  sorted = { column, order: sorted.column === column && sorted.order === 1 ? -1 : 1 };
  headers.forEach((h, i) => h.setAttribute('aria-sort', i !== column ? 'none' : sorted.order === 1 ? 'ascending' : 'descending'));
  arrange();
}));
filter?.addEventListener('input', arrange);

// refresh replaces only what has changed, so that neither the focus nor a selection is lost.
function replace(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName || from.nodeType === Node.TEXT_NODE || from.nodeName === 'svg') {
    from.replaceWith(to.cloneNode(true));
    return;
  }
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && name !== 'hidden' && name !== 'class') from.removeAttribute(name);
  for (const { name, value } of [...to.attributes]) from.setAttribute(name, value);
  const was = [...from.childNodes], is = [...to.childNodes];
  is.forEach((child, i) => i < was.length ? replace(was[i], child) : from.append(child.cloneNode(true)));
  was.slice(is.length).forEach(child => child.remove());
}
function update(next) {
  for (const id of ['#counts', '#state', '#budgets tbody']) {
    const from = document.querySelector(id), to = next.querySelector(id);
    if (from && to) replace(from, to);
  }
  const from = document.querySelector('#rows'), to = next.querySelector('#rows');
  if (!from || !to) return;
  if (from.nodeName !== 'TBODY') { replace(from, to); return; }
  const known = new Map(rows().map(row => [row.dataset.key, row]));
  for (const row of [...to.children]) {
    const old = known.get(row.dataset.key);
    known.delete(row.dataset.key);
    if (old) { replace(old, row); } else from.append(row.cloneNode(true));
  }
  known.forEach(row => row.remove());
  if (sorted.order === 0) order(from, [...to.children].map(row => row.dataset.key));
  arrange();
}
function order(body, keys) {
  const now = new Map(rows().map(row => [row.dataset.key, row]));
  keys.forEach((key, i) => { const row = now.get(key); if (row && body.children[i] !== row) body.insertBefore(row, body.children[i]); });
}
async function refresh() {
  try {
    if (!document.hidden) {
      const answer = await fetch(location.pathname, { cache: 'no-store' });
      if (!answer.ok) throw new Error(answer.status);
      update(new DOMParser().parseFromString(await answer.text(), 'text/html'));
      state.classList.remove('lost');
    }
  } catch (error) {
    state.textContent = 'The collector does not answer (' + error.message + '); what is shown is old.';
    state.classList.add('lost');
  }
  setTimeout(refresh, Number(main.dataset.refresh));
}
if (main.dataset.refresh) setTimeout(refresh, Number(main.dataset.refresh));

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === filter) {
    if (event.key === 'Escape') { filter.value = ''; arrange(); filter.blur(); }
    return;
  }
  if (event.key === '/' && filter) { filter.focus(); event.preventDefault(); return; }
  if (event.key === 'Escape' && document.querySelector('#back')) { location.href = '/'; return; }
  const step = { j: 1, k: -1 }[event.key];
  if (!step) return;
  const links = rows().filter(row => !row.hidden).map(row => row.querySelector('a'));
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  links[Math.min(Math.max(at + step, 0), links.length - 1)].focus();
});
