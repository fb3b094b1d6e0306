import type { ConnectionOptions } from 'node:tls'
import { defaultPlatform } from '@leasehold/client'
import { EPOCH_MAX, InvalidError, type Token, UnavailableError } from '@leasehold/core'
import { EtcdClient } from './api/client.js'
import { baseFor, recordCluster } from './serial-base.js'
import {
  bytesOf,
  type EpochRecord,
  type HoldRecord,
  heldView,
  idOf,
  Layout,
  recordOf,
  type SessionRecord,
  type Terms,
} from './layout.js'
import type { KeyValue, Op } from './api/messages.js'
import { parseEtcdUrl } from './url.js'

const TIMEOUT_MS = 10_000
const DELETES_AT_ONCE = 100

export interface RaisedEpoch {
  readonly epoch: number
  readonly before: number | undefined
  /** Sessions that were ended. */
  readonly sessions: number
  /** Persistent holds, which stay, with their new ids. */
  readonly kept: readonly { readonly names: readonly string[]; readonly before: Token; readonly id: Token }[]
}

/**
 * Raises the epoch of an etcd that was restored from a backup, or replaced, above every epoch ever used, so that no
 * token or version is used twice. Ends every session, hold and wait; persistent holds stay, under new ids.
 *
 * @throws InvalidError when the epoch is not above the one in etcd
 */
export async function raiseEpoch(
  url: string,
  epoch: number,
  options: { tls?: ConnectionOptions } = {},
): Promise<RaisedEpoch> {
  if (!Number.isSafeInteger(epoch) || epoch < 1 || epoch > EPOCH_MAX) {
    throw new InvalidError(`an epoch is 1 to ${EPOCH_MAX}, not ${epoch}`)
  }
  const place = parseEtcdUrl(url, options.tls)
  const client = new EtcdClient(url.replace(/\/\/[^@/]*@/, '//'), place, defaultPlatform, () => {})
  try {
    return await new EpochRaise(client, new Layout(place.prefix), epoch).run()
  } finally {
    client.close()
  }
}

class EpochRaise {
  readonly #client: EtcdClient
  readonly #layout: Layout
  readonly #epoch: number
  /** By lock: the token of its readers. */
  readonly #generations = new Map<string, string>()
  #base = 0

  constructor(client: EtcdClient, layout: Layout, epoch: number) {
    this.#client = client
    this.#layout = layout
    this.#epoch = epoch
  }

  async run(): Promise<RaisedEpoch> {
    const before = await this.#write()
    // From here on, clients with the old epoch cannot change anything.
    const locks = await this.#client.range(this.#layout.locks(), TIMEOUT_MS)
    const old = locks.kvs.filter((kv) => recordOf<{ epoch: number }>(kv).epoch < this.#epoch)
    const stays = new Map<string, HoldRecord & { kv: KeyValue }>()
    for (const kv of old) {
      const parsed = this.#layout.parse(kv.key)
      const record = recordOf<HoldRecord>(kv)
      if (parsed?.kind === 'h' && kv.lease === 0n && record.persistent) stays.set(parsed.request, { ...record, kv })
    }
    const kept: RaisedEpoch['kept'][number][] = []
    for (const [request, record] of stays) kept.push(await this.#keep(request, record))
    const gone = old.filter((kv) => !stays.has(this.#layout.parse(kv.key)?.request ?? ''))
    for (let at = 0; at < gone.length; at += DELETES_AT_ONCE) {
      const success = gone.slice(at, at + DELETES_AT_ONCE).map(({ key }): Op => ({ delete: { key } }))
      await this.#client.txn({ compare: [], success, failure: [] }, { timeoutMs: TIMEOUT_MS, repeatable: true })
    }
    return { epoch: this.#epoch, before, sessions: await this.#endSessions(), kept }
  }

  async #write(): Promise<number | undefined> {
    const key = this.#layout.epoch
    const { kvs, header } = await this.#client.range({ key }, TIMEOUT_MS)
    const found = kvs[0] && recordOf<EpochRecord>(kvs[0])
    if (found && found.epoch >= this.#epoch) {
      throw new InvalidError(`epoch ${found.epoch} is in etcd already`, {
        hint: `take one above every epoch ever used, at least ${found.epoch + 1}`,
      })
    }
    // Copies of one etcd that are raised to the same epoch differ at least in their clocks.
    const raised = baseFor(found?.base ?? 0, header.revision, this.#client.platform.wallMs())
    if (typeof raised === 'number') this.#base = raised
    else this.#base = found?.base ?? 0
    const record: EpochRecord = { epoch: this.#epoch, cluster: recordCluster(header.clusterId), base: this.#base }
    const { succeeded, responses } = await this.#client.txn(
      {
        compare: [{ result: 0, target: 2, key, modRevision: kvs[0]?.modRevision ?? 0 }],
        success: [{ put: { key, value: bytesOf(record) } }],
        failure: [{ range: { key } }],
      },
      { timeoutMs: TIMEOUT_MS, repeatable: true },
    )
    const now = responses[0]?.range?.kvs[0]
    if (!succeeded && !(now && now.value.equals(bytesOf(record)))) {
      throw new UnavailableError('another client wrote the epoch at the same time')
    }
    return found?.epoch
  }

  async #keep(request: string, { kv, ...record }: HoldRecord & { kv: KeyValue }) {
    const next = `${request}e${this.#epoch}`
    const names = record.locks.map(({ name }) => name)
    const terms = record.locks.map(({ name, mode }, i): Terms => {
      const token = this.#generations.get(name)
      if (mode === 'shared') return token === undefined ? { first: 0 } : { token }
      return record.terms[i] ?? {}
    })
    const raised: HoldRecord = { ...record, epoch: this.#epoch, base: this.#base, ordinal: 0, terms }
    const value = bytesOf(raised)
    const kinds = record.delayMs > 0 ? (['hold', 'delay'] as const) : (['hold'] as const)
    const ops = names.flatMap((name): Op[] => [
      ...kinds.map((kind): Op => ({ delete: { key: this.#layout[kind](name, request) } })),
      ...kinds.map((kind): Op => ({ put: { key: this.#layout[kind](name, next), value } })),
    ])
    const { header } = await this.#client.txn(
      {
        compare: [{ result: 0, target: 1, key: kv.key, createRevision: kv.createRevision }],
        success: ops,
        failure: [],
      },
      { timeoutMs: TIMEOUT_MS, repeatable: false },
    )
    const id = idOf(raised, header.revision)
    for (const { name, mode } of record.locks) {
      if (mode === 'shared' && !this.#generations.has(name)) this.#generations.set(name, String(id))
    }
    return { names, before: heldView(record, kv.createRevision).id, id }
  }

  async #endSessions(): Promise<number> {
    const { kvs } = await this.#client.range(this.#layout.sessions, TIMEOUT_MS)
    let ended = 0
    for (const kv of kvs) {
      if (this.#layout.parse(kv.key)?.kind !== 'session') continue
      if (recordOf<SessionRecord>(kv).epoch >= this.#epoch) continue
      await this.#client.leaseRevoke(kv.lease, TIMEOUT_MS)
      ended++
    }
    return ended
  }
}
