import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runScenario, SCENARIOS } from '@leasehold/lab'
import { build } from 'vite'
import { afterAll, expect, test } from 'vitest'
import { CHROMIUM_ARGS, findChromium } from '../services/chromium.js'
import { describeWith } from '../services/suite.js'

const PACKAGES = fileURLToPath(new URL('../../packages/', import.meta.url))
const SEED = 11
/** All baselines, and some of each other kind. */
const CHOSEN = /^(R[0-9].*|A(1|1g|4g|6|10)|[SQPDW][12])$/
const ANSWER_WAIT_MS = 150_000
/** Sent by the page when something has failed there. */
const FAILED = 'failed'

const PAGE = `<!doctype html><script type="module">
const send = (body) => fetch('/result', { method: 'POST', body: JSON.stringify(body) })
try {
  const { runScenario, SCENARIOS } = await import('/lab.js')
  const runs = []
  for (const scenario of SCENARIOS.filter(({ id }) => ${CHOSEN}.test(id))) {
    const { ok, traceHash, observed } = await runScenario(scenario, { seed: ${SEED} })
    runs.push({ id: scenario.id, ok, traceHash, observed })
  }
  await send({ runs })
} catch (error) {
  await send({ ${FAILED}: String(error?.stack ?? error) })
}
</script>`

/** The scenarios and all the production code in them as one module for browsers. */
async function bundled(): Promise<string> {
  const result = await build({
    configFile: false,
    logLevel: 'error',
    root: join(PACKAGES, 'lab'),
    build: {
      write: false,
      minify: false,
      target: 'es2022',
      lib: { entry: join(PACKAGES, 'lab/src/scenarios/index.ts'), formats: ['es'] },
    },
    resolve: {
      alias: [
        { find: /^@leasehold\/([a-z]+)$/, replacement: `${PACKAGES}$1/src/index.ts` },
        { find: /^@leasehold\/([a-z]+)\/([a-z/-]+)$/, replacement: `${PACKAGES}$1/src/$2.ts` },
      ],
    },
  })
  const [first] = Array.isArray(result) ? result : [result]
  const chunk = first !== undefined && 'output' in first ? first.output[0] : undefined
  if (chunk === undefined) throw new Error('the bundle is empty')
  return chunk.code
}

const servers: Server[] = []
const browsers: ChildProcess[] = []
const folders: string[] = []
afterAll(async () => {
  for (const browser of browsers) {
    const isRunning = browser.exitCode === null && browser.signalCode === null
    const gone = new Promise((resolve) => browser.once('close', resolve))
    // With its helpers, which write into the folder otherwise.
    if (isRunning && browser.pid !== undefined && process.kill(-browser.pid, 'SIGKILL')) await gone
  }
  for (const server of servers) server.close()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})

/** Serves the page until it has answered. */
function answerOf(code: string): Promise<{ runs?: unknown[]; failed?: string }> {
  return new Promise((resolve, reject) => {
    const server = createServer((request, response) => {
      if (request.method === 'POST') {
        let body = ''
        request.setEncoding('utf8').on('data', (part: string) => (body += part))
        request.on('end', () => {
          response.end()
          resolve(JSON.parse(body) as { runs?: unknown[]; failed?: string })
        })
        return
      }
      const isScript = request.url === '/lab.js'
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8')
      response.end(isScript ? code : PAGE)
    })
    servers.push(server)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      const folder = mkdtempSync(join(tmpdir(), 'leasehold-chromium-'))
      folders.push(folder)
      const args = [...CHROMIUM_ARGS, '--headless', `--user-data-dir=${folder}`, `http://127.0.0.1:${port}/`]
      browsers.push(spawn(findChromium() as string, args, { stdio: 'ignore', detached: true }))
    })
    setTimeout(() => reject(new Error(`the page has not answered within ${ANSWER_WAIT_MS} ms`)), ANSWER_WAIT_MS).unref()
  })
}

describeWith('Chromium', 'the lab in a browser', () => {
  test('scenarios have the same trace and outcome as in Node', async () => {
    const here = []
    for (const scenario of SCENARIOS.filter(({ id }) => CHOSEN.test(id))) {
      const { ok, traceHash, observed } = await runScenario(scenario, { seed: SEED })
      here.push({ id: scenario.id, ok, traceHash, observed })
    }
    expect(here.length).toBeGreaterThan(30)
    const there = await answerOf(await bundled())
    expect(there.failed).toBeUndefined()
    expect(there.runs).toEqual(JSON.parse(JSON.stringify(here)))
  }, 240_000)
})
