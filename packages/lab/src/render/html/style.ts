/** Colours, light and dark. */
const COLOURS = `
:root { color-scheme: light dark; --ink: #1c2330; --quiet: #667085; --faint: #e4e7ec; --paper: #ffffff; --card: #f7f8fa;
  --red: #c8102e; --amber: #b54708; --green: #067647; --c0: #0b6bcb; --c1: #a0308f; --c2: #0f766e; --c3: #8a6100; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --quiet: #98a2b3; --faint: #2b3240; --paper: #12161e; --card: #1a202b;
  --red: #ff6b7d; --amber: #fdb022; --green: #47cd89; --c0: #6cb6ff; --c1: #f08ce0; --c2: #5fd0c4; --c3: #e0b84c; } }
`

/** The look of a picture that stands alone. */
export const PICTURE_STYLE = `${COLOURS}
.card { fill: var(--card) }
svg { display: block; font: 11px system-ui, sans-serif; --tone: var(--quiet) }
.c0 { --tone: var(--c0) } .c1 { --tone: var(--c1) } .c2 { --tone: var(--c2) } .c3 { --tone: var(--c3) }
.grid { stroke: var(--faint) } .tick { fill: var(--quiet); text-anchor: middle; font-size: 10px }
.lane { stroke: var(--quiet); opacity: .45 } .lane.client { stroke-width: 1.5 } .lane.resource { stroke-dasharray: 1 3 }
.name { font-weight: 700; font-size: 13px; fill: var(--ink) } .name.client { fill: var(--tone) } .name.member { font-weight: 500; fill: var(--quiet) }
.bar { fill: var(--tone); opacity: .85 } .bar-text { fill: var(--paper); font-size: 10px; font-weight: 600 }
.overlap { fill: none; stroke: var(--red); stroke-width: 2.5 }
.stripe { fill: var(--quiet); opacity: .5 } .stop { fill: url(#stopped); stroke: var(--quiet); stroke-width: .8 }
.down .stop { fill: var(--ink); opacity: .12 }
.stop-text { text-anchor: middle; font-weight: 600; fill: var(--ink); paint-order: stroke; stroke: var(--card); stroke-width: 4px }
.arrow line { stroke: var(--tone); stroke-width: 1.2; opacity: .75 } .tip { fill: context-stroke }
.arrow.lost line { stroke-dasharray: 3 3; opacity: .4 } .arrow.slow line { stroke-width: 2; stroke-dasharray: 7 4; opacity: 1 }
.arrow:hover line { stroke-width: 2.5; opacity: 1 }
.message { fill: var(--tone); font-size: 9.5px; paint-order: stroke; stroke: var(--card); stroke-width: 3px }
.fault path { fill: var(--amber); stroke: var(--card) }
.fault-text { fill: var(--amber); font-size: 10px; font-weight: 600; paint-order: stroke; stroke: var(--card); stroke-width: 3px }
.leads { fill: var(--ink); font-size: 10px; font-weight: 600; paint-order: stroke; stroke: var(--card); stroke-width: 3px }
.effect circle { fill: var(--tone) } .effect text { fill: var(--paper); text-anchor: middle; font-weight: 700 }
.look circle { fill: var(--card); stroke: var(--tone); stroke-width: 2 }
.refused circle { fill: var(--card); stroke: var(--red); stroke-width: 2 } .refused path { stroke: var(--red); stroke-width: 2 }
.refused text { fill: var(--red); text-anchor: middle; font-weight: 700; paint-order: stroke; stroke: var(--card); stroke-width: 4px }
.violation line { stroke: var(--red); stroke-width: 1.5; stroke-dasharray: 5 3 } .violation circle { fill: none; stroke: var(--red); stroke-width: 2 }
.violation text { fill: var(--red); text-anchor: middle; font-weight: 700; font-size: 12px }
`

/** The look of a page. */
export const PAGE_STYLE = `${PICTURE_STYLE}
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 1500px; margin: 0 auto; padding: 28px 24px 60px }
h1 { font-size: 24px; line-height: 1.25; margin: 0 0 6px } h1 span { color: var(--quiet); font-weight: 500; margin-right: 10px }
h2 { font-size: 16px; margin: 30px 0 8px }
p { max-width: 78ch; margin: 6px 0 } .reference { color: var(--quiet); font-size: 13px; overflow-wrap: anywhere }
a { color: inherit }
.verdict { display: inline-block; margin: 12px 0 4px; padding: 4px 12px; border-radius: 999px; font-weight: 600; border: 1.5px solid currentColor }
.shown { color: var(--red) } .clean { color: var(--green) } .wrong { color: var(--amber) }
.picture { overflow-x: auto; background: var(--card); border: 1px solid var(--faint); border-radius: 10px; margin: 14px 0 6px }
.note { color: var(--quiet); font-size: 13px }
table { border-collapse: collapse; font-size: 14px; width: 100%; max-width: 1000px }
td, th { text-align: left; padding: 3px 14px 3px 0; vertical-align: top; border-bottom: 1px solid var(--faint) }
td:first-child, .number { font-variant-numeric: tabular-nums; white-space: nowrap; color: var(--quiet) }
table.diary td { width: 1% } table.diary td:last-child { width: auto }
summary { cursor: pointer; color: var(--quiet); font-size: 14px; padding: 6px 0 }
td.who { font-weight: 600; color: var(--tone, inherit); white-space: nowrap }
tr.fault td:last-child { color: var(--amber) } tr.refuses td:last-child { color: var(--red) }
tr.violation td { color: var(--red); font-weight: 700 }
code { font-size: 12.5px; overflow-wrap: anywhere }
`
