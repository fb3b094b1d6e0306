import { findExecutable } from './process.js'

/** Arguments for a headless Chromium that connects to the page under test only. */
export const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  // In containers the memory that is shared there may be far too small.
  '--disable-dev-shm-usage',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
] as const

/** The path of a Chromium or Chrome (or of `LEASEHOLD_CHROMIUM`); undefined when there is none. */
export function findChromium(): string | undefined {
  const given = process.env.LEASEHOLD_CHROMIUM
  if (given !== undefined && given !== '') return given
  for (const name of ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']) {
    const file = findExecutable(name)
    if (file !== undefined) return file
  }
  return undefined
}
