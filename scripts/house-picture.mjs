// Draws docs/architecture.svg from the imports that structure.mjs allows, so that the picture cannot go stale.

/** The column of a package in its floor, and what it is. */
export const PLACES = {
  cli: { column: 1, is: 'the programs: commands, serve, demo' },
  tools: { column: 2, is: 'for developers: mutants, judges of histories' },
  lab: { column: 1, is: 'the deterministic world: faults, scenarios, explorer' },
  console: { column: 3, is: 'web pages: locks, sessions, cluster, lab' },
  server: { column: 0, is: 'HTTP, streams, peers, security, metrics' },
  leasehold: { column: 2, is: 'what applications install: the SDK' },
  engines: { column: 1, is: 'embedded, etcd, PostgreSQL, approximate Redis' },
  fence: { column: 2, is: 'guards: stores that refuse a lower token' },
  replica: { column: 0, is: 'one member: log files, snapshots, group commit' },
  client: { column: 2, is: 'sessions, holds, deadlines. No dependencies' },
  raft: { column: 0, is: 'the consensus core: messages in, effects out. Pure' },
  core: { column: 1, is: 'the lock state machine, tokens, errors, codec. Pure' },
}

const BOX = { width: 190, height: 74, gap: 22 }
const ROW = 128
const LEFT = 70
const WIDTH = 960

const STYLE = `
.page { fill: #ffffff } .box { fill: #f4f6f8; stroke: #8a94a0 } .name { fill: #16202a; font-weight: 600; font-size: 15px }
.is { fill: #4a5662; font-size: 11px } .floor { fill: #6b7682; font-size: 12px } .line { stroke: #7b8793; fill: none }
.head { fill: #7b8793 } .types { stroke-dasharray: 4 4 } text { font-family: system-ui, sans-serif }
@media (prefers-color-scheme: dark) {
.page { fill: #0e141a } .box { fill: #1a232c; stroke: #5b6875 } .name { fill: #e8edf2 } .is { fill: #a9b4bf }
.floor { fill: #8995a1 } .line { stroke: #6f7c89 } .head { fill: #6f7c89 } }`

/** An SVG image: one row per floor, one box per package, and an arrow for each import that no other arrow implies. */
export function housePicture(house) {
  const floors = [...new Set(Object.values(house).map(({ floor }) => floor))].sort((a, b) => b - a)
  const places = new Map()
  for (const name of Object.keys(house)) {
    const x = LEFT + placeOf(name).column * (BOX.width + BOX.gap)
    places.set(name, { x, y: 30 + floors.indexOf(house[name].floor) * ROW })
  }
  const height = 30 + (floors.length - 1) * ROW + BOX.height + 46
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${label(house)}">`,
    `<style>${STYLE}\n</style>`,
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="head" d="M0 0 8 4 0 8z"/></marker></defs>',
    `<rect class="page" width="${WIDTH}" height="${height}"/>`,
    ...arrows(house).map((arrow) => drawArrow(arrow, places)),
    ...floors.map(
      (floor, row) => `<text class="floor" x="12" y="${30 + row * ROW + BOX.height / 2 + 4}">floor ${floor}</text>`,
    ),
    ...[...places].map(([name, place]) => drawBox(name, placeOf(name).is, place)),
    `<text class="is" x="${LEFT}" y="${height - 14}">An arrow: may import. Arrows that follow from others are left out. Dashed: types only. Nothing imports upward.</text>`,
    '</svg>\n',
  ].join('\n')
}

function placeOf(name) {
  const place = PLACES[name]
  if (place === undefined) throw new Error(`scripts/house-picture.mjs: ${name} has no place in the picture`)
  return place
}

function label(house) {
  return `Packages by floor: ${Object.keys(house).join(', ')}. Imports go down only.`
}

/** The imports that are not implied by a longer way down. */
export function arrows(house) {
  const below = (name) => [...house[name].imports, ...(house[name].types ?? [])]
  const reaches = (from, to) => below(from).some((next) => next === to || reaches(next, to))
  return Object.keys(house).flatMap((from) =>
    below(from)
      .filter((to) => !below(from).some((other) => other !== to && reaches(other, to)))
      .map((to) => ({ from, to, types: !house[from].imports.includes(to) })),
  )
}

function drawArrow({ from, to, types }, places) {
  const [a, b] = [places.get(from), places.get(to)]
  const half = BOX.width / 2
  const style = `class="line${types ? ' types' : ''}" marker-end="url(#head)"`
  if (a.y === b.y) {
    const [y, x] = [a.y + BOX.height / 2, a.x < b.x ? [a.x + BOX.width, b.x - 2] : [a.x, b.x + BOX.width + 2]]
    return `<path ${style} d="M${x[0]} ${y}H${x[1]}"/>`
  }
  const [x1, y1, x2, y2] = [a.x + half, a.y + BOX.height, b.x + half, b.y - 2]
  const gap = ROW - BOX.height
  const curve = (top) => `C${x1} ${top + gap / 2} ${x2} ${top + gap / 2} ${x2} ${top + gap - 2}`
  // On the way down, no line passes behind a box: it changes columns in the first gap or in the last one.
  const isFree = (x) => ![...places.values()].some((box) => box.x === x && box.y > a.y && box.y < b.y)
  const path = isFree(a.x) ? `M${x1} ${y1}V${y2 + 2 - gap}${curve(y2 + 2 - gap)}` : `M${x1} ${y1}${curve(y1)}V${y2}`
  return `<path ${style} d="${path}"/>`
}

function drawBox(name, is, { x, y }) {
  const lines = wrap(is, 31)
  return [
    `<rect class="box" x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="6"/>`,
    `<text class="name" x="${x + 12}" y="${y + 22}">${name}</text>`,
    ...lines.map((line, i) => `<text class="is" x="${x + 12}" y="${y + 40 + i * 14}">${line}</text>`),
  ].join('')
}

function wrap(text, most) {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line !== '' && line.length + 1 + word.length > most) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines
}
