import type { EngineGrant } from '@leasehold/client'
import { NotHolderError } from '@leasehold/core'
import { heldView, type HoldRecord, idOf, recordOf } from './layout.js'
import type { SessionContext } from './session-context.js'
import { kvsOf } from './store.js'
import { secretHash, endReasonOp } from './end-reasons.js'

export interface AdoptOptions {
  readonly id: bigint
  readonly secret: string
  readonly timeoutMs: number
}

/** Moves a hold to this session, under a new id and a new secret. @throws NotHolderError: it has ended or moved */
export async function adopt(session: SessionContext, { id, secret, timeoutMs }: AdoptOptions): Promise<EngineGrant> {
  const found = await session.store.findHold(id, timeoutMs)
  const gone = new NotHolderError(`hold ${id} does not exist (any more)`)
  if (found === undefined) throw gone
  if (found.record.secret !== secretHash(secret)) throw new NotHolderError(`hold ${id} has another secret`)
  const number = session.nextRequest()
  const request = `${session.sid}.${number}`
  const newSecret = Buffer.from(session.platform.randomBytes(16)).toString('hex')
  const { revision } = found
  const terms = heldView(found.record, revision).locks.map(({ mode, slot, token }) => {
    if (slot !== undefined) return { slot }
    return mode === 'shared' ? { token: String(token) } : {}
  })
  const { persistent, delayMs } = found.record
  const delayLease = delayMs === 0 || persistent ? '0' : String(await session.delayLease(delayMs, timeoutMs))
  const grantedAt = session.platform.wallMs()
  const own = {
    sid: session.sid,
    session: String(session.id),
    client: session.client,
    number,
    epoch: session.store.epoch,
  }
  const unbased = { ...found.record, ...own, secret: secretHash(newSecret), delayLease, ordinal: 0, terms, grantedAt }
  let record: HoldRecord = unbased
  const { layout } = session.store
  const names = unbased.locks.map(({ name }) => name)
  const held = layout.hold(names[0] as string, request)
  const word = await endReasonOp(
    session.store,
    found,
    { what: 'moved', request: found.request, actor: session.client, text: '' },
    timeoutMs,
  )
  const answer = await session.guarded(timeoutMs, () => {
    record = { ...unbased, base: session.store.base }
    return {
      compare: names.map((name) => {
        return { result: 0, target: 1, key: layout.hold(name, found.request), createRevision: revision }
      }),
      success: [
        ...session.store.leaveOps(names, found.request, delayMs > 0),
        ...session.store.grantOps(record, request, persistent ? 0n : session.leaseId),
        word,
      ],
      failure: [{ range: { key: held } }],
    }
  })
  const [written] = answer.inner.succeeded ? [] : kvsOf(answer.inner.responses[0])
  if (written !== undefined) record = recordOf<HoldRecord>(written)
  const created = answer.inner.succeeded ? answer.revision : written?.createRevision
  if (created === undefined) throw gone
  return session.granted(idOf(record, created), { request, record, hasWaited: true }, newSecret)
}
