import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { InvalidError, StorageError } from '@leasehold/core'
import { syncFolder } from '@leasehold/replica/node'
import { z } from 'zod'
import type { Principal } from './principal.js'
import { formatRule, parseRule } from './rules.js'

/*
 * API keys are 256 random bits, so one round of SHA-256 is enough to store them: they cannot be guessed. The file contains
 * hashes only, and is the same on every member; a member reloads it when it changes.
 */

/** `lh_ID_SECRET`. */
const KEY = /^lh_([0-9a-f]{12})_([A-Za-z0-9_-]{43})$/
const ID_BYTES = 6
const SECRET_BYTES = 32
const KEYS_MAX = 10_000
const RULES_MAX = 64

const entrySchema = z.strictObject({
  id: z.string().regex(/^[0-9a-f]{12}$/),
  name: z.string().max(200),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  rules: z.array(z.string()).min(1).max(RULES_MAX),
  created: z.iso.datetime(),
  expires: z.iso.datetime().optional(),
})
const fileSchema = z.strictObject({ version: z.literal(1), keys: z.array(entrySchema).max(KEYS_MAX) })

/** A key as it is stored in the file. */
export type KeyEntry = z.output<typeof entrySchema>

export interface NewKey {
  readonly name: string
  /** Rules in the format of {@link parseRule}. */
  readonly rules: readonly string[]
  readonly expires?: Date | undefined
}

/** Creates a key and adds its hash to the file. Its text cannot be recovered later. @throws InvalidError, StorageError */
export function createKey(file: string, key: NewKey, now: Date): { readonly text: string; readonly entry: KeyEntry } {
  if (key.rules.length === 0)
    throw new InvalidError('a key needs at least one rule', { hint: "such as 'billing:acquire,read'" })
  const rules = key.rules.map((rule) => formatRule(parseRule(rule)))
  const keys = fs.existsSync(file) ? readKeys(file) : []
  const id = randomBytes(ID_BYTES).toString('hex')
  const text = `lh_${id}_${randomBytes(SECRET_BYTES).toString('base64url')}`
  const { expires } = key
  const entry: KeyEntry = {
    id,
    name: key.name,
    sha256: hashOf(text).toString('hex'),
    rules,
    created: now.toISOString(),
    ...(expires === undefined ? {} : { expires: expires.toISOString() }),
  }
  writeKeys(file, [...keys, entry])
  return { text, entry }
}

/** Removes a key from the file by its id. @throws InvalidError when the file does not contain it */
export function revokeKey(file: string, id: string): KeyEntry {
  const keys = readKeys(file)
  const entry = keys.find((one) => one.id === id)
  if (entry === undefined) throw new InvalidError(`${file} has no key ${id}`, { hint: 'list them: leasehold key ls' })
  writeKeys(
    file,
    keys.filter((one) => one.id !== id),
  )
  return entry
}

/** @throws InvalidError when the file is missing or is not a key file */
export function readKeys(file: string): readonly KeyEntry[] {
  let content: unknown
  try {
    content = JSON.parse(fs.readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new InvalidError(`cannot read the keys in ${file}: ${(cause as Error).message}`, {
      cause,
      hint: `create the first one: leasehold key create --keys ${file} --rule 'billing:acquire,read'`,
    })
  }
  const parsed = fileSchema.safeParse(content)
  if (!parsed.success) throw new InvalidError(`${file} is not a key file: ${z.prettifyError(parsed.error)}`)
  for (const { rules } of parsed.data.keys) for (const rule of rules) parseRule(rule)
  return parsed.data.keys
}

/** Replaces the file atomically, and makes it durable. */
function writeKeys(file: string, keys: readonly KeyEntry[]): void {
  const draft = `${file}.${process.pid}.tmp`
  try {
    fs.writeFileSync(draft, `${JSON.stringify({ version: 1, keys }, undefined, 2)}\n`, { mode: 0o600, flush: true })
    fs.renameSync(draft, file)
    syncFolder(dirname(file))
  } catch (cause) {
    fs.rmSync(draft, { force: true })
    throw new StorageError(`cannot write ${file}: ${(cause as Error).message}`, { cause })
  }
}

function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

/** The keys of a file, indexed by id. */
export class KeyRing {
  readonly #keys: ReadonlyMap<string, { readonly hash: Buffer; readonly principal: Principal }>

  constructor(entries: readonly KeyEntry[]) {
    this.#keys = new Map(
      entries.map(({ id, name, sha256, rules, expires }) => {
        const principal = {
          id: `key:${id}`,
          name,
          rules: rules.map(parseRule),
          expiresAtMs: expires === undefined ? undefined : Date.parse(expires),
        }
        return [id, { hash: Buffer.from(sha256, 'hex'), principal }]
      }),
    )
  }

  get size(): number {
    return this.#keys.size
  }

  /** Returns the principal of a presented key; undefined for an unknown key. */
  find(text: string): Principal | undefined {
    const id = KEY.exec(text)?.[1]
    const known = id === undefined ? undefined : this.#keys.get(id)
    if (known === undefined) return undefined
    return timingSafeEqual(known.hash, hashOf(text)) ? known.principal : undefined
  }
}
