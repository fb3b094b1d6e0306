import type { ScenarioResult } from '../../scenarios/index.js'
import { actorOf, isTelling, type Moment, sentenceOf, tokenWords, verdictOf, words } from '../story.js'
import { PAGE_STYLE } from './style.js'
import { svgOf } from './svg.js'
import { escape } from './text.js'

/** A run as one page that needs nothing else: picture, diary, expectation and observation. */
export function htmlPage(result: ScenarioResult): string {
  const { scenario, title, text, seed, traceHash } = result
  const verdict = verdictOf(result)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(`${scenario} ${title}`)}</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<main>
<h1><span>${escape(scenario)}</span>${escape(title)}</h1>
${text === '' ? '' : `<p>${escape(text)}</p>`}
<p class="reference">${linked(result.reference)}</p>
<div class="verdict ${verdict.kind}">${escape(verdict.text)}</div>
<div class="picture">${svgOf(result)}</div>
<p class="note">Seconds from the left; the axis is stretched where much happens. Bars: how long a client calls the lock its own, by its own clock, with the token. Hatched: the process is stopped. ● writes, ○ reads, ✗ refused. Point at anything to read more.${epochNote(result)}</p>
<h2>What happened</h2>
${diary(result)}
<h2>Expected and observed</h2>
${outcome(result)}
<p class="note">Seed ${seed}, trace <code>${traceHash}</code>: the same seed gives the same run on every machine.</p>
</main>
</body>
</html>
`
}

function diary(result: ScenarioResult): string {
  const token = tokenWords(result)
  const rows = result.timeline.filter(isTelling).map((moment) => {
    const actor = actorOf(moment)
    const client = result.lanes.clients.indexOf(actor)
    const colour = client < 0 ? '' : ` c${client % 4}`
    const sentence = words(sentenceOf(moment, token), token)
    return `<tr class="${kindOf(moment)}"><td>${moment.at.toFixed(3)} s</td><td class="who${colour}">${escape(actor)}</td><td>${escape(sentence)}</td></tr>`
  })
  return `<table class="diary">${rows.join('\n')}</table>`
}

function kindOf(moment: Moment): string {
  if (moment.kind === 'violation' || moment.kind === 'fault') return moment.kind
  return moment.kind === 'resource' && !moment.accepted ? 'refuses' : ''
}

/** What was expected first; what else there was to see can be opened. */
function outcome({ expected, observed, differences }: ScenarioResult): string {
  const all = Object.entries(observed)
  const cell = (value: unknown) => `<td><code>${escape(JSON.stringify(value))}</code></td>`
  const asked = all
    .filter(([name]) => expected[name] !== undefined)
    .map(([name, value]) => `<tr><td>${escape(name)}</td>${cell(expected[name])}${cell(value)}</tr>`)
  const rest = all
    .filter(([name]) => expected[name] === undefined)
    .map(([name, value]) => `<tr><td>${escape(name)}</td>${cell(value)}</tr>`)
  const wrong = differences.map((line) => `<p class="wrong">${escape(line)}</p>`).join('')
  return `<table><tr><th></th><th>expected</th><th>observed</th></tr>${asked.join('\n')}</table>${wrong}
<details><summary>What else was observed</summary><table>${rest.join('\n')}</table></details>`
}

/** What tokens are when they are not shown as they are. */
function epochNote(result: ScenarioResult): string {
  const isLong = result.timeline.some((moment) => 'token' in moment && (moment.token?.length ?? 0) > 14)
  return isLong
    ? ' Tokens are shown without the epoch of the service (its number × 2<sup>48</sup>) unless there are two.'
    : ''
}

function linked(text: string): string {
  return escape(text).replace(/https?:\/\/[^\s;,)]+/g, (url) => `<a href="${url}">${url}</a>`)
}
