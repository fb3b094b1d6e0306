// Builds the console as one HTML file for @leasehold/server: with script and style inline.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'

const here = fileURLToPath(new URL('.', import.meta.url))
const target = fileURLToPath(new URL('../server/dist/console/', import.meta.url))

// Set even for a build in a test, whose environment would select the development builds of the libraries.
process.env.NODE_ENV = 'production'

const { output } = await build({
  mode: 'production',
  configFile: false,
  root: here,
  logLevel: 'warn',
  build: { write: false, target: 'es2022', modulePreload: { polyfill: false }, cssCodeSplit: false },
})

const scripts = output.filter((one) => one.type === 'chunk')
const styles = output.filter((one) => one.type === 'asset' && one.fileName.endsWith('.css'))
if (scripts.length !== 1 || styles.length !== 1) {
  throw new Error(`the console is one script and one style, not ${output.map((one) => one.fileName).join(', ')}`)
}
const script = scripts[0].code.trim().replaceAll('</script', '<\\/script')
const style = String(styles[0].source).trim()
if (style.includes('</style')) throw new Error('the style would end early')

// Replaces the references to script and style by their content.
const page = readFileSync(`${here}index.html`, 'utf8')
const html = page
  .replace(/\n\s*<script type="module" src="[^"]*"><\/script>/, () => `\n<script type="module">${script}</script>`)
  .replace('</head>', () => `<style>${style}</style>\n  </head>`)
if (!html.includes(script) || !html.includes(style)) throw new Error('index.html has no place for the script')

mkdirSync(target, { recursive: true })
const unfinished = `${target}index.html.${process.pid}`
writeFileSync(unfinished, html)
renameSync(unfinished, `${target}index.html`)
const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`
console.log(`console: ${kB(Buffer.byteLength(html))}, ${kB(gzipSync(html, { level: 9 }).length)} gzip`)
