// Bundles packages for a browser, as an application would. By hand: npm run bundle-size (after npm run build).
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'

const here = fileURLToPath(new URL('.', import.meta.url))

/** What is bundled: the whole interface of a package, or only what the shortest program takes. */
export const BUNDLES = {
  'leasehold: createLocks': "export { createLocks } from 'leasehold'",
  'leasehold: everything': "export * from 'leasehold'",
  '@leasehold/client: everything': "export * from '@leasehold/client'",
}

/**
 * Bundles `code` for a browser.
 * @param {string} code
 * @param {{ format?: 'es' | 'iife', name?: string, minify?: boolean }} [options]
 * @returns {Promise<{ text: string, gzipBytes: number, modules: string[] }>}
 */
export async function bundle(code, { format = 'es', name = 'bundled', minify = true } = {}) {
  const folder = mkdtempSync(join(here, '.bundle-'))
  try {
    const entry = join(folder, 'entry.mjs')
    writeFileSync(entry, code)
    const result = await build({
      root: folder,
      configFile: false,
      logLevel: 'silent',
      build: {
        write: false,
        minify,
        target: 'es2022',
        modulePreload: false,
        // No library mode: it leaves the white space in.
        rolldownOptions: { input: entry, preserveEntrySignatures: 'strict', output: { format, name } },
      },
    })
    const [{ output }] = /** @type {any[]} */ (Array.isArray(result) ? result : [result])
    const text = output.map((chunk) => chunk.code ?? '').join('')
    return {
      text,
      gzipBytes: gzipSync(text, { level: 9 }).length,
      modules: output.flatMap((chunk) => Object.keys(chunk.modules ?? {})),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (process.argv[1] === import.meta.filename) {
  for (const [what, code] of Object.entries(BUNDLES)) {
    const { text, gzipBytes } = await bundle(code)
    console.log(
      JSON.stringify({ bundle: what, bytes: text.length, gzipBytes, gzipKB: Math.round(gzipBytes / 100) / 10 }),
    )
  }
}
