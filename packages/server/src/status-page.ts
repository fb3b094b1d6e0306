/*
 * The status page: one static document that asks /v1/locks once a second. No assets from elsewhere, so that it works
 * without a network. Text from the service is only ever set as text, never as markup.
 */

export const STATUS_STYLE = `
:root {
  --bg: #f6f7f9; --card: #ffffff; --ink: #1b2430; --soft: #5d6b7d; --line: #dfe4ea; --accent: #2457d6;
  --good: #14804a; --warn: #a85b00; --bad: #b3261e; --track: #e6eaf0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #11161d; --card: #19212b; --ink: #e8edf3; --soft: #9aa8b8; --line: #2b3644; --accent: #8ab0ff;
    --good: #5fd39a; --warn: #f3b562; --bad: #ff8f87; --track: #2b3644;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1.25rem 1rem 3rem; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem 1rem; margin-bottom: 1rem; }
h1 { font-size: 1.35rem; letter-spacing: -.01em; margin: 0; }
.where { color: var(--soft); font-size: .85rem; overflow-wrap: anywhere; }
.pill { margin-left: auto; border: 1px solid currentColor; border-radius: 999px; padding: .05rem .7rem; font-size: .8rem; font-weight: 600; color: var(--soft); }
.pill.live { color: var(--good); }
.pill.stale { color: var(--bad); }
.counts { display: grid; grid-template-columns: repeat(3, 1fr); gap: .75rem; margin-bottom: 1rem; }
.count, section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.count { padding: .6rem .9rem; }
.count b { display: block; font-size: 1.6rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.count span { color: var(--soft); font-size: .8rem; }
.tools { margin-bottom: 1rem; }
input { width: 100%; font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .5rem .75rem; }
input:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
section { margin-bottom: 1rem; overflow: hidden; }
h2 { font-size: .95rem; margin: 0; padding: .6rem .9rem; border-bottom: 1px solid var(--line); }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-size: .75rem; font-weight: 600; color: var(--soft); padding: .4rem .9rem; }
td { padding: .45rem .9rem; border-top: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.name { font-weight: 600; }
.mode { color: var(--soft); font-size: .8rem; }
.token { font-family: ui-monospace, monospace; font-size: .85rem; white-space: nowrap; }
.who { color: var(--soft); font-size: .85rem; }
progress { display: block; width: 100%; min-width: 4rem; height: 4px; margin-top: .3rem; border: 0; border-radius: 2px; overflow: hidden; appearance: none; background: var(--track); }
progress::-webkit-progress-bar { background: var(--track); }
progress::-webkit-progress-value { background: var(--good); }
progress::-moz-progress-bar { background: var(--good); }
progress.low::-webkit-progress-value { background: var(--warn); }
progress.low::-moz-progress-bar { background: var(--warn); }
.empty { color: var(--soft); padding: .7rem .9rem; margin: 0; }
body.stale section, body.stale .counts { opacity: .55; }
footer { color: var(--soft); font-size: .8rem; }
@media (max-width: 40rem) {
  thead { display: none; }
  table, tbody, tr, td { display: block; }
  tr { border-top: 1px solid var(--line); padding: .4rem 0; }
  td { border: 0; padding: .1rem .9rem; }
  td.number { text-align: left; white-space: normal; }
  td[data-label]::before { content: attr(data-label) " "; color: var(--soft); font-size: .75rem; }
}
`

export const STATUS_BODY = `
<main>
<header><h1>Leasehold</h1><span class="where" id="where"></span><span class="pill" id="state" role="status">connecting</span></header>
<div class="counts">
<div class="count"><b id="holds">–</b><span>holds</span></div>
<div class="count"><b id="waiters">–</b><span>waiters</span></div>
<div class="count"><b id="sessions">–</b><span>sessions</span></div>
</div>
<div class="tools"><input id="prefix" type="search" placeholder="prefix, such as billing/" aria-label="Show only locks below this prefix" spellcheck="false" autocomplete="off"></div>
<section aria-labelledby="t1"><h2 id="t1">Holds</h2><table><thead><tr><th>lock</th><th>token</th><th>holder</th><th class="number">age</th><th class="number">time left</th></tr></thead><tbody id="held"></tbody></table><p class="empty" id="no-held">Nothing is held.</p></section>
<section aria-labelledby="t2"><h2 id="t2">Waiters</h2><table><thead><tr><th>lock</th><th>waiter</th><th class="number">waiting</th><th class="number">gives up in</th></tr></thead><tbody id="pending"></tbody></table><p class="empty" id="no-pending">Nobody waits.</p></section>
<section aria-labelledby="t3" id="delays-box" hidden><h2 id="t3">Lock delays</h2><table><thead><tr><th>lock</th><th class="number">blocked for</th></tr></thead><tbody id="delays"></tbody></table></section>
<section aria-labelledby="t4"><h2 id="t4">Sessions</h2><table><thead><tr><th>session</th><th class="number">holds</th><th class="number">waiters</th><th class="number">time left</th></tr></thead><tbody id="sessions-list"></tbody></table><p class="empty" id="no-sessions">No sessions are open.</p></section>
<footer id="foot"></footer>
</main>
`

export const STATUS_SCRIPT = `
'use strict'
const el = (id) => document.getElementById(id)
const make = (tag, className, text) => {
  const node = document.createElement(tag)
  if (className) node.className = className
  if (text !== undefined) node.textContent = text
  return node
}
const span = (ms) => {
  if (ms === null || ms === undefined) return 'no end'
  if (ms < 1000) return ms + ' ms'
  const s = Math.floor(ms / 1000)
  if (s < 60) return s + ' s'
  if (s < 3600) return Math.floor(s / 60) + ' min ' + (s % 60) + ' s'
  if (s < 86400) return Math.floor(s / 3600) + ' h ' + Math.floor((s % 3600) / 60) + ' min'
  return Math.floor(s / 86400) + ' d ' + Math.floor((s % 86400) / 3600) + ' h'
}
const modeText = (lock) => {
  if (typeof lock.mode !== 'object') return lock.mode
  return lock.slot === undefined ? 'one of ' + lock.mode.permits + ' permits' : 'permit ' + lock.slot + ' of ' + lock.mode.permits
}
const cell = (label, className, ...nodes) => {
  const td = make('td', className)
  if (label) td.dataset.label = label
  td.append(...nodes)
  return td
}
const lockCell = (locks) => {
  const lines = locks.map((lock) => {
    const line = make('div')
    line.append(make('span', 'name', lock.name), ' ', make('span', 'mode', modeText(lock)))
    return line
  })
  return cell('', '', ...lines)
}
const ttlCell = (label, left, ttl) => {
  const td = cell(label, 'number', span(left))
  if (left !== null && ttl) {
    const bar = make('progress', left < ttl / 3 ? 'low' : '')
    bar.max = ttl
    bar.value = left
    bar.setAttribute('aria-label', 'time left')
    td.append(bar)
  }
  return td
}
const fill = (id, emptyId, items, render) => {
  const rows = items.map((item) => {
    const tr = make('tr')
    tr.append(...render(item))
    return tr
  })
  el(id).replaceChildren(...rows)
  if (emptyId) el(emptyId).hidden = rows.length > 0
}
const more = (list, next) => (next === null ? String(list.length) : list.length + '+')

function show(data) {
  const ttls = new Map(data.sessions.map((one) => [one.session, one.ttlMs]))
  el('holds').textContent = more(data.held, data.next)
  el('waiters').textContent = more(data.pending, data.next)
  el('sessions').textContent = more(data.sessions, data.next)
  el('where').textContent = 'cluster ' + data.cluster + ' · epoch ' + data.epoch
  fill('held', 'no-held', data.held, (one) => [
    lockCell(one.locks),
    cell('token', 'token', ...one.locks.map((lock) => make('div', '', lock.token))),
    cell('holder', 'who', (one.client || 'session ' + one.session) + (one.persistent ? ' · persistent' : '')),
    cell('age', 'number', span(one.ageMs)),
    ttlCell('time left', one.remainingMs, ttls.get(one.session)),
  ])
  fill('pending', 'no-pending', data.pending, (one) => [
    lockCell(one.locks),
    cell('waiter', 'who', one.client || 'session ' + one.session),
    cell('waiting', 'number', span(one.waitingMs)),
    cell('gives up in', 'number', span(one.remainingMs)),
  ])
  fill('delays', '', data.delays, (one) => [lockCell([one]), cell('blocked for', 'number', span(one.remainingMs))])
  el('delays-box').hidden = data.delays.length === 0
  fill('sessions-list', 'no-sessions', data.sessions, (one) => [
    cell('', 'who', one.client ? one.client + ' · ' + one.session : one.session),
    cell('holds', 'number', String(one.holds)),
    cell('waiters', 'number', String(one.waiters)),
    ttlCell('time left', one.remainingMs, one.ttlMs),
  ])
}

let lastOk = 0
function mark(ok, text) {
  const pill = el('state')
  const wanted = 'pill ' + (ok ? 'live' : 'stale')
  if (pill.className !== wanted) pill.className = wanted
  if (pill.textContent !== text) pill.textContent = text
  document.body.classList.toggle('stale', !ok)
}
async function refresh() {
  const prefix = el('prefix').value
  const url = '/v1/locks?limit=200' + (prefix ? '&prefix=' + encodeURIComponent(prefix) : '')
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(5000) })
    const data = await answer.json()
    if (!answer.ok) throw new Error(data.detail)
    show(data)
    lastOk = Date.now()
    mark(true, 'live')
    el('foot').textContent = 'Refreshed every second. Times are as the service sees them.'
  } catch (error) {
    mark(false, lastOk ? 'stale for ' + span(Date.now() - lastOk) : 'not reachable')
    el('foot').textContent = String(error.message || error)
  }
  setTimeout(refresh, document.hidden ? 5000 : 1000)
}
el('prefix').addEventListener('input', () => mark(lastOk > 0, 'filtering'))
refresh()
`
