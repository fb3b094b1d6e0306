import { HistoryError, type HoldMode, type Operation, type Value } from '@leasehold/lab'

export type EventType = 'invoke' | 'ok' | 'fail' | 'info'

/**
 * One line of a history: an operation is invoked, or it ends as `ok`, `fail` (did not happen) or `info` (outcome unknown).
 * What the end does not repeat is taken from the invocation.
 */
export interface HistoryEvent {
  readonly process: string
  readonly type: EventType
  readonly op?: string | undefined
  readonly key?: string | undefined
  /** Pairs an invocation with its end when a process has several open operations. */
  readonly id?: string | undefined
  readonly value?: Value | undefined
  readonly result?: Value | undefined
  readonly owner?: string | undefined
  readonly mode?: HoldMode | undefined
  readonly token?: bigint | undefined
  readonly slot?: number | undefined
  readonly permits?: number | undefined
  readonly line?: number | undefined
}

interface Open {
  readonly event: HistoryEvent
  readonly at: number
}

/**
 * Makes operations of events, which are in order of time. What never ended has an unknown outcome.
 * @throws HistoryError if an end has no invocation or a process invokes twice
 */
export function pairEvents(events: readonly HistoryEvent[]): Operation[] {
  const open = new Map<string, Open>()
  const operations: { at: number; operation: Operation }[] = []
  for (const [at, event] of events.entries()) {
    const thread = event.id === undefined ? `process ${event.process}` : `id ${event.id}`
    const begun = open.get(thread)
    if (event.type === 'invoke') {
      if (begun !== undefined) {
        const where = begun.event.line === undefined ? '' : ` of line ${begun.event.line}`
        throw new HistoryError(`${thread} invokes while its operation${where} is open`, event.line)
      }
      open.set(thread, { event, at })
      continue
    }
    if (begun === undefined) {
      // A note about a process without an open operation, such as the end of its session.
      if (event.type === 'info') continue
      throw new HistoryError(`${thread} ends an operation (${event.type}) that it did not invoke`, event.line)
    }
    open.delete(thread)
    operations.push({ at: begun.at, operation: joined(begun, { event, at }) })
  }
  for (const begun of open.values()) operations.push({ at: begun.at, operation: joined(begun, undefined) })
  return operations.sort((a, b) => a.at - b.at).map(({ operation }) => operation)
}

function joined({ event: call, at }: Open, end: Open | undefined): Operation {
  const answer = end?.event
  const op = call.op ?? answer?.op
  if (op === undefined) throw new HistoryError('an event without an operation', call.line)
  if (answer?.op !== undefined && answer.op !== op) {
    throw new HistoryError(`process ${call.process} invoked ${op} and ends ${answer.op}`, answer.line)
  }
  const outcome = answer === undefined || answer.type === 'info' ? 'unknown' : answer.type === 'fail' ? 'fail' : 'ok'
  return {
    process: call.process,
    op,
    key: call.key ?? answer?.key ?? '',
    outcome,
    invokedAt: at,
    returnedAt: outcome === 'ok' ? end?.at : undefined,
    value: call.value ?? answer?.value,
    result: outcome === 'ok' ? (answer?.result ?? answer?.value) : undefined,
    owner: call.owner ?? answer?.owner,
    mode: call.mode ?? answer?.mode,
    token: answer?.token ?? call.token,
    slot: answer?.slot ?? call.slot,
    permits: call.permits ?? answer?.permits,
    line: call.line,
  }
}
