import { existsSync, linkSync, renameSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorOf, InvalidError, isErrorCode, LeaseholdError, StorageError, UnavailableError } from '@leasehold/core'
import type { Backup } from '@leasehold/replica/node'
import { get } from '../tls-fetch.js'
import { apiKeyOf, type ServiceOptions, tlsOf, urlOf } from '../service-client.js'

export interface DownloadOptions extends ServiceOptions {
  /** Backs up the state of one member, without a quorum. */
  readonly stale?: boolean
  /** Replaces an existing file. */
  readonly force?: boolean
}

/** How long a member may send nothing before the download is aborted. */
const STALL_LIMIT_MS = 30_000

export interface Downloaded extends Backup {
  readonly bytes: number
}

/**
 * Downloads a backup into `file`: writes a temporary file beside it, syncs it, reads it back and checks it, and then renames it.
 * @throws InvalidError if the file exists; UnavailableError, StorageError
 */
export async function downloadBackup(
  file: string,
  options: DownloadOptions,
  progress: (bytes: number, total: number) => void,
): Promise<Downloaded> {
  if (options.force !== true && existsSync(file)) throw exists(file)
  const { readBackup } = await import('@leasehold/replica/node')
  const draft = `${file}.tmp`
  const stall = new Stall()
  try {
    const response = await requestBackup(options, stall)
    const total = Number(response.headers.get('content-length') ?? 0)
    const bytes = await receive(response, draft, stall, (got) => progress(got, total))
    const backup = readBackup(draft)
    await publish(draft, file, options.force === true)
    return { ...backup, bytes }
  } finally {
    stall.end()
    rmSync(draft, { force: true })
  }
}

/** Requests a backup from the members in turn, until one of them sends it. */
async function requestBackup(options: DownloadOptions, stall: Stall): Promise<Response> {
  const urls = urlOf(options).split(',')
  const odd = urls.find((url) => !/^https?:\/\//.test(url.trim()))
  if (odd !== undefined) throw new InvalidError(`this command needs a service, not ${odd.trim()}`)
  const key = apiKeyOf(options)
  const tls = tlsOf(options)
  let last: LeaseholdError | undefined
  for (const url of urls) {
    const target = new URL(`/v1/backup${options.stale === true ? '?stale=true' : ''}`, url.trim())
    const headers = key === undefined ? undefined : { authorization: `Bearer ${key}` }
    let response: Response
    try {
      response = await get(target, { signal: stall.signal, tls, ...(headers && { headers }) })
    } catch (cause) {
      last = new UnavailableError(`cannot reach ${url.trim()}`, { cause })
      continue
    }
    if (response.ok) return response
    last = await problem(response)
    if (last.code !== 'no-quorum') throw last
  }
  throw last as LeaseholdError
}

async function problem(response: Response): Promise<LeaseholdError> {
  const body = (await response.json().catch(() => ({}))) as { code?: string; detail?: string; hint?: string }
  const { code } = body
  if (!isErrorCode(code)) {
    return new UnavailableError(`the service responded with ${response.status}`, {
      hint: 'is this the URL of a Leasehold service?',
    })
  }
  const hint = code === 'no-quorum' ? 'without a quorum, --stale backs up the state of one member' : body.hint
  return errorOf(code, body.detail ?? `HTTP ${response.status}`, { hint })
}

async function receive(response: Response, draft: string, stall: Stall, got: (bytes: number) => void): Promise<number> {
  let bytes = 0
  let file: FileHandle | undefined
  try {
    file = await open(draft, 'w', 0o600)
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    for (;;) {
      const { done, value } = await read(reader)
      if (done) break
      stall.reset()
      await writeAll(file, value)
      bytes += value.length
      got(bytes)
    }
    await file.sync()
    return bytes
  } catch (error) {
    if (error instanceof LeaseholdError) throw error
    throw new StorageError(`cannot write ${draft}: ${(error as Error).message}`, { cause: error })
  } finally {
    await file?.close()
  }
}

async function read(
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<{ done: true; value?: undefined } | { done: false; value: Uint8Array }> {
  try {
    return (await reader.read()) as { done: false; value: Uint8Array }
  } catch (cause) {
    throw new UnavailableError('the backup was cut off before its end', { cause, hint: 'try again' })
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten
}

/** Moves the file to its final name; without `force`, never over an existing file. */
async function publish(draft: string, file: string, force: boolean): Promise<void> {
  try {
    if (force) renameSync(draft, file)
    else linkSync(draft, file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' || (!force && existsSync(file))) throw exists(file)
    if (force) throw new StorageError(`cannot write ${file}: ${(error as Error).message}`, { cause: error })
    // A file system without hard links.
    renameSync(draft, file)
  }
  if (process.platform === 'win32') return
  const folder = await open(dirname(file), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function exists(file: string): InvalidError {
  return new InvalidError(`${file} exists`, { hint: 'choose another name, or replace it with --force' })
}

/** Aborts a download when no data arrives. */
class Stall {
  readonly #controller = new AbortController()
  #timer = this.#arm()

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  reset(): void {
    clearTimeout(this.#timer)
    this.#timer = this.#arm()
  }

  end(): void {
    clearTimeout(this.#timer)
  }

  #arm(): NodeJS.Timeout {
    return setTimeout(() => this.#controller.abort(), STALL_LIMIT_MS)
  }
}
